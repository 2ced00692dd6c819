// What is proved of `xbar`, without bound, by k-induction. `vc_buf` and `xbar_match` have proofs of
// their own: what a buffer gives is what came, in order.

// An input and an output, chosen freely.
(* anyconst *) logic [PortWidth-1:0] who, to;
(* anyconst *) logic [ChannelWidth-1:0] channel;
(* anyconst *) logic [ClassWidth-1:0] of_class;
logic past_reset = 1'b0;

// Places behind the output that packets took and of whose return nothing was told.
logic [CreditWidth-1:0] outstanding;
wire takes_place = taken[to][of_class];
wire [CreditWidth:0] places = (CreditWidth + 1)'(credits[to][of_class])
    + (CreditWidth + 1)'(outstanding) + (CreditWidth + 1)'(returned[to][of_class]);

always_comb begin
  assume (past_reset || rst);
  assume (who < Ports && to < Ports && channel < Channels && of_class < Classes);
  for (int unsigned at = 0; at < Ports; at++) begin
    assume (in_channel[at] < Channels && in_output[at] < Ports && in_class[at] < Classes);
  end
  // A place comes back that was taken.
  if (credit[to][of_class]) assume (outstanding != 0);
end

// Where the last beat in the register of the output came from, and whether its packet goes on.
logic [PortWidth-1:0] source_of;
logic goes_on;
// Packets that cross to it; a beat that leaves a buffer for it.
logic [PortWidth:0] crossing_to;
logic comes_to, comes_last;
logic [PortWidth-1:0] comes_from;
always_comb begin
  crossing_to = '0;
  comes_to = 1'b0;
  comes_last = 1'b0;
  comes_from = '0;
  for (int unsigned from = 0; from < Ports; from++) begin
    if (crosses[from] && target[from] == to) begin
      crossing_to = crossing_to + (PortWidth + 1)'(1);
      if (beat_valid[from] && beat_ready[from]) begin
        comes_to   = 1'b1;
        comes_last = beat_last[from];
        comes_from = PortWidth'(from);
      end
    end
  end
end

wire waits = front_valid[who][channel];
wire [PortWidth-1:0] goal_of = front_output[who][channel];
wire [ClassWidth-1:0] class_of = front_class[who][channel];
wire may_start = credits[goal_of][class_of] != '0;
wire starts = granted[who] && take_channel[who] == channel;
// What the buffer gives, and what stands at the output: last flag, class and bits.
wire beat_moves = beat_valid[who] && beat_ready[who];
wire [PortWidth-1:0] beat_target = target[who];
wire [ClassWidth-1:0] beat_class = target_class[who];
wire [Width+ClassWidth:0] beat = {beat_last[who], target_class[who], beat_data[who]};
wire offers = out_valid[to];
wire is_held = out_valid[to] && !out_ready[to];
wire [Width+ClassWidth:0] offer = {out_last[to], out_class[to], out_data[to]};
logic goal_taken;
always_comb begin
  goal_taken = 1'b0;
  for (int unsigned from = 0; from < Ports; from++) begin
    goal_taken |= granted[from] && take_output[from] == goal_of;
    goal_taken |= crosses[from] && target[from] == goal_of;
  end
end

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (rst) begin
    outstanding <= '0;
    goes_on <= 1'b0;
  end else begin
    outstanding <= outstanding + CreditWidth'(takes_place) - CreditWidth'(credit[to][of_class]);
    if (comes_to) begin
      goes_on   <= !comes_last;
      source_of <= comes_from;
    end
  end

  if (past_reset && !rst) begin
    // At most one packet crosses to an output.
    p_apart : assert (crossing_to <= 1);
    // Packets are not interleaved: behind a beat that is not the last comes one of its own input.
    if (goes_on && comes_to) p_unmixed : assert (comes_from == source_of);
    // Credits: a packet takes a place that is there, and none is lost or made.
    if (takes_place) p_credit : assert (credits[to][of_class] != '0);
    p_conserved : assert (places == (CreditWidth + 1)'(Credits));
    // No deadlock: a packet with a place waits for nothing but one that crosses or starts, from its
    // input or to its output; and one that crosses waits only for its sender or its receiver.
    if (waits && may_start && !crosses[who] && !granted[who])
      p_waits : assert (goal_taken);
    if (crosses[who] && beat_valid[who])
      p_crosses : assert (beat_ready[who] || (out_valid[target[who]] && !out_ready[target[who]]));
    if (!$past(rst)) begin
      // A packet goes where its route says.
      if ($past(starts))
        p_target : assert (crosses[who] && beat_target == $past(goal_of)
            && beat_class == $past(class_of));
      // A beat that leaves its buffer stands at its output in the next cycle, as it was.
      if ($past(beat_moves && beat_target == to))
        // shows: C-04
        p_passes : assert (offers && offer == $past(beat));
      // It stays there, as it is, until it is taken; nothing else comes there.
      if ($past(is_held)) p_held : assert (offers && offer == $past(offer));
      else p_new : assert (offers == $past(comes_to));
    end

`ifdef INVARIANTS
    if (!crosses[who]) i_buffer : assert (!beat_valid[who]);
    if (goes_on) i_open : assert (crosses[source_of] && target[source_of] == to);
    i_target : assert (!crosses[who] || target[who] < Ports);
    i_source : assert (!goes_on || source_of < Ports);
`endif
  end
end
