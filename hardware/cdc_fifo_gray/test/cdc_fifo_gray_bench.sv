// `cdc_fifo_gray` with the ports that the model has, packed. A step is an edge of either clock, of
// both, or of none.
module cdc_fifo_gray_bench #(
    parameter int unsigned Depth = 16
) (
    input  logic                                    clk,
    input  logic                                    rst,
    input  logic [ cdc_fifo_gray_ports::InBits-1:0] in,
    output logic [cdc_fifo_gray_ports::OutBits-1:0] out
);

  cdc_fifo_gray_ports::in_t  i;
  cdc_fifo_gray_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic in_clk, out_clk;
  assign in_clk  = clk && (i.in_tick || rst);
  assign out_clk = clk && (i.out_tick || rst);

  logic [63:0] out_data;

  cdc_fifo_gray #(
      .Width(64),
      .Depth(Depth)
  ) u_dut (
      .in_clk,
      .in_rst   (rst),
      .in_valid (i.in_valid),
      .in_ready (o.in_ready),
      .in_data  (i.in_data),
      .out_clk,
      .out_rst  (rst),
      .out_valid(o.out_valid),
      .out_ready(i.out_ready),
      .out_data (out_data)
  );

  assign o.out_data = o.out_valid ? out_data : '0;
  assign o.padding  = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
