// What is proved of `desc_fetch`, without bound, by k-induction.
//
// A shadow sees the ports only. It knows which tags wait and what their reads lack, and follows one
// descriptor, which is chosen freely, and in it one beat. Nothing is assumed: any doorbell, any
// completion and any lost tag may come at any time, and words may be taken at any time.

localparam int unsigned Bytes = Width / 8;

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyseq *)logic f_pick;
(* anyconst *)beat_t chosen;

typedef logic [PlaceWidth+1:0] inside_t;
// Beats of all descriptors.
typedef logic [PlaceWidth+BeatWidth+1:0] all_beats_t;

// ---- Doorbells: how many have come whose last word has not left, and the beats of these that were
// not asked for.

inside_t g_inside;
all_beats_t g_to_ask;

wire f_rings = bell_valid && bell_ready;
wire [15:0] f_length = bell_word[63:48];
wire [AddressWidth-1:0] f_address = bell_word[39:0];
wire f_is_wrong = bell_outside || bell_word[47:40] != '0 || f_length == '0
    || f_length % 16'(Bytes) != '0 || 32'(f_length) > Beats * Bytes
    || f_address % AddressWidth'(Bytes) != '0
    || 64'(f_address) + 64'(f_length) > 64'd1 << AddressWidth;
wire beats_t f_beats_rung = f_is_wrong ? '0 : beats_t'(f_length / 16'(Bytes));
wire f_asks = read_valid && read_ready;
wire beats_t f_read = beats_t'(read_bytes / size_t'(Bytes));
wire f_leaves = out_valid && out_ready;
wire f_gone = f_leaves && out_last;

// ---- Reads: tags that wait, and beats that their reads lack.

logic [2**TagWidth-1:0] g_out;
beats_t g_lacks[2**TagWidth];

// ---- The completion that comes: its tag, and whether that waited for it all the time; whether it
// is what the read lacks next; its beats by its bytes, and those that have come.

logic g_mid, g_piece_out, g_fits, g_fails;
tag_t g_piece_tag;
beats_t g_size, g_got;

wire tag_t f_tag = g_mid ? g_piece_tag : in_tag;
wire f_piece_out = (g_mid ? g_piece_out : g_out[in_tag]) && !(lost_valid && lost_tag == f_tag);
wire f_fits = g_mid ? g_fits : in_bytes != '0 && in_bytes % size_t'(Bytes) == '0
    && in_bytes <= in_remaining && 32'(in_remaining) == 32'(g_lacks[in_tag]) * Bytes;
wire f_fails = g_mid ? g_fails : in_failed;
wire beats_t f_size = g_mid ? g_size : beats_t'(in_bytes / size_t'(Bytes));
wire beats_t f_got = g_mid ? g_got : '0;
wire f_brings = in_valid && f_piece_out && f_fits && !f_fails && f_got != f_size;
wire f_ends = in_valid && in_last;
wire f_comes = f_brings && in_last && f_got + beats_t'(1) == f_size;
wire f_breaks = f_ends && f_piece_out && f_fails;
wire f_done = f_breaks || (f_comes && f_size == g_lacks[f_tag]);
wire f_lost = lost_valid && g_out[lost_tag];

// A read has ended in the cycle before.
logic g_freed;
tag_t g_freed_tag;

// ---- The followed descriptor.

logic g_follows, g_refused, g_failed;
logic [FunctionWidth-1:0] g_function;
address_t g_address;
// Its beats, those that were asked for, and its words that have left.
beats_t g_beats, g_asked;
logic [BeatWidth+1:0] g_word;
// Descriptors before it whose last word has not left, and their beats that were not asked for.
inside_t g_before;
all_beats_t g_ahead;
// Its reads, by tag, and the beat that comes next.
logic [2**TagWidth-1:0] g_mine;
beats_t g_at[2**TagWidth];
// The chosen beat: what came for it last, and whether that counts.
logic g_there;
logic [Width-1:0] g_data, g_last;
// Cycles without a read, though it needs one and the tag is free.
inside_t g_idle;
// It was refused and not offered in the cycle before.
logic g_waited;
place_t g_place;

wire f_picks = f_rings && f_pick && !g_follows;
wire f_is_turn = g_follows && g_ahead == '0 && g_asked != g_beats;
wire f_mine = f_piece_out && g_mine[f_tag];
wire f_is_chosen = f_brings && f_mine && g_at[f_tag] + f_got == beats_t'(chosen);
wire f_has_chosen = beats_t'(chosen) >= g_at[f_tag] && beats_t'(chosen) - g_at[f_tag] < f_size;
// Nothing that it lacks can come any more.
wire f_is_over = g_ahead == '0 && g_asked == g_beats && (g_out & g_mine) == '0;
wire f_at_port = g_follows && g_before == '0;
wire f_needs = g_follows && g_asked != g_beats && !read_valid && !g_out[read_tag];
wire address_t f_from = g_address + address_t'(g_asked) * address_t'(Bytes);
// Up to the next multiple of the longest read.
wire [31:0] f_to_end = Request - 32'(f_from / address_t'(Bytes)) % Request;
wire [31:0] f_rest = 32'(g_beats - g_asked);

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_inside <= g_inside + inside_t'(f_rings) - inside_t'(f_gone);
  g_to_ask <= g_to_ask + (f_rings ? all_beats_t'(f_beats_rung) : '0)
      - (f_asks ? all_beats_t'(f_read) : '0);
  if (in_valid) begin
    g_mid <= !in_last;
    g_piece_tag <= f_tag;
    g_fits <= f_fits;
    g_fails <= f_fails;
    g_size <= f_size;
    g_got <= f_got + beats_t'(f_got != f_size);
  end
  g_piece_out <= f_piece_out;
  g_freed <= f_done;
  g_freed_tag <= f_tag;
  if (f_comes) begin
    g_lacks[f_tag] <= g_lacks[f_tag] - f_size;
    g_at[f_tag] <= g_at[f_tag] + f_size;
  end
  if (f_done) g_out[f_tag] <= 1'b0;
  if (f_lost) g_out[lost_tag] <= 1'b0;
  if (f_asks) begin
    g_out[read_tag] <= 1'b1;
    g_mine[read_tag] <= f_is_turn;
    g_lacks[read_tag] <= f_read;
    g_at[read_tag] <= g_asked;
  end

  if ((f_breaks && f_mine) || (f_lost && g_mine[lost_tag])) g_failed <= 1'b1;
  if (f_is_chosen) g_last <= in_data;
  if (f_comes && f_mine && f_has_chosen) begin
    g_there <= 1'b1;
    g_data  <= f_is_chosen ? in_data : g_last;
  end
  if (f_asks && f_is_turn) g_asked <= g_asked + f_read;
  if (f_asks && g_ahead != '0) g_ahead <= g_ahead - all_beats_t'(f_read);
  if (f_at_port && f_leaves) g_word <= g_word + (BeatWidth + 2)'(1);
  if (f_gone && !f_at_port) g_before <= g_before - inside_t'(1);
  if (f_gone && f_at_port) g_follows <= 1'b0;
  g_idle <= f_needs ? g_idle + inside_t'(1) : '0;
  g_waited <= f_at_port && !out_valid && g_refused;
  if (f_picks) begin
    g_follows <= 1'b1;
    g_refused <= f_is_wrong;
    g_function <= bell_function;
    g_address <= f_address;
    g_beats <= f_beats_rung;
    g_before <= g_inside - inside_t'(f_gone);
    g_ahead <= g_to_ask - (f_asks ? all_beats_t'(f_read) : '0);
    g_place <= newest;
    g_mine <= '0;
    {g_asked, g_word, g_failed, g_there} <= '0;
  end
  if (rst) begin
    g_out <= '0;
    {g_inside, g_to_ask, g_mid, g_freed, g_follows, g_idle, g_waited} <= '0;
  end
end

// ---- For induction: the place of the followed descriptor, places in their order, and what was not
// asked for of those that are in the way.

wire f_is_in = g_follows && !(f_at_port && out_valid && out_last);
wire inside_t f_position = g_before - inside_t'(out_valid && out_last);
wire inside_t f_turn = inside_t'(jobs) - inside_t'(unasked);
wire place_t f_place = oldest + place_t'(f_position);
wire place_t f_asking = oldest + place_t'(f_turn);
wire beat_t f_piece_at = at_of[g_piece_tag] + beat_t'(g_got);
all_beats_t f_all_to_ask, f_ahead;
tags_t f_open_of[Places];
place_t f_ordered[Places];
always_comb begin
  f_all_to_ask = -all_beats_t'(asked);
  f_ahead = -all_beats_t'(asked);
  for (int unsigned each = 0; each < Places; each++) begin
    f_ordered[each] = oldest + place_t'(each);
    if (each >= 32'(f_turn) && each < 32'(jobs)) begin
      f_all_to_ask = f_all_to_ask + all_beats_t'(beats_of[f_ordered[each]]);
      if (each < 32'(f_position)) f_ahead = f_ahead + all_beats_t'(beats_of[f_ordered[each]]);
    end
    f_open_of[each] = '0;
    for (int unsigned at = 0; at < 2 ** TagWidth; at++) begin
      f_open_of[each] = f_open_of[each] + tags_t'(waits[at] && place_of[at] == place_t'(each));
    end
  end
end
// The chosen beat is one that a read lacks.
logic f_lacks_chosen;
always_comb begin
  f_lacks_chosen = 1'b0;
  for (int unsigned at = 0; at < 2 ** TagWidth; at++) begin
    if (g_out[at] && g_mine[at] && beats_t'(chosen) >= g_at[at]
        && beats_t'(chosen) - g_at[at] < g_lacks[at]) begin
      f_lacks_chosen = 1'b1;
    end
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A doorbell is taken exactly if a place is free; a place is free once the last word of its
    // descriptor is at the output.
    p_bound : assert (32'(g_inside) - 32'(out_valid && out_last) <= Places);
    p_ready : assert (bell_ready == (32'(g_inside) - 32'(out_valid && out_last) < Places));

    // What is read is what doorbells name, in their order, and once.
    if (read_valid) begin
      p_asked : assert (g_to_ask != '0);
      p_unique : assert (!g_out[read_tag]);
      if (f_is_turn) begin
        // shows: C-30
        p_address : assert (read_address == f_from && read_function == g_function);
        p_bytes : assert (32'(read_bytes) == ((f_to_end < f_rest) ? f_to_end : f_rest) * Bytes);
      end
    end
    // A read that is needed is offered, but for a cycle for each refused doorbell before it.
    if (f_needs) p_asks : assert (32'(g_idle) + 1 < Places);

    // What leaves is the next word of the next descriptor, as it came, once all is over.
    if (out_valid) p_some : assert (g_inside != '0);
    if (f_at_port && out_valid) begin
      p_named : assert (out_function == g_function && out_address == g_address);
      p_refused : assert (out_refused == g_refused);
      p_failed : assert (out_failed == g_failed);
      p_over : assert (f_is_over);
      p_first : assert (out_first == (g_word == '0));
      p_last :
      assert (out_last == (g_refused || g_failed || 32'(g_word) + 1 == 2 * 32'(g_beats)));
      if (!g_refused && !g_failed && g_word[BeatWidth+1:1] == beats_t'(chosen)) begin
        p_same : assert (g_there && out_word == (g_word[0] ? g_data[127:64] : g_data[63:0]));
      end
    end

    // A tag comes back in the cycle after its last completion, or one that failed, and not else.
    if (g_freed) p_freed : assert (free_valid && free_tag == g_freed_tag);
    if (free_valid) p_held : assert (g_freed);

    if (!$past(rst)) begin
      // What can leave is offered in the next cycle; a refused one has its turn before.
      if ($past(f_at_port && !out_valid && f_is_over && !g_refused)
          || ($past(f_at_port && !out_valid && g_refused) && $past(g_waited))
          || $past(f_at_port && f_leaves && !out_last)
          || $past(g_follows && g_before == inside_t'(1) && f_gone && f_is_over && !g_refused))
      begin
        p_offered : assert (out_valid);
      end
      if ($past(out_valid && !out_ready)) begin
        p_stays :
        assert (out_valid && out_first == $past(out_first) && out_last == $past(out_last)
            && out_failed == $past(out_failed) && out_refused == $past(out_refused)
            && out_function == $past(out_function) && out_address == $past(out_address)
            && out_word == $past(out_word));
      end
      if ($past(read_valid && !read_ready) && !g_out[read_tag]) begin
        p_waits :
        assert (read_valid && read_address == $past(read_address)
            && read_bytes == $past(read_bytes));
      end
      // A completion for a tag that does not wait is told, and so is one that is not what its read
      // lacks next. No other one is.
      p_unexpected : assert (unexpected == $past(f_ends && !f_piece_out));
      if ($past(f_ends)) begin
        p_mismatched : assert (mismatched == $past(f_piece_out && !f_fails && !f_comes));
      end
      if (mismatched) p_only : assert ($past(f_ends));
    end

    // So that induction needs no bound: registers and memories follow the shadow.
    i_jobs : assert (32'(jobs) <= Places && unasked <= jobs);
    i_inside : assert (32'(g_inside) == 32'(jobs) + 32'(out_valid && out_last));
    i_asking : assert (asking == f_asking);
    i_to_ask : assert (g_to_ask == f_all_to_ask);
    i_asked :
    assert ((unasked == '0) ? asked == '0 : asked <= beats_of[asking]
        && (asked == '0 || asked != beats_of[asking]));
    i_begun : assert (({beat, half} != '0) == (out_valid && !out_last));
    if ({beat, half} != '0) begin
      i_leaves : assert (unasked != jobs && open_of[oldest] == '0 && !failed[oldest]);
      i_beat : assert (beats_t'(beat) < beats_of[oldest]);
    end
    for (int unsigned each = 0; each < Places; each++) begin
      if (each < 32'(jobs)) begin
        assert (32'(beats_of[f_ordered[each]]) <= Beats);
        assert (open_of[f_ordered[each]] == f_open_of[f_ordered[each]]);
      end else begin
        assert (f_open_of[f_ordered[each]] == '0);
      end
      if (each > 32'(f_turn)) assert (f_open_of[f_ordered[each]] == '0);
    end
    i_out : assert (waits == g_out);
    i_mid : assert (mid == g_mid);
    for (int unsigned at = 0; at < 2 ** TagWidth; at++) begin
      if (g_out[at]) begin
        assert (lacks_of[at] == g_lacks[at] && g_lacks[at] != '0 && 32'(g_lacks[at]) <= Request);
        if (f_is_in) assert (g_mine[at] == (place_of[at] == g_place));
        if (g_follows && g_mine[at]) begin
          assert (f_is_in && at_of[at] == beat_t'(g_at[at]));
          assert (g_at[at] < g_asked && g_lacks[at] <= g_asked - g_at[at]);
          for (int unsigned other = 0; other < at; other++) begin
            assert (!(g_out[other] && g_mine[other]) || g_at[at] + g_lacks[at] <= g_at[other]
                || g_at[other] + g_lacks[other] <= g_at[at]);
          end
        end
      end
    end
    if (mid) begin
      i_piece : assert (piece_tag == g_piece_tag && piece_is_ours == g_piece_out);
      if (g_piece_out) begin
        i_waits : assert (g_out[g_piece_tag] && piece_failed == g_fails);
        if (!g_fits) i_fits : assert (piece_left == '0);
        if (g_fits) begin
          i_size : assert (g_size != '0 && g_size <= g_lacks[g_piece_tag] && g_got <= g_size);
          i_left : assert (piece_left == g_size - g_got);
          i_rest : assert (piece_rest == g_lacks[g_piece_tag] - g_size);
          if (!g_fails) i_at : assert (piece_at == f_piece_at);
        end
      end
    end
    if (g_follows) begin
      i_before : assert (g_before < g_inside && g_beats <= beats_t'(Beats) && g_asked <= g_beats);
      i_refused : assert (g_refused == (g_beats == '0) && !(g_refused && g_failed));
      if (!g_there && !g_failed) begin
        i_lacks :
        assert (f_lacks_chosen || beats_t'(chosen) >= g_asked);
      end
      if (g_there) i_there : assert (!f_lacks_chosen && beats_t'(chosen) < g_asked);
      if (g_before != '0 || !out_valid) i_word : assert (g_word == '0);
    end
    if (f_is_in) begin
      i_position : assert (f_position < inside_t'(jobs) && g_place == f_place);
      i_function : assert (function_of[g_place] == g_function && address_of[g_place] == g_address);
      i_beats : assert (beats_of[g_place] == g_beats && failed[g_place] == g_failed);
      if (f_position < f_turn) i_behind : assert (g_asked == g_beats && g_ahead == '0);
      if (f_position == f_turn) begin
        i_turn :
        assert (g_asked == asked && g_ahead == '0 && (g_refused || g_asked != g_beats));
      end
      if (f_position > f_turn) i_ahead : assert (g_asked == '0 && g_ahead == f_ahead);
      if (f_position >= f_turn && !g_refused) begin
        i_idle : assert (32'(g_idle) + 32'(f_position - f_turn) < Places);
      end
      if (f_position < f_turn) i_busy : assert (g_idle == '0);
      if (f_at_port && out_valid) begin
        i_next : assert ((BeatWidth + 2)'({beat, half}) == g_word + (BeatWidth + 2)'(1));
      end
      if (g_waited && !out_valid) i_waited : assert (f_position < f_turn);
      if (g_there) i_data : assert (f_beats[{g_place, chosen}] == g_data);
      if (mid && g_piece_out && g_mine[g_piece_tag] && g_fits && !g_fails
          && beats_t'(chosen) >= g_at[g_piece_tag]
          && beats_t'(chosen) - g_at[g_piece_tag] < g_got) begin
        i_last : assert (f_beats[{g_place, chosen}] == g_last);
      end
    end else if (g_follows) begin
      i_over : assert (g_asked == g_beats && g_ahead == '0 && g_idle == '0);
    end
  end
end
