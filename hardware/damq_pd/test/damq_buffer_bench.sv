// `damq_buffer` with the ports that the model has, packed.
module damq_buffer_bench #(
    parameter int unsigned Ports = 4,
    parameter int unsigned Depth = 1024,
    parameter int unsigned Landing = 128,
    parameter int unsigned TicketWidth = 16
) (
    input  logic                              clk,
    input  logic                              rst,
    input  logic [ damq_pd_ports::InBits-1:0] in,
    output logic [damq_pd_ports::OutBits-1:0] out
);

  damq_pd_ports::in_t  i;
  damq_pd_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned PortWidth = (Ports > 1) ? $clog2(Ports) : 1;
  localparam int unsigned CountWidth = $clog2(Depth + Landing) + 1;
  logic valid, way, last;
  logic [PortWidth-1:0] port;
  logic [255:0] data;
  logic [CountWidth-1:0] inside_pio, inside_dma, free_pio, free_dma;

  damq_buffer #(
      .Ports(Ports),
      .Depth(Depth),
      .Landing(Landing),
      .TicketWidth(TicketWidth)
  ) u_dut (
      .clk,
      .rst,
      .bell_valid(i.bell_valid),
      .bell_port (i.bell_port[PortWidth-1:0]),
      .word_valid(i.word_valid),
      .word_port (i.word_port[PortWidth-1:0]),
      .word_way  (i.word_way),
      .word_last (i.word_last),
      .word_data (i.word_data),
      .ready     (i.ready),
      .selected  (o.selected),
      .valid,
      .port,
      .way,
      .last,
      .data,
      .inside_pio,
      .inside_dma,
      .free_pio,
      .free_dma,
      .overflow  (o.overflow)
  );

  // The payload counts only while it is valid.
  assign o.valid      = valid;
  assign o.port       = valid ? 6'(port) : '0;
  assign o.way        = valid && way;
  assign o.last       = valid && last;
  assign o.data       = valid ? data : '0;
  assign o.inside_pio = 16'(inside_pio);
  assign o.inside_dma = 16'(inside_dma);
  assign o.free_pio   = 16'(free_pio);
  assign o.free_dma   = 16'(free_dma);
  assign o.padding    = '0;

  logic unused;
  assign unused = ^{i.padding, i.bell_port, i.word_port};

endmodule
