// `vc_rx_buf` with the ports that the model has, packed.
module vc_rx_buf_bench #(
    parameter int unsigned Headers = 32,
    parameter int unsigned Data = 92,
    parameter int unsigned Longest = 34,
    parameter int unsigned AgainAfter = 7500
) (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [ vc_rx_buf_ports::InBits-1:0] in,
    output logic [vc_rx_buf_ports::OutBits-1:0] out
);

  vc_rx_buf_ports::in_t  i;
  vc_rx_buf_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic out_last, out_bad;
  logic [$bits(o.out_empty)-1:0] out_empty;
  logic [ $bits(o.out_data)-1:0] out_data;

  vc_rx_buf #(
      .HeaderWidth($bits(o.update_headers)),
      .DataWidth  ($bits(o.update_data)),
      .Headers    (Headers),
      .Data       (Data),
      .Longest    (Longest),
      .AgainAfter (AgainAfter)
  ) u_dut (
      .clk,
      .rst,
      .in_valid      (i.in_valid),
      .in_last       (i.in_last),
      .in_empty      (i.in_empty),
      .in_data       (i.in_data),
      .in_early      (i.in_early),
      .in_deliver    (i.in_deliver),
      .kept          (o.kept),
      .refused       (o.refused),
      .out_valid     (o.out_valid),
      .out_ready     (i.out_ready),
      .out_last      (out_last),
      .out_bad       (out_bad),
      .out_empty     (out_empty),
      .out_data      (out_data),
      .update_valid  (o.update_valid),
      .update_ready  (i.update_ready),
      .update_headers(o.update_headers),
      .update_data   (o.update_data)
  );

  assign o.out_last  = o.out_valid && out_last;
  assign o.out_bad   = o.out_valid && out_bad;
  assign o.out_empty = o.out_valid ? out_empty : '0;
  assign o.out_data  = o.out_valid ? out_data : '0;
  assign o.padding   = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
