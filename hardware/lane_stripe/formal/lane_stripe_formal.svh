// What is proved of `lane_stripe`, without bound, by k-induction.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// Cycles since a mark; that none has gone since reset.
logic [LeftWidth:0] g_since;
logic g_first;
// A lane, whichever.
(* anyconst *) logic [2:0] f_at;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_first <= rst;
  g_since <= line_ready ? g_since + (LeftWidth + 1)'(1) : (LeftWidth + 1)'(1);

  if (past_reset && !rst) begin
    // The first symbol of a lane is of its number, and the second one eight behind.
    if (line_ready && line_valid) begin
      p_first : assert (lane_data[f_at][7:0] == line_data[8*f_at+:8]);
      p_second : assert (lane_data[f_at][15:8] == line_data[64+8*f_at+:8]);
      p_special : assert (lane_k[f_at] == {line_k[8+f_at], line_k[f_at]});
    end
    // Idle symbols are zeros.
    if (line_ready && !line_valid) p_idle : assert ({lane_k[f_at], lane_data[f_at]} == '0);
    // In the other cycles all lanes carry a mark, and nothing is taken.
    if (!line_ready) p_mark : assert (lane_k[f_at] == 2'b11 && lane_data[f_at] == 16'h1cbc);
    // A mark goes first, and then one in each `MarkEvery` cycles.
    if (g_first) p_begins : assert (!line_ready);
    else p_every : assert (line_ready == (32'(g_since) != MarkEvery));

    i_left : assert (32'(left) < MarkEvery);
    if (!g_first) i_since : assert (32'(left) + 32'(g_since) == MarkEvery);
  end
end
