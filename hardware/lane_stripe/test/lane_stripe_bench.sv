// `lane_stripe` with the ports that the model has, packed.
module lane_stripe_bench #(
    parameter int unsigned MarkEvery = 640
) (
    input  logic                                  clk,
    input  logic                                  rst,
    input  logic [ lane_stripe_ports::InBits-1:0] in,
    output logic [lane_stripe_ports::OutBits-1:0] out
);

  lane_stripe_ports::in_t  i;
  lane_stripe_ports::out_t o;
  assign i   = in;
  assign out = o;

  lane_stripe #(
      .MarkEvery(MarkEvery)
  ) u_dut (
      .clk,
      .rst,
      .line_valid(i.line_valid),
      .line_ready(o.line_ready),
      .line_k    (i.line_k),
      .line_data (i.line_data),
      .lane_k    (o.lane_k),
      .lane_data (o.lane_data)
  );

  assign o.padding = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
