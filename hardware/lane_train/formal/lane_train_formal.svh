// What is proved of `lane_train`, without bound, by k-induction. Lanes bring whatever they want.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

typedef logic [15:0] f_t;
// By lane: sets heard since the state began, TS1 in a row since the link is up, and cycles since a
// mark in which it was.
logic [Lanes-1:0][15:0] g_sets, g_ones, g_silent;
// Sets sent in the state, cycles since the last one began, and whether the link asked in the
// cycle before, and was up.
f_t g_sent, g_since;
logic g_asked;
// A lane, whichever.
(* anyconst *) logic [$clog2(Lanes)-1:0] f_at;
always_comb assume (32'(f_at) < Lanes);

logic [Lanes-1:0] f_has_ones, f_has_sets, f_is_silent, f_is_right;
for (genvar l = 0; l < Lanes; l++) begin : g_formal
  logic f_mark, f_one, f_two;
  assign f_mark = rx_k[l][0] && rx_data[l][7:0] == 8'hbc;
  assign f_one = {rx_k[l], rx_data[l]} == {2'b01, 16'h4abc};
  assign f_two = {rx_k[l], rx_data[l]} == {2'b01, 16'h45bc};
  assign f_has_ones[l] = g_ones[l] >= f_t'(2);
  assign f_has_sets[l] = g_sets[l] >= f_t'(Sets);
  assign f_is_silent[l] = g_silent[l] >= f_t'(LostAfter - 1);
  // What induction needs to know of a lane.
  assign f_is_right[l] = 32'(heard[l]) <= Sets && (up || 32'(heard[l]) <= 32'(g_sets[l]))
      && (!up || (f_t'(heard[l]) == g_ones[l] && g_ones[l] <= f_t'(2)
      && g_silent[l] <= f_t'(at) + (marked[l] ? f_t'(0) : f_t'(LostAfter))
      && (marked[l] || g_silent[l] >= f_t'(at))));
  always_ff @(posedge clk) begin
    if (rst || changes) g_sets[l] <= '0;
    else if (configuring && f_one) g_sets[l] <= '0;
    else if ((f_one || f_two) && !f_has_sets[l]) g_sets[l] <= g_sets[l] + f_t'(1);
    if (rst || !up || changes) g_ones[l] <= '0;
    else if (f_mark) g_ones[l] <= f_one ? g_ones[l] + f_t'(1) : '0;
    if (rst || !up || changes || f_mark) g_silent[l] <= '0;
    else g_silent[l] <= g_silent[l] + f_t'(1);
  end
end

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_asked <= up && retrain && !rst;
  g_since <= (rst || changes || g_since == f_t'(Every - 1)) ? '0 : g_since + f_t'(1);
  if (rst || changes) g_sent <= '0;
  else if (configuring && g_since == f_t'(Every - 1)) g_sent <= g_sent + f_t'(1);

  if (past_reset && !rst) begin
    // In training all lanes carry COM and an identifier, or idle symbols. Otherwise they carry what
    // the link sends.
    if (up) p_carries : assert ({tx_k[f_at], tx_data[f_at]} == {line_k[f_at], line_data[f_at]});
    else if (g_since == '0) begin
      p_set : assert ({tx_k[f_at], tx_data[f_at]}
          == {2'b01, configuring ? 16'h45bc : 16'h4abc});
    end else p_idle : assert ({tx_k[f_at], tx_data[f_at]} == '0);
    // TS2 goes when sets were heard on all lanes. The link is up when TS2 was heard on all, and
    // has gone often enough.
    if (configures) p_polled : assert (f_has_sets == '1);
    if (trained) begin
      p_trained : assert (configuring && f_has_sets == '1);
      p_sent : assert (g_sent + f_t'(1) >= f_t'(2 * Sets));
    end
    // TS2 does not go for ever.
    if (configuring) p_gives_up : assert (g_sent < f_t'(8 * Sets));
    // Who is asked trains, as does who hears TS1 twice or misses a lane; nobody else.
    if (g_asked) p_asked : assert (!up);
    if (up && g_ones[f_at] == f_t'(2)) p_again : assert (recovers);
    if (up) p_lost : assert (g_silent[f_at] < f_t'(2 * LostAfter));
    if (recovers) p_reason : assert (retrain || f_has_ones != '0 || f_is_silent != '0);

    i_lanes : assert (f_is_right == '1);
    i_state : assert (!(up && configuring));
    i_at : assert (32'(at) < (up ? LostAfter : Every));
    if (!up) i_since : assert (g_since == f_t'(at));
    if (!configuring) i_none : assert (sent == '0 && answered == '0);
    if (configuring) i_sent : assert (g_sent == f_t'(sent));
    i_answered : assert (answered <= sent && 32'(answered) <= 2 * Sets);
  end
end
