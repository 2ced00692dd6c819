// What is proved of `host_regs`, without bound, by k-induction.
//
// A shadow sees the ports only: it knows where each store began and how many beats it had. The map
// is written here by its numbers, apart from the package that the block uses. Nothing is assumed:
// any beat may come at any time.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// ---- The shadow.

// A store has begun and not ended, and where it began. The one that ended in the cycle before: it
// has one beat, where it began, its bytes, and its word.
logic g_mid, g_ended, g_single;
logic [15:0] g_began, g_address;
logic [12:0] g_bytes;
logic [63:0] g_word;
logic g_refused, g_tlp_dropped, g_tlp_refused;
logic [CountWidth-1:0] g_dropped, g_refusals, g_tlps_dropped, g_tlps_refused;

wire [15:0] f_began = g_mid ? g_began : store_address;
// The page of registers, and the upper half of a function's page.
wire f_own = f_began[15:12] == 4'h8 || (f_began < 16'h8000 && f_began[11]);

// What the store that ended says.
wire f_whole = g_ended && g_single && g_bytes == 13'd8 && g_address[2:0] == 3'd0;
wire f_ring = f_whole && g_address >= 16'h8400 && g_address < 16'h8600 && g_word[63:61] == '0
    && g_word[47:40] == '0 && g_word[4:0] == '0;
wire f_list = f_whole && g_address >= 16'h8600 && g_address < 16'h8700 && g_word[63:57] == '0
    && g_word[47:40] == '0 && g_word[11:0] == '0;
wire f_key = f_whole && g_address >= 16'h8700 && g_address < 16'h8800 && g_word[63:9] == '0
    && (g_word[8] || g_word[7:0] == '0);
wire f_window = f_whole && g_address >= 16'h8800 && g_address < 16'h8840 && g_word[63:61] == '0
    && g_word[31:28] == '0;
wire f_ring_report = f_whole && !g_address[15] && g_address[11:6] == 6'b100000
    && g_word[63:13] == '0;
wire f_list_report = f_whole && !g_address[15] && g_address[11:5] == 7'b1000010
    && g_word[63:9] == '0;
wire f_taken = f_ring || f_list || f_key || f_window || f_ring_report || f_list_report;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (store_valid) g_mid <= !store_last;
  if (store_valid) g_began <= f_began;
  g_ended <= store_valid && store_last && f_own;
  g_single <= !g_mid;
  g_address <= store_address;
  g_bytes <= store_bytes;
  g_word <= store_address[3] ? store_data[1] : store_data[0];
  g_refused <= refused != '0;
  g_tlp_dropped <= tlp_dropped;
  g_tlp_refused <= tlp_refused;
  if (g_ended && !f_taken) g_dropped <= g_dropped + CountWidth'(1);
  if (g_refused) g_refusals <= g_refusals + CountWidth'(1);
  if (g_tlp_dropped) g_tlps_dropped <= g_tlps_dropped + CountWidth'(1);
  if (g_tlp_refused) g_tlps_refused <= g_tlps_refused + CountWidth'(1);
  if (rst) begin
    {g_mid, g_ended, g_refused, g_tlp_dropped, g_tlp_refused} <= '0;
    {g_dropped, g_refusals, g_tlps_dropped, g_tlps_refused} <= '0;
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // Each beat goes where its store began, in the same cycle.
    p_goes_on : assert (bell_valid == (store_valid && !f_own));
    // Exactly what the map says is written, once, and to its block only.
    // shows: C-38
    p_keys : assert (keys_valid == (f_window || f_key));
    p_rings : assert (rings_valid == (f_ring || f_ring_report));
    p_slots : assert (slots_valid == (f_list || f_list_report));
    // It is written as it was stored.
    if (f_window)
      p_window :
      assert (keys_window && keys_function == g_address[5:3] && keys_base == g_word[27:0]
          && keys_pages == g_word[60:32]);
    if (f_key)
      p_key :
      assert (!keys_window && keys_pair == g_address[7:3] && keys_opens == g_word[8]
          && keys_key == g_word[7:0]);
    if (f_ring)
      p_ring :
      assert (rings_opens && rings_ring == g_address[8:3] && rings_base == g_word[39:5]
          && rings_count == g_word[60:48]);
    if (f_list)
      p_list :
      assert (slots_opens && slots_pair == g_address[7:3] && slots_page == g_word[39:12]
          && slots_count == g_word[56:48]);
    // A report is of the function whose page it is, and of no other one.
    if (f_ring_report)
      p_ring_report :
      assert (!rings_opens && rings_ring == {g_address[14:12], g_address[5:3]}
          && rings_count == g_word[12:0]);
    if (f_list_report)
      p_list_report :
      assert (!slots_opens && slots_pair == {g_address[14:12], g_address[4:3]}
          && slots_count == g_word[8:0]);
    // All other stores of this block are counted, once, and so is what others tell.
    p_dropped : assert (dropped == g_dropped + CountWidth'(g_ended && !f_taken));
    p_refusals : assert (refusals == g_refusals + CountWidth'(g_refused));
    p_tlps :
    assert (tlps_dropped == g_tlps_dropped + CountWidth'(g_tlp_dropped)
        && tlps_refused == g_tlps_refused + CountWidth'(g_tlp_refused));

    // So that induction needs no bound.
    i_mid : assert (mid == g_mid);
    if (g_mid)
      i_own : assert (mid_own == (g_began[15:12] == 4'h8 || (g_began < 16'h8000 && g_began[11])));
  end
end
