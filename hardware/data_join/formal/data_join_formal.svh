// What is proved of `data_join`, without bound, by k-induction.
//
// A shadow sees the ports only: it counts reads, knows which operation is under way, and follows
// one read, chosen freely. Nothing is assumed: any port may offer anything at any time.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// ---- The shadow.

logic [IndexWidth:0] g_count;
logic g_mid, g_of_puts;
// A read that is followed is under way; so many go before it; it is the last of its operation.
logic g_held, g_ends;
logic [IndexWidth:0] g_ahead;
(* anyseq *)logic f_pick;

wire f_enters = read_valid && read_ready;
wire f_data = data_valid && data_ready;
wire f_put = put_valid && put_ready;
wire f_leaves = f_data && data_last;
wire f_is_front = g_held && g_ahead == '0;
// Immediate data goes next.
wire f_puts_turn = g_mid ? g_of_puts : g_count == '0;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_count <= g_count + (IndexWidth + 1)'(f_enters) - (IndexWidth + 1)'(f_leaves);
  if (out_valid && out_ready) begin
    g_mid  <= !out_ends;
    g_of_puts <= f_put;
  end
  if (f_leaves) begin
    if (f_is_front) g_held <= 1'b0;
    else g_ahead <= g_ahead - 1'b1;
  end
  if (f_enters && !g_held && f_pick) begin
    g_held  <= 1'b1;
    g_ends  <= read_ends;
    g_ahead <= g_count - (IndexWidth + 1)'(f_leaves);
  end
  if (rst) begin
    g_count  <= '0;
    g_mid <= 1'b0;
    g_held   <= 1'b0;
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A read finds room exactly if there are fewer than there may be.
    p_ready : assert (read_ready == (g_count < (IndexWidth + 1)'(Reads)));
    p_bound : assert (g_count <= (IndexWidth + 1)'(Reads));
    // A beat goes in the cycle in which it is taken, from one port: none is lost or doubled.
    p_one : assert (!(f_data && f_put));
    p_goes : assert ((out_valid && out_ready) == (f_data || f_put));
    // It goes as it came. Only that of a read can have failed.
    if (f_data)
      p_data : assert (out_from == data_from && out_to == data_to && out_data == data);
    if (f_put) p_put : assert (out_from == '0 && out_to == put_to && out_data == put_data);
    if (out_valid) p_failed : assert (out_failed == (!f_puts_turn && data_failed));
    // It ends its operation as its read says, which stands in its turn, or as it says itself.
    if (f_data && f_is_front) p_ends : assert (out_ends == (data_last && g_ends));
    if (f_put) p_put_ends : assert (out_ends == put_ends);
    // Data needs a read. Immediate data begins behind all reads.
    if (f_data) p_behind : assert (g_count != '0);
    if (f_put && !g_mid) p_order : assert (g_count == '0);
    // Between the beats of an operation goes none of another one.
    if (g_mid) p_whole : assert (g_of_puts ? !f_data : !f_put);
    // What may go is taken if the packer is ready: no deadlock.
    if (g_count != '0 && !(g_mid && g_of_puts)) p_work : assert (data_ready == out_ready);
    if (f_puts_turn) p_work_puts : assert (put_ready == out_ready);
    // What is offered stays until it is taken; immediate data, if no read is requested meanwhile.
    if ($past(past_reset && !rst && put_valid && f_puts_turn && !out_ready && !read_valid))
      p_put_stays : assert (out_valid == put_valid);
    if ($past(past_reset && !rst && data_valid && !f_puts_turn && g_count != '0 && !out_ready))
      p_data_stays : assert (out_valid == data_valid);
    // After reset there are no reads, and no operation is under way.
    if ($past(rst)) p_starts : assert (read_ready && put_ready == out_ready && !data_ready);

    // So that induction needs no bound.
    i_count : assert (written - left == g_count);
    i_mid : assert (mid == g_mid && (!g_mid || of_puts == g_of_puts));
    i_ahead : assert (!g_held || g_ahead < g_count);
    i_held : assert (!g_held || ends[IndexWidth'(left+g_ahead)] == g_ends);
  end
end
