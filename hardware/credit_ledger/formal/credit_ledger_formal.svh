// What is proved of `credit_ledger`, without bound, by k-induction.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// What the buffer holds, what has left it, and cycles without an update.
logic [HeaderWidth-1:0] held_headers, gone_headers;
logic [DataWidth-1:0] held_data, gone_data;
logic [WaitWidth-1:0] silent;

always_comb begin
  // What leaves has come; the last packet takes along what is there.
  if (leave_valid) begin
    assume (held_headers != '0 && leave_cost <= held_data);
    assume (held_headers != HeaderWidth'(1) || leave_cost == held_data);
  end
end

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (rst) {held_headers, held_data, gone_headers, gone_data} <= '0;
  else begin
    held_headers <= held_headers + HeaderWidth'(enters) - HeaderWidth'(leave_valid);
    held_data <= held_data + (enters ? in_cost : '0) - (leave_valid ? leave_cost : '0);
    gone_headers <= gone_headers + HeaderWidth'(leave_valid);
    gone_data <= gone_data + (leave_valid ? leave_cost : '0);
  end
  silent <= (rst || update_valid) ? '0 : silent + WaitWidth'(1);

  if (past_reset && !rst) begin
    // It never holds more than the buffer does.
    // shows: S-26
    p_bound : assert (held_headers <= HeaderWidth'(Headers) && held_data <= DataWidth'(Data));
    // What is there and what is free make the buffer.
    p_held : assert (free_headers == HeaderWidth'(Headers) - held_headers);
    p_data : assert (free_data == DataWidth'(Data) - held_data);
    // All that has left is granted again, once.
    p_headers_again : assert (update_headers == HeaderWidth'(Headers) + gone_headers);
    p_data_again : assert (update_data == DataWidth'(Data) + gone_data);
    // A packet that the buffer has room for comes in.
    p_enters :
    assert (in_ready == (held_headers < HeaderWidth'(Headers)
                         && {1'b0, held_data} + {1'b0, in_cost} <= (DataWidth + 1)'(Data)));
    // An update is due when something has left, and until it is taken.
    if ($past(leave_valid) && !$past(rst)) p_due : assert (update_valid);
    if ($past(update_valid) && !$past(update_ready) && !$past(rst)) p_stays : assert (update_valid);
    // It is due again, whatever becomes of it.
    p_again : assert (silent < WaitWidth'(AgainAfter) || update_valid);

    i_waits : assert (update_valid || waited == silent + WaitWidth'(1));
    i_silent : assert (silent <= WaitWidth'(AgainAfter));
    i_empty : assert (held_headers != '0 || held_data == '0);
  end
end
