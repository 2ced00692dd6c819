// `credit_gate` with the ports that the model has, packed.
module credit_gate_bench (
    input  logic                                  clk,
    input  logic                                  rst,
    input  logic [ credit_gate_ports::InBits-1:0] in,
    output logic [credit_gate_ports::OutBits-1:0] out
);

  credit_gate_ports::in_t  i;
  credit_gate_ports::out_t o;
  assign i   = in;
  assign out = o;

  credit_gate #(
      .HeaderWidth($bits(i.update_headers)),
      .DataWidth  ($bits(i.update_data))
  ) u_dut (
      .clk,
      .rst,
      .in_valid      (i.in_valid),
      .in_ready      (o.in_ready),
      .in_cost       (i.in_cost),
      .lacks_header  (o.lacks_header),
      .lacks_data    (o.lacks_data),
      .update_valid  (i.update_valid),
      .update_headers(i.update_headers),
      .update_data   (i.update_data),
      .left_headers  (o.left_headers),
      .left_data     (o.left_data)
  );

  assign o.padding = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
