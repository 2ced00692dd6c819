// What is proved of `desc_extract`, without bound, by k-induction.
//
// A shadow sees the ports, and when an operation begins and ends. It follows one descriptor of any
// words, which is chosen freely, and computes from those what must become of it. Two things are
// assumed: the own processor's number stays, and the followed descriptor has these words. Any
// others may come at any time.

localparam int unsigned Bytes = Width / 8;
localparam logic [63:0] Memory = 64'd1 << AddressWidth;

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyseq *)logic f_pick;
always_ff @(posedge clk) if (past_reset) assume (cpu == $past(cpu));

typedef logic [7:0] words_t;
// A sum of two entries, or of the lengths of a list.
typedef logic [AddressWidth+1:0] wide_t;

// ---- The followed descriptor: its words, one more than it may have at most, and what stands
// beside the last one.

(* anyconst *)logic [Beats-1:0][Width-1:0] f_copy;
(* anyconst *)words_t f_count;
(* anyconst *)logic f_remote;
(* anyconst *)logic [FunctionWidth-1:0] f_function;
(* anyconst *)logic [PairWidth-1:0] f_pair;
(* anyconst *)end_t f_peer;
(* anyconst *)address_t f_address;

// Its words so far, and whether one without data was among them.
logic g_mid, g_coming, g_pending, g_kept;
words_t g_words;
logic g_void, g_asked, g_fault;
// Those before it that have not left. What comes next of it: a source or beat and a destination,
// where the source goes on if a part of it has left, and whether its last move has left.
places_t g_before;
place_t g_place;
logic [3:0] g_source, g_destination;
logic g_part, g_moved;
address_t g_from, g_rest;

wire f_takes = in_valid && in_ready;
wire f_starts = f_takes && !g_mid && f_pick && !g_coming && !g_pending && !g_kept;
wire f_mine = f_takes && (f_starts || g_coming);
wire words_t f_word = f_starts ? '0 : g_words;
wire words_t f_next = f_word + words_t'(32'(f_word) <= 2 * Beats);

always_comb begin
  if (f_mine) begin
    if (32'(f_word) < 2 * Beats) begin
      assume (in_word == (f_word[0] ? f_copy[f_word/2][127:64] : f_copy[f_word/2][63:0]));
    end
    if (in_last) begin
      assume (f_next == f_count);
      assume (in_remote == f_remote && in_function == f_function && in_pair == f_pair
          && in_peer == f_peer && in_address == f_address);
    end else begin
      assume (f_next < f_count || 32'(f_count) > 2 * Beats);
    end
  end
end

// ---- What its words say.

wire [7:0] f_sources = f_copy[0][55:48];
wire [7:0] f_destinations = f_copy[0][63:56];
wire [3:0] f_kind = f_copy[0][3:0];
wire f_inside = f_copy[0][4];
wire [11:0] f_immediate = f_copy[0][64+:12];
wire [4:0] f_tail = f_copy[0][80+:5];
wire wide_t f_lists = wide_t'(f_sources) + wide_t'(f_destinations);
wire wide_t f_data_beats = wide_t'(f_immediate[11:4]) + wide_t'(f_immediate[3:0] != '0);
wire wide_t f_said = wide_t'(1) + f_lists + f_data_beats + wide_t'(f_tail != '0);
wire wide_t f_beats = wide_t'(f_count) / wide_t'(2);

// By words: whether one of those before it is wrong, or has a wrong tail. By beats: the bytes of
// sources and of destinations before it.
logic [2*Beats+1:0] f_flaws, f_tail_flaws;
logic [Beats:0][AddressWidth+1:0] f_from_sums, f_to_sums;
// The bytes in this beat and behind it.
logic [Beats:0][AddressWidth+1:0] f_from_rests, f_to_rests;
always_comb begin
  {f_from_rests, f_to_rests} = '0;
  for (int unsigned each = Beats - 1; each > 0; each--) begin
    f_from_rests[each] = f_from_rests[each+1];
    f_to_rests[each] = f_to_rests[each+1];
    if (wide_t'(each) <= wide_t'(f_sources))
      f_from_rests[each] = f_from_rests[each+1] + wide_t'(f_copy[each][64+:AddressWidth+1]);
    else if (wide_t'(each) <= f_lists)
      f_to_rests[each] = f_to_rests[each+1] + wide_t'(f_copy[each][64+:AddressWidth+1]);
  end
  {f_flaws, f_tail_flaws, f_from_sums, f_to_sums} = '0;
  f_flaws[1] = f_copy[0][47:41] != '0 || f_copy[0][23:22] != '0 || f_copy[0][19]
      || f_copy[0][7:6] != '0;
  f_flaws[2] = f_flaws[1] || f_copy[0][127:85] != '0 || f_copy[0][79:76] != '0;
  for (int unsigned each = 1; each < Beats; each++) begin
    f_from_sums[each+1] = f_from_sums[each];
    f_to_sums[each+1] = f_to_sums[each];
    if (wide_t'(each) <= wide_t'(f_sources))
      f_from_sums[each+1] = f_from_sums[each] + wide_t'(f_copy[each][64+:AddressWidth+1]);
    else if (wide_t'(each) <= f_lists)
      f_to_sums[each+1] = f_to_sums[each] + wide_t'(f_copy[each][64+:AddressWidth+1]);
    for (int unsigned part = 0; part < 2; part++) begin
      f_flaws[2*each+part+1] = f_flaws[2*each+part];
      f_tail_flaws[2*each+part+1] = f_tail_flaws[2*each+part];
      for (int unsigned lane = 8 * part; lane < 8 * part + 8; lane++) begin
        if (wide_t'(each) > f_lists && f_copy[each][8*lane+:8] != '0) begin
          if (wide_t'(each) == f_lists + f_data_beats && f_immediate[3:0] != '0
              && lane >= 32'(f_immediate[3:0]))
            f_flaws[2*each+part+1] = 1'b1;
          if (f_tail != '0 && wide_t'(each) == f_lists + f_data_beats + wide_t'(1)
              && lane >= 32'(f_tail))
            f_tail_flaws[2*each+part+1] = 1'b1;
        end
      end
    end
    if (wide_t'(each) <= f_lists && (f_copy[each][63:0] > Memory || f_copy[each][127:64] > Memory
        || wide_t'(f_copy[each][AddressWidth:0]) + wide_t'(f_copy[each][64+:AddressWidth+1])
            > wide_t'(Memory)
        || f_from_sums[each+1] >= wide_t'(Memory) || f_to_sums[each+1] >= wide_t'(Memory)))
      f_flaws[2*each+2] = 1'b1;
  end
  f_flaws[2*Beats+1] = 1'b1;
  f_tail_flaws[2*Beats+1] = f_tail_flaws[2*Beats];
end
wire wide_t f_from_sum = f_from_sums[Beats];
wire wide_t f_to_sum = f_to_sums[Beats];

wire f_is_form = !f_flaws[f_count] && !f_count[0] && f_count != '0 && f_beats == f_said
    && f_lists <= wide_t'(254) && 32'(f_immediate) <= Longest && f_tail <= 5'd16
    && ((f_kind == Nap && !f_remote && f_destinations == '0 && f_copy[0][31:24] == '0
         && (f_inside ? f_sources == '0 : f_immediate == '0 && 32'(f_from_sum) <= Longest))
        || (f_kind == Put && !f_remote && !f_inside && f_immediate == '0
            && f_copy[0][31:24] == '0)
        || (f_kind == Get && !f_inside && f_immediate == '0));
wire end_t f_far = f_remote ? f_peer : f_copy[0][40:32];
wire f_is_unequal = f_kind != Nap && f_from_sum != f_to_sum;
wire f_faults = g_fault || (g_asked && !source_fits);
wire [2:0] f_status = (g_void || !f_is_form) ? BadDescriptor : f_is_unequal ? UnequalSums
    : f_tail_flaws[f_count] ? BadDescriptor
    : 5'(f_far[EndWidth-1-:CpuWidth]) >= cpus ? Unreachable : f_faults ? SourceFault : Success;

// It asks for a source.
wire f_asks = f_mine && f_word[0] && f_word > 1 && 32'(f_word) < 2 * Beats
    && 32'(f_word) / 2 <= 32'(f_sources) && (f_kind != Get || in_remote)
    && in_word[AddressWidth-1:0] != '0;

// ---- What must leave.

wire f_is_get = f_kind == Get && !f_remote;
wire f_is_data = f_is_get || f_inside;
wire wide_t f_total = f_is_get ? f_beats * wide_t'(16) : f_inside ? wide_t'(f_immediate)
    : f_from_sum;
wire f_is_single = f_is_get || f_kind == Nap || f_total == '0;
wire [4:0] f_tail_says = f_is_get ? '0 : f_tail;
wire [Width-1:0] f_tail_beat = f_tail_says == '0 ? '0 : f_copy[f_beats-1];
wire [3:0] f_from_end = f_is_get ? 4'(f_beats) : f_inside ? 4'(f_data_beats + wide_t'(1))
    : 4'(f_sources + 8'd1);
wire [3:0] f_to_begin = 4'(f_sources + 8'd1);
wire [3:0] f_to_end = f_is_single ? f_to_begin : 4'(f_lists + wide_t'(1));
wire place_t f_place = oldest + place_t'(g_before);
wire f_active = g_kept && g_before == '0 && busy;

// The next entries with bytes, and the bytes of all that are to come.
logic [3:0] f_source, f_destination;
always_comb begin
  f_source = f_from_end;
  f_destination = f_to_end;
  for (int unsigned each = Beats - 1; each > 0; each--) begin
    if (f_copy[each][64+:AddressWidth] != '0) begin
      if (each >= 32'(g_source) && each < 32'(f_from_end)) f_source = 4'(each);
      if (each >= 32'(g_destination) && each < 32'(f_to_end)) f_destination = 4'(each);
    end
  end
end
wire address_t f_read_from = g_part ? g_from : f_copy[f_source][AddressWidth-1:0];
wire address_t f_rest = g_part ? g_rest : f_copy[f_source][64+:AddressWidth];
wire address_t f_to_multiple = address_t'(RequestBytes) - f_read_from % address_t'(RequestBytes);
wire address_t f_bytes = (f_rest < f_to_multiple) ? f_rest : f_to_multiple;
// The bytes behind this source and from this destination on.
wire wide_t f_behind = f_from_rests[f_source+4'd1];
wire wide_t f_move_left = f_to_rests[g_destination];
wire f_reads = f_active && read_valid && read_ready;
wire f_moves = f_active && move_valid && move_ready;
wire f_brings = f_active && data_valid && data_ready;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (f_takes) g_mid <= !in_last;
  g_asked <= f_asks;
  if (f_mine) begin
    g_words <= f_next;
    g_coming <= !in_last;
    g_pending <= in_last;
    g_void <= in_failed || in_refused || (g_void && !f_starts);
  end
  g_fault <= !f_starts && f_faults;
  if (g_pending && !judging) g_pending <= 1'b0;
  if (g_pending && (f_status == Success || f_remote || !report_valid || report_ready)) begin
    g_pending <= 1'b0;
    g_kept <= f_status == Success;
    g_before <= kept - places_t'(finishes);
    g_place <= newest;
    g_source <= 4'(!f_is_get);
    g_destination <= f_to_begin;
    g_part <= 1'b0;
    g_moved <= 1'b0;
  end
  if (finishes && g_kept) begin
    if (g_before == '0) g_kept <= 1'b0;
    else g_before <= g_before - places_t'(1);
  end
  if (f_reads) begin
    g_source <= (f_bytes == f_rest) ? f_source + 4'd1 : f_source;
    g_part <= f_bytes != f_rest;
    g_from <= f_read_from + f_bytes;
    g_rest <= f_rest - f_bytes;
  end
  if (f_brings) g_source <= g_source + 4'd1;
  if (f_moves) begin
    if (!f_is_single) g_destination <= f_destination + 4'd1;
    if (move_last) g_moved <= 1'b1;
  end
  if (rst) {g_mid, g_coming, g_pending, g_kept, g_asked, g_fault} <= '0;
end

// Steps until each side offers something, or has ended.
wire [7:0] f_from_steps = 8'd2 * (8'(current.from_end) - 8'(from_at)) + 8'(from_ahead);
wire [7:0] f_to_steps = 8'd2 * (8'(current.to_end) - 8'(to_at)) + 8'(to_ahead) + 8'(single_next)
    + 8'd2 * 8'(tail_next);
// The entry that is offered, or the first one that is not behind the memory.
wire [3:0] f_from_entry = 4'(from_at) - 4'(from_ahead) - 4'(read_valid);
wire [3:0] f_to_entry = 4'(to_at) - 4'(to_ahead && !tail_ahead) - 4'(move_valid);

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // No overflow: a word is taken exactly if a place is free for its descriptor, and no verdict
    // is due.
    p_bound : assert (32'(kept) <= Places);
    p_ready : assert (in_ready == (32'(kept) < Places && !judging));

    // A source is asked for as soon as it has come, and nothing else is.
    if (f_mine) begin
      p_asks : assert (source_valid == f_asks);
      if (f_asks) begin
        p_source :
        assert (source_function == in_function && source_length == in_word[AddressWidth-1:0]
            && source_address == f_copy[f_word/2][AddressWidth-1:0]);
      end
    end
    if (source_valid) p_quiet : assert (f_takes);

    // Exactly what is right is kept; what is not becomes a report with its reason, or is dropped.
    if (g_pending) p_kept : assert (keeps == (f_status == Success));
    if (!$past(rst)) begin
      if ($past(g_pending)) begin
        p_dropped : assert (dropped == $past(f_status != Success && f_remote));
        if ($past(f_status != Success && !f_remote && (!report_valid || report_ready))) begin
          // shows: C-29
          p_reported :
          assert (report_valid && report_status == $past(f_status)
              && report_function == f_function && report_address == f_address);
          p_named :
          assert ((report_status == BadDescriptor)
              ? report_pair == '0 && report_primitive == Nap
                && report_peer == {cpu, f_function, PairWidth'(0)}
              : report_pair == f_copy[0][21:20] && report_primitive == f_kind
                && report_peer == f_copy[0][40:32]);
        end
      end
      if (report_valid) begin
        p_only : assert ($past(judging && !keeps) || $past(report_valid && !report_ready));
      end
    end

    // Reads are the sources, in their order, each byte once, and cut at multiples.
    if (f_active && read_valid) begin
      p_reads : assert (!f_is_data && f_source != f_from_end);
      p_address : assert (read_address == f_read_from && read_function == f_function);
      p_bytes : assert (read_bytes == SizeWidth'(f_bytes));
      p_ends : assert (read_ends == (f_bytes == f_rest && f_behind == '0));
    end
    // Moves are the destinations that have bytes, in their order, or one for all bytes.
    if (f_active && move_valid) begin
      p_moves : assert (!g_moved && (f_is_single || f_destination != f_to_end));
      if (f_is_single) begin
        p_single : assert (move_address == '0 && wide_t'(move_bytes) == f_total && move_last);
      end else begin
        // shows: C-28
        p_destination :
        assert (move_address == f_copy[f_destination][AddressWidth-1:0]
            && move_bytes == f_copy[f_destination][64+:AddressWidth]);
        p_last : assert (move_last == (wide_t'(move_bytes) == f_move_left));
      end
      p_says :
      assert (move_remote == f_remote && move_primitive == (f_remote ? Put : f_kind)
          && move_traffic_class == f_copy[0][18:16]
          && move_magic == (f_remote ? f_copy[0][31:24] : f_copy[0][15:8])
          && move_wants_event == (f_kind == Nap || (f_copy[0][5] && !f_is_get))
          && wide_t'(move_total) == f_total && move_descriptor == f_address);
      p_between :
      assert (move_source == {cpu, f_function, f_remote ? f_pair : f_copy[0][21:20]}
          && move_destination == f_far);
      p_tail : assert (move_tail_bytes == f_tail_says && move_tail == f_tail_beat);
    end
    // Beats of data are those of the descriptor, in their order.
    if (f_active && data_valid) begin
      p_data :
      assert (f_is_data && g_source < f_from_end && data == f_copy[g_source]
          && data_get == f_is_get);
      p_to :
      assert (data_ends == (g_source + 4'd1 == f_from_end)
          && data_to == (data_ends ? 4'(f_total - wide_t'(1)) : 4'd15));
    end
    // It ends when all of it has left.
    if (f_active && finishes) begin
      p_all : assert (g_moved && (f_is_data ? g_source == f_from_end : f_source == f_from_end));
    end

    // No deadlock: each side comes nearer to its next output in each cycle, whatever the other
    // one waits for. One operation begins behind the other, and a verdict waits for a report only.
    if (!$past(rst)) begin
      if ($past(f_active && f_from_steps != '0 && !read_valid && !data_valid)) begin
        p_from_goes_on : assert (f_from_steps < $past(f_from_steps));
      end
      if ($past(f_active && f_to_steps != '0 && !move_valid)) begin
        p_to_goes_on : assert (f_to_steps < $past(f_to_steps));
      end
      if ($past(kept != '0 && !busy)) p_begins : assert (busy);
      if ($past(judging && (!report_valid || report_ready))) p_judges : assert (!judging);
    end
    if (f_active && f_from_steps == '0 && f_to_steps == '0 && !read_valid && !move_valid) begin
      p_finishes : assert (finishes);
    end

    // What is offered stays until it is taken.
    if (!$past(rst)) begin
      if ($past(f_active && read_valid && !read_ready)) begin
        p_read_stays :
        assert (read_valid && read_address == $past(read_address)
            && read_bytes == $past(read_bytes) && read_ends == $past(read_ends));
      end
      if ($past(f_active && move_valid && !move_ready)) begin
        p_move_stays :
        assert (move_valid && move_address == $past(move_address)
            && move_bytes == $past(move_bytes) && move_operation == $past(move_operation));
      end
      if ($past(f_active && data_valid && !data_ready)) begin
        p_data_stays : assert (data_valid && data == $past(data));
      end
      if ($past(report_valid && !report_ready)) begin
        p_report_stays :
        assert (report_valid && report_status == $past(report_status)
            && report_address == $past(report_address) && report_pair == $past(report_pair));
      end
    end

    // So that induction needs no bound: registers and memories follow the shadow.
    i_at : assert (32'(at) <= Beats && !(half && is_full));
    i_mid : assert (g_mid == ({at, half} != '0 && !judging));
    if ({at, half} != '0 || judging) i_room : assert (32'(kept) < Places);
    if (judging) i_judged : assert ({at, half} != '0);
    if ({at, half} == '0) i_idle : assert (!bad && !bad_tail && !fault && !asked);
    i_busy : assert (!busy || kept != '0);
    if (!busy) begin
      i_rests :
      assert ({from_ahead, to_ahead, tail_next, tail_ahead, single_next, read_valid, move_valid}
          == '0);
    end
    i_one : assert (!(g_coming && (g_pending || g_kept)) && !(g_pending && g_kept));
    if (g_coming) begin
      i_coming :
      assert (g_mid && g_words != '0 && (g_words < f_count || 32'(f_count) > 2 * Beats)
          && 32'(g_words) <= 2 * Beats + 1);
    end
    if (g_pending) begin
      i_pending :
      assert (judging && g_words == f_count && f_count != '0 && 32'(f_count) <= 2 * Beats + 1);
    end
    if (g_coming || g_pending) begin
      i_words :
      assert (g_words == {at, half} + words_t'(bad && is_full && 32'(g_words) > 2 * Beats));
      i_bad :
      assert (bad == (g_void || f_flaws[g_words])
          && (bad_tail == f_tail_flaws[g_words] || 32'(g_words) > 2 * Beats));
      i_asked : assert (asked == g_asked && fault == g_fault);
      i_sums :
      assert (sources_sum == address_t'(f_from_sums[at])
          && destinations_sum == address_t'(f_to_sums[at]));
      i_header :
      assert (header == {f_copy[0][63:48], f_copy[0][40:32], f_copy[0][31:24], f_copy[0][21:20],
          f_copy[0][18:16], f_copy[0][15:8], f_copy[0][5:0]});
      if (g_words >= 2) begin
        i_lengths : assert (tail_bytes == f_tail && immediate_bytes == f_immediate);
        i_parts :
        assert (wide_t'(destinations_end) == f_lists
            && wide_t'(immediate_end) == f_lists + f_data_beats);
      end
      if (half) i_low : assert (low == f_copy[at][63:0]);
      for (int unsigned each = 0; each < Beats; each++) begin
        if (each < 32'(at)) begin
          assert (f_from[{newest, BeatWidth'(each)}] == f_copy[each]);
          assert (f_to[{newest, BeatWidth'(each)}] == f_copy[each]);
        end
      end
    end
    if (g_pending) begin
      i_meta :
      assert (remote == f_remote && of_function == f_function && of_pair == f_pair
          && peer == f_peer && descriptor == f_address);
    end
    i_rests_sum : assert (f_from_rests[1] == f_from_sum && f_to_rests[1] == f_to_sum);
    if (g_kept) begin
      i_before : assert (g_before < kept && g_place == f_place);
      i_right :
      assert (f_is_form && !f_is_unequal && !f_tail_flaws[f_count] && 32'(f_count) <= 2 * Beats);
      i_operation : assert (operations[g_place] == f_operation);
      for (int unsigned each = 0; each < Beats; each++) begin
        if (each < 32'(f_beats)) begin
          assert (f_from[{g_place, BeatWidth'(each)}] == f_copy[each]);
          assert (f_to[{g_place, BeatWidth'(each)}] == f_copy[each]);
        end
      end
      if (!f_active) begin
        i_unbegun :
        assert (g_source == 4'(!f_is_get) && g_destination == f_to_begin && !g_part
            && !g_moved);
      end
    end
    if (f_active) begin
      i_current : assert (current == f_operation);
      i_from : assert (4'(from_at) <= f_from_end && 4'(from_at) >= 4'(!f_is_get));
      i_to : assert (4'(to_at) <= f_to_end && 4'(to_at) >= f_to_begin);
      if (from_ahead) begin
        i_ahead :
        assert (4'(from_at) != 4'(!f_is_get) && from_beat == f_copy[4'(from_at) - 4'd1]);
      end
      if (f_is_data) begin
        i_data : assert (g_source == f_from_entry && !read_valid && !g_part);
      end else begin
        i_source : assert (g_source != '0 && g_source <= f_from_end);
        if (read_valid) begin
          i_read :
          assert (f_source == f_from_entry && f_source != f_from_end
              && (!g_part || g_source == f_source)
              && read_address == f_read_from && read_length == f_rest && f_rest != '0
              && wide_t'(read_left) == f_behind + wide_t'(f_rest));
        end else begin
          i_no_read :
          assert (!g_part && f_source >= f_from_entry && g_source <= f_from_entry
              && wide_t'(read_left) == f_from_rests[g_source]);
        end
      end
      i_tail_next : assert (!(tail_next && (tail_ahead || to_ahead || move_valid)));
      i_tail_state :
      assert ((tail_next || tail_ahead) ? f_tail_says != '0 && 4'(to_at) == f_to_begin
          && !move_valid : move_tail == f_tail_beat);
      if (tail_ahead) i_tail_beat : assert (to_ahead && to_beat == f_tail_beat);
      if (to_ahead && !tail_ahead) begin
        i_to_ahead :
        assert (4'(to_at) != f_to_begin && to_beat == f_copy[4'(to_at) - 4'd1]);
      end
      if (f_is_single) begin
        i_single :
        assert (g_moved == !(single_next || move_valid) && !(single_next && move_valid)
            && (g_moved || wide_t'(move_left) == f_total) && g_destination == f_to_begin);
        if (move_valid) i_all_bytes : assert (wide_t'(move_bytes) == f_total && move_address == '0);
      end else begin
        i_list :
        assert (!single_next && wide_t'(move_left) == f_move_left && g_moved == (f_move_left == '0)
            && g_destination >= f_to_begin && g_destination <= f_to_end);
        if (move_valid) begin
          i_move :
          assert (f_destination == f_to_entry && f_destination != f_to_end
              && move_address == f_copy[f_destination][AddressWidth-1:0]
              && move_bytes == f_copy[f_destination][64+:AddressWidth]);
        end else begin
          i_no_move : assert (f_destination >= f_to_entry && g_destination <= f_to_entry);
        end
      end
    end
  end
end

// What is kept of it.
operation_t f_operation;
always_comb begin
  f_operation.remote = f_remote;
  f_operation.kind = f_remote ? Put : f_kind;
  f_operation.traffic_class = f_copy[0][18:16];
  f_operation.magic = f_remote ? f_copy[0][31:24] : f_copy[0][15:8];
  f_operation.source = {f_function, f_remote ? f_pair : f_copy[0][21:20]};
  f_operation.destination = f_far;
  f_operation.wants_event = f_kind == Nap || (f_copy[0][5] && !f_is_get);
  f_operation.tail_bytes = f_tail_says;
  f_operation.is_data = f_is_data;
  f_operation.is_single = f_is_single;
  f_operation.from_end = beats_t'(f_from_end);
  f_operation.to_begin = beats_t'(f_to_begin);
  f_operation.to_end = beats_t'(f_to_end);
  f_operation.tail_at = beats_t'(f_beats) - beats_t'(1);
  f_operation.total = address_t'(f_total);
  f_operation.descriptor = f_address;
end
