// What is proved of `xbar_match`, without bound, by k-induction.

// An input and an output, chosen freely, and how many others the output took while the input asked.
(* anyconst *) logic [PortWidth-1:0] who, to;
logic [PortWidth:0] waited;
logic past_reset = 1'b0;

always_comb assume (past_reset || rst);
always_comb begin
  assume (who < Ports && to < Ports);
  for (int unsigned from = 0; from < Ports; from++) begin
    for (int unsigned at = 0; at < Channels; at++) assume (goal[from][at] < Ports);
  end
end

// What the output prefers, as a number, and how far the input is from it.
logic [PortWidth:0] pointer, distance;
always_comb begin
  pointer = '0;
  for (int unsigned at = 0; at < Ports; at++) begin
    if (above[to] != '0 && !above[to][at]) pointer = pointer + (PortWidth + 1)'(1);
  end
  if ((PortWidth + 1)'(who) >= pointer) distance = (PortWidth + 1)'(who) - pointer;
  else distance = (PortWidth + 1)'(who) + (PortWidth + 1)'(Ports) - pointer;
end

// By input: it is taken by at most one output, and by one for which it has a packet. By output: it
// takes at most one input.
logic [Ports-1:0] is_once, is_request, is_one;
logic [Ports-1:0] taken;
always_comb begin
  is_once = '1;
  is_request = '1;
  is_one = '1;
  taken = '0;
  for (int unsigned from = 0; from < Ports; from++) begin
    for (int unsigned at = 0; at < Ports; at++) begin
      if (grant[at][from]) begin
        taken[at] = 1'b1;
        for (int unsigned other = 0; other < Ports; other++) begin
          if (other != at && grant[other][from]) is_once[from] = 1'b0;
          if (other != from && grant[at][other]) is_one[at] = 1'b0;
        end
      end
    end
    if (take[from]) is_request[from] = may[from][take_channel[from]]
        && goal[from][take_channel[from]] == take_output[from] && taken[take_output[from]]
        && grant[take_output[from]][from];
  end
end

// Some input that stays free asks for it.
logic [Ports-1:0] is_asked;
always_comb begin
  is_asked = '0;
  for (int unsigned from = 0; from < Ports; from++) begin
    for (int unsigned at = 0; at < Channels; at++) begin
      if (may[from][at] && !take[from]) is_asked[goal[from][at]] = 1'b1;
    end
  end
end
logic asks_to;
always_comb begin
  asks_to = 1'b0;
  for (int unsigned at = 0; at < Channels; at++) asks_to |= may[who][at] && goal[who][at] == to;
end

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (rst || !asks_to || take[who]) waited <= '0;
  else if (taken[to]) waited <= waited + (PortWidth + 1)'(1);

  if (past_reset && !rst) begin
    // What starts may start, of a channel of that input and to that output.
    p_request : assert (&is_request);
    // An input and an output are taken once, and no output that is not free.
    p_once : assert (&is_once && &is_one);
    p_free : assert ((taken & ~is_free) == '0);
    // No output stays free for which a free input asks.
    p_work : assert ((is_free & ~taken & is_asked) == '0);
    // The output whose turn it is takes an input if one asks for it.
    if (is_free[first] && asks[first] != '0) p_turn : assert (taken[first]);
    // The turn goes round, a step with each cycle in which a packet starts.
    if (!$past(rst))
      p_round : assert (first == turn($past(first), ($past(take) != '0) ? (PortWidth + 1)'(1) : '0));
    // Fairness: an output takes at most all others before an input that keeps asking.
    if (asks_to) p_fair : assert (waited < Ports);

`ifdef INVARIANTS
    i_first : assert (first < Ports);
    i_pointer : assert (pointer < Ports
        && above[to] == ((pointer == 0) ? '0 : {Ports{1'b1}} << pointer));
    i_distance : assert (waited + distance < Ports);
`endif
  end
end
