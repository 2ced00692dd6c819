// What induction needs to know of a FIFO inside of another block.
logic f_entered;
logic f_past_reset = 1'b0;
always_ff @(posedge clk) begin
  f_entered <= enters && !rst;
  f_past_reset <= 1'b1;
  if (f_past_reset) begin
    l_valid : assert (out_valid == (count != CountWidth'(f_entered)));
    if (out_valid) l_data : assert (out_data == probe_words[read[AddressWidth-1:0]]);
  end
end
