// `stream_fifo` with the ports that the model has, packed.
module stream_fifo_bench #(
    parameter int unsigned Depth = 16
) (
    input  logic                                  clk,
    input  logic                                  rst,
    input  logic [ stream_fifo_ports::InBits-1:0] in,
    output logic [stream_fifo_ports::OutBits-1:0] out
);

  stream_fifo_ports::in_t  i;
  stream_fifo_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned CountWidth = $clog2(Depth > 1 ? Depth : 2) + 1;
  logic [CountWidth-1:0] count;
  logic [63:0] out_data;

  stream_fifo #(
      .Width(64),
      .Depth(Depth)
  ) u_dut (
      .clk,
      .rst,
      .in_valid (i.in_valid),
      .in_ready (o.in_ready),
      .in_data  (i.in_data),
      .out_valid(o.out_valid),
      .out_ready(i.out_ready),
      .out_data (out_data),
      .count    (count)
  );

  assign o.out_data = o.out_valid ? out_data : '0;
  assign o.count    = 16'(count);
  assign o.padding  = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
