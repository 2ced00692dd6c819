// What is proved of `net_credit`, without bound, by k-induction.
//
// A shadow has the counts of the crossbar: a packet enters with its first beat, and may leave at
// any time later. That the crossbar counts so is assumed, and `packets` of its model is that.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

logic g_mid;
logic [1:0][CountWidth-1:0] g_packets;
(* anyseq *)logic [1:0] f_wants;
logic [1:0] f_begins, f_leaves;
always_comb begin
  for (int unsigned each = 0; each < 2; each++) begin
    f_begins[each] = in_taken && !g_mid && in_class == 1'(each);
    f_leaves[each] = f_wants[each] && g_packets[each] != '0;
    assume (packets[each] == g_packets[each]);
    // A channel has fewer places than the count has values.
    assume (!(f_begins[each] && g_packets[each] == '1));
  end
end

logic [1:0] g_left;
always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (in_taken) g_mid <= !in_last;
  for (int unsigned each = 0; each < 2; each++) begin
    g_packets[each] <= g_packets[each] + CountWidth'(f_begins[each]) - CountWidth'(f_leaves[each]);
  end
  g_left <= f_leaves;
  if (rst) begin
    g_mid <= 1'b0;
    g_packets <= '0;
    g_left <= '0;
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A free place is told exactly when its packet has left, once.
    p_told : assert ((credit & ~g_left) == '0);
    p_free : assert ((g_left & ~credit) == '0);
    // After reset nothing is told.
    if ($past(rst)) p_starts : assert (credit == '0);

    // So that induction needs no bound.
    i_mid : assert (mid == g_mid);
    i_first : assert (inside_before[0] == CountWidth'(g_packets[0] + CountWidth'(g_left[0])));
    i_second : assert (inside_before[1] == CountWidth'(g_packets[1] + CountWidth'(g_left[1])));
  end
end
