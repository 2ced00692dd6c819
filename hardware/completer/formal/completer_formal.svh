// What is proved of `completer`, without bound, by k-induction.
//
// A shadow sees the ports only. It keeps the request that was taken last, and the values of that
// cycle. Nothing is assumed: any request may come at any time, values may change, and answers may
// wait for ever.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

logic g_waits, g_is_read;
logic [WindowWidth-1:0] g_address;
logic [15:0] g_requester;
logic [7:0] g_tag;
logic [24:0] g_rest;
logic [Registers-1:0][31:0] g_value;

wire f_takes = request_valid && request_ready;
// The number of the register, if the page is the right one.
wire [31:0] f_offset = 32'(g_address) - Page * 2 ** PageShift;
wire f_is_there = g_is_read && 32'(g_address) >= Page * 2 ** PageShift
    && f_offset < 4 * Registers;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_waits <= f_takes || (g_waits && !answer_ready);
  if (f_takes) begin
    g_is_read <= request_is_read;
    g_address <= request_address;
    g_requester <= request_requester;
    g_tag <= request_tag;
    g_rest <= {request_class, request_attributes, request_count, request_lower};
    g_value <= value;
  end
  if (rst) g_waits <= 1'b0;
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A request is answered once, and its answer stays until it is taken. The next one is taken
    // exactly if there is room.
    p_answers : assert (answer_valid == g_waits);
    p_ready : assert (request_ready == (!g_waits || answer_ready));
    if (g_waits) begin
      // The answer says whose it is, as the request did.
      p_whose : assert (answer_requester == g_requester && answer_tag == g_tag);
      p_same :
      assert ({answer_class, answer_attributes, answer_count, answer_lower} == g_rest);
      // A register's value is that of the cycle in which it was asked for. All else is unsupported.
      p_status :
      assert (answer_has_data == f_is_there && answer_status == (f_is_there ? 3'd0 : 3'd1));
      if (f_is_there) p_value : assert (answer_data == g_value[f_offset/4]);
      else p_nothing : assert (answer_data == '0);
    end
  end
end
