// What is proved of `bell_decode`, without bound, by k-induction.
//
// A shadow sees the ports only: it knows where each store began and how many beats it had. Nothing
// is assumed: any beat may come at any time.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// ---- The shadow.

// A store has begun and not ended. The one that ended in the cycle before: it has one beat, where
// it began, its bytes, and its word. How many were dropped.
logic g_mid, g_ended, g_single;
logic [WindowWidth-1:0] g_address;
logic [SizeWidth-1:0] g_bytes;
logic [63:0] g_word;
logic [DroppedWidth-1:0] g_dropped;

wire f_is_whole = g_single && g_bytes == SizeWidth'(8);
wire f_is_first = g_address % (1 << PageShift) == '0;
wire f_rings = g_ended && f_is_whole && f_is_first && 32'(g_address) < Functions * (1 << PageShift);

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (store_valid) g_mid <= !store_last;
  g_ended   <= store_valid && store_last;
  g_single  <= !g_mid;
  g_address <= store_address;
  g_bytes   <= store_bytes;
  g_word    <= store_data[0];
  if (dropped_valid) g_dropped <= g_dropped + DroppedWidth'(1);
  if (rst) begin
    g_mid <= 1'b0;
    g_ended <= 1'b0;
    g_dropped <= '0;
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // Exactly a whole word at the beginning of a function's page rings, once.
    // shows: C-31
    p_rings : assert (bell_valid == f_rings);
    // It rings for that function, and with the word that was stored.
    if (bell_valid) p_function : assert (32'(bell_function) == 32'(g_address) >> PageShift);
    if (bell_valid) p_word : assert (bell_word == g_word);
    // Each other store is told as dropped, and counted.
    p_dropped : assert (dropped_valid == (g_ended && !f_rings));
    p_counted : assert (dropped == g_dropped + DroppedWidth'(dropped_valid));
    if ($past(rst)) p_starts : assert (!bell_valid && !dropped_valid && dropped == '0);

    // So that induction needs no bound.
    i_mid : assert (mid == g_mid);
  end
end
