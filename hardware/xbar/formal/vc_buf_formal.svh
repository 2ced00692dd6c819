// What is proved of `vc_buf`, without bound, by k-induction.
//
// One channel is chosen freely, and in it one beat, which is followed until it leaves. It leaves
// in its turn, as it came and with its packet's route: so nothing is lost, doubled or
// reordered in a channel. Invariants speak of the beats of that channel by their positions: the
// oldest has position 0, at the output or in the memory, and the newest is in the input register.

localparam int unsigned Most = Room + 2;
localparam int unsigned PositionWidth = $clog2(Most + 1);
typedef logic [PositionWidth-1:0] position_t;

(* anyconst *) logic [ChannelWidth-1:0] chosen;
(* anyseq *) logic is_it;
logic past_reset = 1'b0;

always_comb begin
  assume (past_reset || rst);
  assume (chosen < Channels);
  // The sender names a channel that exists, and its packets have at most `Beats` beats.
  assume (in_channel < Channels);
  if (enters && coming_beats == Beats - 1) assume (in_last);
  // The user starts a packet that is there, while none is crossing.
  assume (take_channel < Channels);
  if (take) assume (!crosses && front_valid[take_channel]);
end

// ---- Where the beats of the chosen channel are.

wire coming_it = coming && coming_channel == chosen;
wire crossing_it = crosses && crossing_channel == chosen;
wire entered_it = entered && entered_channel == chosen;
wire out_it = out_valid && crossing_channel == chosen;
wire enters_it = enters && in_channel == chosen;
wire leaves_it = out_it && out_ready;

wire [AddressWidth:0] base = (AddressWidth + 1)'(chosen) * (AddressWidth + 1)'(Room);
wire [AddressWidth:0] write_place = (AddressWidth + 1)'(write_at[chosen]) - base;
wire [AddressWidth:0] read_place = (AddressWidth + 1)'(read_at[chosen]) - base;
wire [AddressWidth:0] held = (write_odd[chosen] == read_odd[chosen])
    ? write_place - read_place : write_place + (AddressWidth + 1)'(Room) - read_place;
wire position_t total = position_t'(out_it) + position_t'(held) + position_t'(entered_it);

// By position: the last flag and the bits; how many last beats stand before it.
logic [Most-1:0] is_last;
logic [Most-1:0][Width-1:0] bits;
logic [Most-1:0][PositionWidth-1:0] lasts_before;
position_t lasts;
always_comb begin
  logic [AddressWidth+1:0] place;
  lasts = '0;
  for (int unsigned at = 0; at < Most; at++) begin
    place = (AddressWidth + 2)'(read_place) + (AddressWidth + 2)'(at) - (AddressWidth + 2)'(out_it);
    if (place >= Room) place = place - (AddressWidth + 2)'(Room);
    place = place + (AddressWidth + 2)'(base);
    {is_last[at], bits[at]} = probe_beats[place[AddressWidth-1:0]];
    if (at == 0 && out_it) {is_last[at], bits[at]} = {out_last, out_data};
    if (at + 1 == total && entered_it) {is_last[at], bits[at]} = {entered_last, entered_data};
    lasts_before[at] = lasts;
    if (at < total && is_last[at]) lasts = lasts + position_t'(1);
  end
end

// ---- The shadow.

// Beats of the packet that is coming, and its route; whether what entered is a first beat.
logic [$clog2(Beats+1)-1:0] coming_beats;
logic [RouteWidth-1:0] coming_route, crossing_route;
logic entered_first;
// No beat of the crossing packet has left.
logic fresh;
// The followed beat.
logic follows, followed_last, followed_first, has_followed;
logic [Width-1:0] followed_bits;
logic [RouteWidth-1:0] followed_route;
position_t followed_at;
wire [RouteWidth-1:0] enters_route = coming ? coming_route : in_route;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  entered_first <= begins;
  if (enters) begin
    coming_beats <= in_last ? '0 : coming_beats + 1'b1;
    coming_route <= enters_route;
  end
  if (take) begin
    fresh <= 1'b1;
    crossing_route <= front_route[take_channel];
  end else if (out_valid && out_ready) fresh <= 1'b0;
  if (enters_it && is_it && !has_followed) begin
    {follows, has_followed} <= 2'b11;
    followed_last <= in_last;
    followed_first <= begins;
    followed_bits <= in_data;
    followed_route <= enters_route;
    followed_at <= total - position_t'(leaves_it);
  end else if (follows && leaves_it) begin
    follows <= followed_at != 0;
    followed_at <= followed_at - position_t'(1);
  end
  if (rst) begin
    coming_beats <= '0;
    {follows, has_followed, fresh} <= '0;
  end
end

// Routes of packets that do not cross yet, in their FIFO.
localparam int unsigned RouteAddressWidth = (Depth > 1) ? $clog2(Depth) : 1;
wire [RouteAddressWidth:0] routes = probe_written[chosen] - probe_read[chosen];
function automatic logic [RouteWidth-1:0] route_of(input position_t packet);
  logic [RouteAddressWidth:0] index;
  index = probe_read[chosen] + (RouteAddressWidth + 1)'(packet)
      - (RouteAddressWidth + 1)'(crossing_it);
  route_of = (crossing_it && packet == 0) ? crossing_route
      : probe_routes[chosen][index[RouteAddressWidth-1:0]];
endfunction

// All pointers stay in the rings of their channels.
logic in_rings;
always_comb begin
  in_rings = 1'b1;
  for (int unsigned at = 0; at < Channels; at++) begin
    in_rings &= write_at[at] >= AddressWidth'(at * Room) && read_at[at] >= AddressWidth'(at * Room);
    in_rings &= write_at[at] <= AddressWidth'(at * Room + Room - 1);
    in_rings &= read_at[at] <= AddressWidth'(at * Room + Room - 1);
  end
end

// ---- Properties.

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A packet begins to come exactly if there are a place and room for the longest one. Behind
    // its first beat all others are taken, and no other channel's.
    p_ready : assert (in_ready[chosen] == (coming ? coming_it : packets[chosen] < CountWidth'(Depth)
        && 32'(held) + 32'(entered_it) + Beats <= Room));
    // A channel holds at most `Depth` packets, and what comes finds room in the memory.
    p_room : assert (packets[chosen] <= CountWidth'(Depth));
    if (entered_it) p_overflow : assert (held < (AddressWidth + 1)'(Room));
    // A packet that starts has its first beat there.
    if (take && take_channel == chosen) p_there : assert (held != 0);
    // A beat leaves in its turn, as it came, on its packet's way.
    if (follows && leaves_it && followed_at == 0) begin
      p_same : assert (out_data == followed_bits && out_last == followed_last);
      p_route : assert (crossing_route == followed_route);
      // Packets leave whole: the first beat after a start is a first beat, and no other is.
      p_whole : assert (followed_first == fresh);
    end
    // A followed beat is there until it leaves.
    if (follows) p_kept : assert (followed_at < total);
    // A packet crosses from its start until its last beat has left.
    if ($past(take) && !$past(rst)) p_starts : assert (crosses);
    if ($past(crosses) && !$past(rst))
      p_ends : assert (crosses == !$past(out_valid && out_ready && out_last));
    // A beat in the memory, of the packet that crosses, is at the output one cycle later, if the
    // output is empty or its beat leaves.
    if ($past(crossing_it && held != 0 && (!out_valid || (out_ready && !out_last))) && !$past(rst))
      p_moves : assert (out_valid);

`ifdef INVARIANTS
    // So that induction needs no bound.
    i_rings : assert (in_rings);
    i_order : assert ((write_odd[chosen] == read_odd[chosen]) ? write_place >= read_place
                                                               : write_place <= read_place);
    i_total : assert (total <= position_t'(Room) + position_t'(out_it));
    i_filled : assert (32'(filled[chosen]) == 32'(held) + 32'(entered_it));
    // What is coming has room for all of its beats.
    if (coming_it) i_reserved : assert (32'(filled[chosen]) + Beats <= Room + 32'(coming_beats));
    i_channels : assert ((!coming || coming_channel < Channels)
        && (!crosses || crossing_channel < Channels) && (!entered || entered_channel < Channels));
    i_out : assert (!out_valid || crosses);
    // Packets are their last beats, and the one that is coming.
    i_packets : assert (position_t'(packets[chosen]) == lasts + position_t'(coming_it));
    i_crossing : assert (!crossing_it || packets[chosen] != 0);
    i_routes : assert ((RouteAddressWidth + 1)'(packets[chosen])
        == routes + (RouteAddressWidth + 1)'(crossing_it));
    if (coming_it) begin
      i_coming_route : assert (route_of(position_t'(packets[chosen]) - position_t'(1))
          == coming_route);
      if (total == 0) i_coming : assert (crossing_it && !fresh);
    end
    if (total != 0) i_newest : assert (is_last[total-1] == !coming_it);
    // Packets have at most `Beats` beats, and the one that is coming has fewer so far.
    i_coming_beats : assert (coming ? coming_beats != 0 && coming_beats < Beats
                                    : coming_beats == 0);
    // First beats follow last ones.
    if (entered_it)
      i_entered : assert (entered_first == ((total == 1) ? !crossing_it : is_last[total-2]));
    // The FIFO of routes shows what is in it, but for what has just entered.
    i_front : assert (front_valid[chosen]
        == (routes != (RouteAddressWidth + 1)'(entered_it && entered_first)));
    if (front_valid[chosen]) i_front_route : assert (front_route[chosen]
        == probe_routes[chosen][probe_read[chosen][RouteAddressWidth-1:0]]);
    if (crossing_it && fresh) i_fresh : assert (out_it);
    if (follows) begin
      i_bits : assert (bits[followed_at] == followed_bits
          && is_last[followed_at] == followed_last);
      i_first : assert (followed_first
          == ((followed_at == 0) ? !crossing_it || fresh : is_last[followed_at-1]));
      i_route : assert (route_of(lasts_before[followed_at]) == followed_route);
    end
`endif
  end
end
