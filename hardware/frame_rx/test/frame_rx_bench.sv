// `frame_rx` with the ports that the model has, packed.
module frame_rx_bench #(
    parameter int unsigned MaxBeats = 34
) (
    input  logic                               clk,
    input  logic                               rst,
    input  logic [ frame_rx_ports::InBits-1:0] in,
    output logic [frame_rx_ports::OutBits-1:0] out
);

  frame_rx_ports::in_t  i;
  frame_rx_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic out_last, frame_damaged;
  logic [$bits(o.out_empty)-1:0] out_empty;
  logic [$bits(o.out_data)-1:0] out_data;
  logic [$bits(o.frame_sequence)-1:0] frame_sequence;
  logic [$bits(o.dllp_data)-1:0] dllp_data;

  frame_rx #(
      .MaxBeats(MaxBeats)
  ) u_dut (
      .clk,
      .rst,
      .line_valid    (i.line_valid),
      .line_k        (i.line_k),
      .line_data     (i.line_data),
      .out_valid     (o.out_valid),
      .out_last      (out_last),
      .out_empty     (out_empty),
      .out_data      (out_data),
      .frame_valid   (o.frame_valid),
      .frame_damaged (frame_damaged),
      .frame_sequence(frame_sequence),
      .dllp_valid    (o.dllp_valid),
      .dllp_data     (dllp_data)
  );

  assign o.out_last       = o.out_valid && out_last;
  assign o.out_empty      = o.out_valid ? out_empty : '0;
  assign o.out_data       = o.out_valid ? out_data : '0;
  assign o.frame_damaged  = o.frame_valid && frame_damaged;
  assign o.frame_sequence = o.out_valid ? frame_sequence : '0;
  assign o.dllp_data      = o.dllp_valid ? dllp_data : '0;
  assign o.padding        = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
