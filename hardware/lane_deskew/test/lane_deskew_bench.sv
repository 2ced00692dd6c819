// `lane_deskew` with the ports that the model has, packed.
module lane_deskew_bench #(
    parameter int unsigned MaxSkew = 7
) (
    input  logic                                  clk,
    input  logic                                  rst,
    input  logic [ lane_deskew_ports::InBits-1:0] in,
    output logic [lane_deskew_ports::OutBits-1:0] out
);

  lane_deskew_ports::in_t  i;
  lane_deskew_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic [   $bits(o.line_k)-1:0] line_k;
  logic [$bits(o.line_data)-1:0] line_data;

  lane_deskew #(
      .MaxSkew(MaxSkew)
  ) u_dut (
      .clk,
      .rst,
      .lane_k    (i.lane_k),
      .lane_data (i.lane_data),
      .aligned   (o.aligned),
      .line_valid(o.line_valid),
      .line_k    (line_k),
      .line_data (line_data)
  );

  assign o.line_k    = o.line_valid ? line_k : '0;
  assign o.line_data = o.line_valid ? line_data : '0;
  assign o.padding   = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
