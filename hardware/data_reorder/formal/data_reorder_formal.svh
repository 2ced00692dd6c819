// What is proved of `data_reorder`, without bound, by k-induction.
//
// A shadow sees the ports only. It knows which tags wait for completions, and follows one read,
// which is chosen freely, and in it one beat. Requests, completions, lost tags and the receiver are
// free: any completion may come at any time, with any tag, length and count.

localparam int unsigned Lanes = 2 ** LaneWidth;

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyseq *)logic f_pick;
(* anyconst *)count_t chosen;

// ---- The shadow of all reads.

// Tags that wait for completions; what comes back was free since the cycle before.
logic [2**TagWidth-1:0] g_out, f_out;
// Reads whose last beat has not left.
logic [SlotWidth+1:0] g_reads;
// A completion has begun; its tag, and whether that waited for it all the time.
logic g_mid, g_piece_out;
tag_t g_piece_tag;

wire f_leaves = out_valid && out_ready;
wire f_gone = f_leaves && out_last;
wire tag_t f_piece_tag = g_mid ? g_piece_tag : in_tag;
wire f_piece_lost = lost_valid && lost_tag == f_piece_tag;
wire f_piece_out = (g_mid ? g_piece_out : f_out[in_tag]) && !f_piece_lost;
wire f_piece_ends = in_valid && in_last;
wire left_t f_asked = (left_t'(read_lane) + left_t'(read_bytes) + left_t'(Lanes - 1)) >> LaneWidth;

always_comb begin
  f_out = g_out;
  if (free_valid) f_out[free_tag] = 1'b0;
end

// ---- The followed read.

logic g_follows;
tag_t g_tag;
lane_t g_lane;
left_t g_bytes, g_lacks;
// Beats that it has, that have come, and that have left.
count_t g_beats, g_came, g_beat;
// Reads before it whose last beat has not left.
logic [SlotWidth+1:0] g_before;
// It waits for completions; it has failed; its tag comes back.
logic g_waits, g_failed, g_freed;
// The chosen beat has come.
logic g_there;
logic [Width-1:0] g_data;
slot_t g_slot;

// Of the completion that comes: it is for this read, and has what that lacks next; its beats so
// far; the chosen one among them.
logic g_for, g_fits, g_fails, g_seen;
left_t g_size;
count_t g_wants, g_got;
logic [Width-1:0] g_seen_data;

wire f_lost = lost_valid && lost_tag == g_tag;
wire f_for = (g_mid ? g_for : g_waits && in_tag == g_tag) && !f_lost;
wire lane_t f_lane = (g_came == '0) ? g_lane : '0;
wire left_t f_end = left_t'(f_lane) + left_t'(in_bytes);
wire left_t f_size = g_mid ? g_size : left_t'(in_bytes);
wire count_t f_wants = g_mid ? g_wants : count_t'((f_end + left_t'(Lanes - 1)) >> LaneWidth);
wire f_is_cut_well = in_bytes == in_remaining || lane_t'(f_end) == '0;
wire f_fits = g_mid ? g_fits : in_bytes != '0 && in_bytes <= in_remaining
    && left_t'(in_remaining) == g_lacks && f_is_cut_well;
wire f_fails = g_mid ? g_fails : in_failed;
wire count_t f_got = g_mid ? g_got : '0;
wire f_is_chosen = f_got != f_wants && g_came + f_got == chosen;
wire f_seen = f_is_chosen || (g_mid && g_seen);

wire f_ends = f_piece_ends && f_for;
wire f_comes = f_ends && f_fits && !f_fails && f_got + count_t'(1) == f_wants;
wire f_breaks = f_ends && f_fails;
wire f_done = f_breaks || (f_comes && g_lacks == f_size);

// It is at the output, or the next one there.
wire f_at_port = g_follows && g_before == '0;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (in_valid) begin
    g_piece_tag <= f_piece_tag;
    g_size <= f_size;
    g_wants <= f_wants;
    g_fits <= f_fits;
    g_fails <= f_fails;
    g_got <= f_got + count_t'(f_got != f_wants);
    g_seen <= f_seen;
    if (f_is_chosen) g_seen_data <= in_data;
  end
  g_piece_out <= f_piece_out;
  g_for <= f_for;
  g_freed <= f_done;
  if (f_comes) begin
    g_lacks <= g_lacks - f_size;
    g_came  <= g_came + f_wants;
    if (f_seen) begin
      g_there <= 1'b1;
      g_data  <= f_is_chosen ? in_data : g_seen_data;
    end
  end
  if (f_done || (g_waits && f_lost)) g_waits <= 1'b0;
  if (f_breaks || (g_waits && f_lost)) g_failed <= 1'b1;
  if (f_at_port) g_beat <= g_beat + count_t'(f_leaves);
  if (f_gone && g_follows) begin
    if (f_at_port) g_follows <= 1'b0;
    else g_before <= g_before - 1'b1;
  end
  if (accepts && f_pick && !g_follows) begin
    g_follows <= 1'b1;
    g_tag <= read_tag;
    g_lane <= read_lane;
    g_bytes <= left_t'(read_bytes);
    g_lacks <= left_t'(read_bytes);
    g_beats <= count_t'(f_asked);
    g_came <= '0;
    g_beat <= '0;
    g_before <= g_reads - (SlotWidth + 2)'(f_gone);
    g_waits <= 1'b1;
    g_failed <= 1'b0;
    g_there <= 1'b0;
    g_slot <= newest;
  end
  g_out   <= f_out;
  g_reads <= g_reads + (SlotWidth + 2)'(accepts) - (SlotWidth + 2)'(f_gone);
  if (lost_valid) g_out[lost_tag] <= 1'b0;
  if (accepts) g_out[read_tag] <= 1'b1;
  if (in_valid) g_mid <= !in_last;
  if (rst) begin
    g_out   <= '0;
    g_reads <= '0;
    {g_mid, g_follows, g_waits, g_freed} <= '0;
  end
end

// ---- Places as distances from the next beat that leaves the memory.

// The followed read has not left the memory; how many reads are before it there; its first beat,
// and the chosen one.
wire f_is_in = g_follows && !(f_at_port && out_valid && out_last);
wire slot_t f_position = g_slot - oldest;
wire count_t f_base = tail_of[g_slot] - g_beats;
wire count_t f_chosen_at = f_base + chosen;
wire count_t f_moved = (f_position == '0) ? read - f_base : '0;
wire lane_t f_pad = -lane_t'(left_t'(g_lane) + g_bytes);
// Where its beat at the output ends, and what it lacks begins.
wire lane_t f_to = out_last ? ~f_pad : '1;
wire lane_t f_lacks_lane = (g_came == '0) ? -g_lane : '0;
wire count_t f_held = reserved - read;

// Of each read in the memory, in order: the places behind the one before it, behind what has come
// of it, and behind it.
logic [Reads-1:0][CountWidth-1:0] f_begins, f_goes_on, f_tail;
logic [Reads-1:0][SizeWidth:0] f_lacks;
logic [Reads-1:0][LaneWidth-1:0] f_pads;
logic [Reads-1:0] f_is_failed;
slot_t f_number;
always_comb begin
  for (int unsigned at = 0; at < Reads; at++) begin
    f_number = oldest + slot_t'(at);
    f_tail[at] = tail_of[f_number] - read;
    f_lacks[at] = left_of[f_number];
    f_pads[at] = pad_of[f_number];
    f_is_failed[at] = failed[f_number];
    f_goes_on[at] = f_tail[at] - beats_of(f_lacks[at]);
    f_begins[at] = '0;
    if (at > 0) f_begins[at] = f_tail[at-1];
  end
end

// The position of the read of each tag, and of the piece that comes.
logic [2**TagWidth-1:0][SlotWidth-1:0] f_place;
always_comb begin
  for (int unsigned at = 0; at < 2 ** TagWidth; at++) f_place[at] = slot_of[at] - oldest;
end
wire slot_t f_piece_place = piece_slot - oldest;
wire count_t f_piece_at = piece_at - read;
wire count_t f_piece_end = piece_end - read;

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A request is taken exactly if its tag does not wait, and all of it has room.
    p_ready :
    assert (read_ready == (read_bytes != '0 && !f_out[read_tag] && 32'(reads) < Reads
        && 32'(f_asked) <= 32'(room)));
    if (accepts) p_unique : assert (!f_out[read_tag]);
    // It never holds more than it has places, and all are free once all reads have left.
    p_bound : assert (32'(room) <= Beats);
    if (reads == '0) p_drained : assert (32'(room) == Beats);
    p_count : assert (32'(g_reads) == 32'(reads) + 32'(out_valid && out_last));

    // What leaves is the next beat of the next read, as it came, and not before it came.
    if (f_at_port && out_valid && !out_failed) begin
      p_there : assert (g_beat < g_came);
      // shows: C-35
      if (g_beat == chosen) p_same : assert (g_there && out_data == g_data);
      p_last : assert (out_last == (g_beat + count_t'(1) == g_beats));
      p_from : assert (out_from == ((g_beat == '0) ? g_lane : '0));
      p_to : assert (out_to == f_to);
    end
    // Only what has failed ends so.
    if (f_at_port && out_valid && out_failed) p_failed : assert (g_failed && out_last);

    // A tag comes back in the cycle after its last completion, or one that failed; once, and not
    // before.
    if (g_freed) p_freed : assert (free_valid && free_tag == g_tag);
    if (g_waits) p_held : assert (!(free_valid && free_tag == g_tag));
    if (free_valid) p_once : assert (g_out[free_tag]);

    if (!$past(rst)) begin
      // What waits is offered in the next cycle at the latest: a read that failed, too.
      if ($past(f_at_port && !out_valid && (g_beat < g_came || g_failed))
          || $past(f_at_port && f_leaves && !out_last
                   && (g_beat + count_t'(1) < g_came || g_failed))
          || $past(g_follows && g_before == 1 && f_gone && (g_came != '0 || g_failed))) begin
        p_offered : assert (out_valid);
      end
      if ($past(out_valid && !out_ready)) begin
        p_stays :
        assert (out_valid && out_last == $past(out_last) && out_failed == $past(out_failed)
            && out_from == $past(out_from) && out_to == $past(out_to)
            && out_data == $past(out_data));
      end
      // A completion for a tag that does not wait is told, and so is one whose bytes are not
      // those that its read lacks next. No other one is.
      p_unexpected : assert (unexpected == $past(f_piece_ends && !f_piece_out));
      if ($past(f_ends)) begin
        p_mismatched : assert (mismatched == !$past(f_fails || f_comes));
      end
      if (mismatched) p_only : assert ($past(f_piece_ends && f_piece_out));
    end

    // So that induction needs no bound: registers and memories follow the shadow.
    i_out : assert (waits == f_out);
    i_mid : assert (mid == g_mid);
    i_begun : assert (!out_valid || out_last != begun);
    i_some : assert (!begun || reads != '0);
    i_reads : assert (32'(reads) <= Reads);
    i_held : assert (32'(f_held) <= Beats);
    if (reads == '0) i_none : assert (f_held == '0);
    for (int unsigned at = 0; at < Reads; at++) begin
      if (at < 32'(reads)) begin
        assert (f_tail[at] > f_begins[at]);
        assert (f_tail[at] <= f_held);
        if (at + 1 == 32'(reads)) assert (f_tail[at] == f_held);
        assert (32'(f_lacks[at]) <= Beats * Lanes);
        assert (f_goes_on[at] >= f_begins[at] && f_goes_on[at] <= f_tail[at]);
        assert (f_lacks[at] == '0 || f_lacks[at] > left_t'(f_pads[at]));
      end
    end
    for (int unsigned at = 0; at < 2 ** TagWidth; at++) begin
      if (waits[at]) begin
        assert (32'(f_place[at]) < 32'(reads));
        assert (!f_is_failed[f_place[at]] && f_lacks[f_place[at]] != '0);
        for (int unsigned other = 0; other < at; other++) begin
          assert (!waits[other] || slot_of[other] != slot_of[at]);
        end
      end
    end
    if (mid) begin
      i_piece : assert (piece_tag == g_piece_tag && piece_is_ours == g_piece_out);
      if (piece_is_ours) begin
        i_ours : assert (waits[piece_tag] && slot_of[piece_tag] == piece_slot);
        if (piece_fits && !piece_failed) begin
          i_at :
          assert (f_piece_at >= f_goes_on[f_piece_place] && f_piece_at <= f_piece_end
              && f_piece_end > f_goes_on[f_piece_place] && f_piece_end <= f_tail[f_piece_place]);
          i_end : assert (f_piece_end == f_tail[f_piece_place] - beats_of(piece_left));
          i_left :
          assert (piece_left == '0 || (piece_left > left_t'(f_pads[f_piece_place])
              && piece_left < f_lacks[f_piece_place]));
        end
      end
    end
    i_freed : assert (!free_valid || !waits[free_tag]);
    if (g_waits) i_waits : assert (f_is_in && waits[g_tag] && slot_of[g_tag] == g_slot);
    if (g_follows) begin
      i_before : assert (g_before < (SlotWidth + 2)'(g_reads) && g_beats != '0);
      i_came : assert (g_came <= g_beats && g_beat < g_beats && g_bytes != '0);
      i_there : assert (chosen >= g_beats || g_there == (chosen < g_came));
      i_open : assert (g_waits == (!g_failed && g_lacks != '0));
      i_lacks : assert (g_lacks <= g_bytes);
    end
    if (f_is_in) begin
      i_position :
      assert (32'(f_position) < 32'(reads)
          && 32'(g_before) == 32'(f_position) + 32'(out_valid && out_last));
      i_failed : assert (failed[g_slot] == g_failed);
      i_pad : assert (pad_of[g_slot] == f_pad && lane_of[g_slot] == g_lane);
      i_left_of :
      assert (left_of[g_slot] == ((g_lacks == '0) ? '0 : g_lacks + left_t'(f_pad)));
      i_size : assert (left_t'(g_beats) << LaneWidth == g_bytes + left_t'(f_pad) + left_t'(g_lane));
      i_goes_on : assert (g_came == g_beats - beats_of(left_of[g_slot]));
      i_lane : assert (lane_t'(left_of[g_slot]) == f_lacks_lane);
      if (f_position == '0) begin
        i_moved : assert (f_moved == g_beat + count_t'(begun && out_valid) && f_moved <= g_came);
        i_begins : assert (begun == (f_moved != '0));
      end else begin
        i_not_begun : assert (g_beat == '0 && f_base - read == f_begins[f_position]);
      end
      if (g_there && chosen < g_beats && f_moved <= chosen) begin
        i_data : assert (f_beats[f_chosen_at[AddressWidth-1:0]] == g_data);
      end
      if (mid) begin
        i_for : assert (g_for == (piece_is_ours && piece_slot == g_slot));
      end
    end
    if (mid && g_for) begin
      i_for_in : assert (f_is_in && g_waits && piece_tag == g_tag && piece_slot == g_slot);
      i_fits : assert (piece_fits == g_fits && piece_failed == g_fails);
      if (g_fits && !g_fails) begin
        i_got : assert (piece_at == f_base + g_came + g_got);
        i_wants : assert (piece_end == f_base + g_came + g_wants && g_got <= g_wants);
        i_size_left :
        assert (piece_left == ((g_size == g_lacks) ? '0 : left_of[g_slot] - g_size)
            && g_size <= g_lacks && g_size != '0 && lane_t'(piece_left) == '0);
        i_seen : assert (g_seen == (chosen >= g_came && chosen - g_came < g_got));
        if (g_seen) i_seen_data : assert (f_beats[f_chosen_at[AddressWidth-1:0]] == g_seen_data);
      end
    end
  end
end
