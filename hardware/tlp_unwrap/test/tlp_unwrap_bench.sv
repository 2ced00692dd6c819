// `tlp_unwrap` with the ports that the model has, packed.
module tlp_unwrap_bench #(
    parameter int unsigned Beats = 64
) (
    input  logic                                 clk,
    input  logic                                 rst,
    input  logic [ tlp_unwrap_ports::InBits-1:0] in,
    output logic [tlp_unwrap_ports::OutBits-1:0] out
);

  tlp_unwrap_ports::in_t  i;
  tlp_unwrap_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic out_last;
  logic [3:0] out_to;
  logic [127:0] out_data;

  tlp_unwrap #(
      .Beats(Beats)
  ) u_dut (
      .clk,
      .rst,
      .in_valid (i.in_valid),
      .in_ready (o.in_ready),
      .in_last  (i.in_last),
      .in_bad   (i.in_bad),
      .in_empty (i.in_empty),
      .in_data  (i.in_data),
      .dropped  (o.dropped),
      .out_valid(o.out_valid),
      .out_ready(i.out_ready),
      .out_last (out_last),
      .out_to   (out_to),
      .out_data (out_data)
  );

  assign o.out_last = o.out_valid && out_last;
  assign o.out_to   = o.out_valid ? out_to : '0;
  assign o.out_data = o.out_valid ? out_data : '0;
  assign o.padding  = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
