// What is proved of `rx_buf`, without bound, by k-induction.
//
// A shadow sees the ports only, and counts packets, places and beats. One beat, chosen freely, is
// followed from where it is stored until it leaves or is dropped. That it leaves in its turn and
// unchanged says that nothing is lost, doubled or reordered. What is assumed of the user,
// `rx_dispatch_formal.svh` proves.

localparam int unsigned PositionWidth = $clog2(Words + 2);
typedef logic [PositionWidth-1:0] position_t;

(* anyseq *)logic is_it;
logic past_reset = 1'b0;

// The packet that comes, its beats so far, and whether the last of these was stored.
logic g_coming, g_ended;
position_t g_new;
// Beats that are kept and have not left. Packets, and places that the crossbar takes for taken.
position_t g_kept;
logic [CountWidth:0] g_packets, g_held;
// The followed beat, its packet has not come whole, and beats before it.
logic follows, is_new, has_followed;
logic [Width:0] followed;
position_t followed_at;

always_comb begin
  assume (past_reset || rst);
  // A packet begins with a place, and one at a time.
  if (begins) assume (has_place && !g_coming);
  if (stores || keeps || drops) assume (g_coming || begins);
  assume (!keeps || !drops);
  // It has room, and its last beat is the last one that is stored.
  if (stores) assume (32'(g_new) < Beats && !g_ended);
  if (keeps) assume (g_ended || (stores && store_last));
end

wire f_leaves = out_valid && out_ready;
// Places of the crossbar that are taken: the packet that comes has one.
wire [31:0] f_front = (32'(g_packets) > Behind) ? 32'(g_packets) - Behind : 0;
wire [31:0] f_taken = (f_front == 0) ? 32'(g_coming) : f_front;
wire position_t f_new = g_new + position_t'(stores);

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_coming <= (g_coming || begins) && !keeps && !drops;
  g_ended <= (g_ended || (stores && store_last)) && !keeps && !drops;
  g_new <= (keeps || drops) ? '0 : f_new;
  g_kept <= g_kept + (keeps ? f_new : '0) - position_t'(f_leaves);
  g_packets <= g_packets + (CountWidth + 1)'(begins) - (CountWidth + 1)'(drops)
      - (CountWidth + 1)'(f_leaves && out_last);
  g_held <= g_held + (CountWidth + 1)'(begins) - (CountWidth + 1)'(credit);
  if (stores && is_it && !has_followed) begin
    {follows, has_followed} <= {!drops, 1'b1};
    is_new <= !keeps;
    followed <= {store_last, store_data};
    followed_at <= g_kept + g_new - position_t'(f_leaves);
  end else if (follows) begin
    if (f_leaves) followed_at <= followed_at - position_t'(1);
    if (keeps) is_new <= 1'b0;
    if ((is_new && drops) || (f_leaves && followed_at == '0)) follows <= 1'b0;
  end
  if (rst) begin
    {g_coming, g_ended, follows, has_followed} <= '0;
    {g_new, g_kept, g_packets, g_held} <= '0;
  end
end

// ---- For induction: the beats by their positions. The oldest kept one has position 0, and those
// of the packet that comes follow the newest kept one.

wire at_t f_kept_place = (kept_at[AddressWidth] == read_at[AddressWidth])
    ? at_t'(kept_at[AddressWidth-1:0]) - at_t'(read_at[AddressWidth-1:0])
    : at_t'(kept_at[AddressWidth-1:0]) + at_t'(Words) - at_t'(read_at[AddressWidth-1:0]);
wire at_t f_store_place = (store_at[AddressWidth] == read_at[AddressWidth])
    ? at_t'(store_at[AddressWidth-1:0]) - at_t'(read_at[AddressWidth-1:0])
    : at_t'(store_at[AddressWidth-1:0]) + at_t'(Words) - at_t'(read_at[AddressWidth-1:0]);

logic [Words-1:0][Width:0] f_beats;
logic [Words-1:0] f_is_last;
position_t f_lasts, f_new_lasts;
always_comb begin
  logic [AddressWidth+1:0] place;
  f_lasts = '0;
  f_new_lasts = '0;
  for (int unsigned at = 0; at < Words; at++) begin
    // The word at the output may stand in its place still.
    place = (AddressWidth + 2)'(read_at[AddressWidth-1:0]) + (AddressWidth + 2)'(at)
        + (AddressWidth + 2)'(Words) - (AddressWidth + 2)'(out_valid);
    if (place >= (AddressWidth + 2)'(Words)) place = place - (AddressWidth + 2)'(Words);
    if (place >= (AddressWidth + 2)'(Words)) place = place - (AddressWidth + 2)'(Words);
    f_beats[at] = f_words[place[AddressWidth-1:0]];
    if (at == 0 && out_valid) f_beats[at] = {out_last, out_data};
    f_is_last[at] = f_beats[at][Width];
    if (at < 32'(g_kept)) f_lasts = f_lasts + position_t'(f_is_last[at]);
    else if (at < 32'(g_kept) + 32'(g_new)) f_new_lasts = f_new_lasts + position_t'(f_is_last[at]);
  end
end

// Of any `Beats` kept beats one is the last of its packet.
logic [Words-1:0] f_is_short;
always_comb begin
  logic some;
  f_is_short = '1;
  for (int unsigned from = 0; from + Beats <= Words; from++) begin
    some = 1'b0;
    for (int unsigned at = from; at < from + Beats; at++) some |= f_is_last[at];
    if (from + Beats <= 32'(g_kept)) f_is_short[from] = some;
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A place is told free exactly if it is, and one may begin exactly if one is.
    p_credit : assert (credit == (32'(g_held) > f_taken));
    p_place : assert (has_place == (32'(g_held) < Packets));
    // There are no more packets than places, and what is stored has room.
    p_bound : assert (32'(g_packets) <= Places && f_taken <= Packets);
    if (stores) p_room : assert (32'(g_kept) + 32'(g_new) < Words);
    // Only what is kept leaves, in its turn and as it was stored.
    if (out_valid) p_kept : assert (g_kept != '0);
    if (follows && f_leaves && followed_at == '0) begin
      p_same : assert (!is_new && {out_last, out_data} == followed);
    end
    if (!$past(rst)) begin
      // No deadlock: what is kept is offered a cycle later, also behind a beat that leaves.
      if ($past(g_kept > position_t'(f_leaves))) p_offered : assert (out_valid);
      if ($past(out_valid && !out_ready)) begin
        p_stays : assert (out_valid && out_last == $past(out_last) && out_data == $past(out_data));
      end
    end

    // So that induction needs no bound.
    i_counts :
    assert (32'(packets) == 32'(g_packets) && 32'(held) == 32'(g_held) && coming == g_coming);
    i_held : assert (32'(g_held) <= Packets && 32'(g_held) >= f_taken);
    i_ring :
    assert (32'(store_at[AddressWidth-1:0]) < Words && 32'(kept_at[AddressWidth-1:0]) < Words
        && 32'(read_at[AddressWidth-1:0]) < Words);
    i_kept : assert (32'(f_kept_place) + 32'(out_valid) == 32'(g_kept));
    i_stored : assert (32'(f_store_place) + 32'(out_valid) == 32'(g_kept) + 32'(g_new));
    i_order :
    assert (32'(f_kept_place) <= 32'(f_store_place) && 32'(f_store_place) <= Words
        && 32'(g_kept) + 32'(g_new) <= Words);
    i_packets : assert (32'(g_packets) == 32'(f_lasts) + 32'(g_coming));
    if (g_kept != '0) i_newest : assert (f_is_last[g_kept-1]);
    i_lengths : assert (&f_is_short);
    i_coming : assert (32'(g_new) <= Beats && (g_coming || g_new == '0));
    i_ended : assert (32'(f_new_lasts) == 32'(g_ended));
    if (g_ended) i_end : assert (g_new != '0 && f_is_last[g_kept+g_new-1]);
    if (follows) begin
      i_followed :
      assert (f_beats[followed_at] == followed && (is_new
          ? g_coming && followed_at >= g_kept && followed_at < g_kept + g_new
          : followed_at < g_kept));
    end
  end
end
