// `tlp_wrap` with the ports that the model has, packed.
module tlp_wrap_bench #(
    parameter bit Channel = 1'b0,
    parameter int unsigned Beats = 64,
    parameter int unsigned Segments = 4
) (
    input  logic                               clk,
    input  logic                               rst,
    input  logic [ tlp_wrap_ports::InBits-1:0] in,
    output logic [tlp_wrap_ports::OutBits-1:0] out
);

  tlp_wrap_ports::in_t  i;
  tlp_wrap_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic out_last;
  logic [127:0] out_data;

  tlp_wrap #(
      .Channel (Channel),
      .Beats   (Beats),
      .Segments(Segments)
  ) u_dut (
      .clk,
      .rst,
      .in_valid (i.in_valid),
      .in_ready (o.in_ready),
      .in_last  (i.in_last),
      .in_to    (i.in_to),
      .in_data  (i.in_data),
      .credit   (o.credit),
      .out_valid(o.out_valid),
      .out_ready(i.out_ready),
      .out_last (out_last),
      .out_data (out_data)
  );

  assign o.out_last = o.out_valid && out_last;
  assign o.out_data = o.out_valid ? out_data : '0;
  assign o.padding  = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
