// `frame_tx` with the ports that the model has, packed.
module frame_tx_bench (
    input  logic                               clk,
    input  logic                               rst,
    input  logic [ frame_tx_ports::InBits-1:0] in,
    output logic [frame_tx_ports::OutBits-1:0] out
);

  frame_tx_ports::in_t  i;
  frame_tx_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic [$bits(o.line_k)-1:0] line_k;
  logic [$bits(o.line_data)-1:0] line_data;

  frame_tx u_dut (
      .clk,
      .rst,
      .in_valid   (i.in_valid),
      .in_ready   (o.in_ready),
      .in_last    (i.in_last),
      .in_sequence(i.in_sequence),
      .in_data    (i.in_data),
      .dllp_valid (i.dllp_valid),
      .dllp_ready (o.dllp_ready),
      .dllp_data  (i.dllp_data),
      .line_valid (o.line_valid),
      .line_ready (i.line_ready),
      .line_k     (line_k),
      .line_data  (line_data)
  );

  assign o.line_k    = o.line_valid ? line_k : '0;
  assign o.line_data = o.line_valid ? line_data : '0;
  assign o.padding   = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
