// A FIFO between two clocks, whose counters cross in Gray code.
//
// Each side counts its words, and shows the other side the count in Gray code. One bit changes with
// each word, so a count that is stored while it changes is the old or the new one. An old count is
// safe: the other side sees fewer words, or fewer free places.
//
// Both resets are active together, for at least one edge of either clock.
module cdc_fifo_gray #(
    parameter int unsigned Width = 8,
    parameter int unsigned Depth = 16,
    localparam int unsigned AddressWidth = (Depth > 1) ? $clog2(Depth) : 1,
    localparam int unsigned CountWidth = AddressWidth + 1
) (
    input logic in_clk,
    input logic in_rst,
    input logic in_valid,
    output logic in_ready,
    input logic [Width-1:0] in_data,

    input logic out_clk,
    input logic out_rst,
    output logic out_valid,
    input logic out_ready,
    output logic [Width-1:0] out_data
);

  if (Width < 1 || Depth < 2 || 2 ** AddressWidth != Depth) begin : g_parameters
    $error("cdc_fifo_gray: Width is at least 1, and Depth a power of two from 2 on");
  end

  logic [Width-1:0] words[Depth];

  // Words that entered, and words that left the memory for the output. The Gray codes are registers
  // of their own: behind a gate they could show a third value for a moment.
  logic [CountWidth-1:0] written, written_next, written_gray, written_seen;
  logic [CountWidth-1:0] read, read_next, read_gray, read_seen;

`ifdef FORMAL
  logic [CountWidth-1:0] written_settled, read_settled;
`endif

  function automatic logic [CountWidth-1:0] gray(input logic [CountWidth-1:0] count);
    gray = count ^ (count >> 1);
  endfunction

  // The side that writes. It is full if the counts differ by `Depth`: by their highest bit alone.
  localparam logic [CountWidth-1:0] Full = gray(CountWidth'(Depth));
  logic enters;
  assign in_ready = written_gray != (read_seen ^ Full);
  assign enters = in_valid && in_ready;
  assign written_next = written + CountWidth'(enters);

  always_ff @(posedge in_clk) begin
    if (in_rst) begin
      written      <= '0;
      written_gray <= '0;
    end else begin
      written      <= written_next;
      written_gray <= gray(written_next);
    end
    if (enters && !in_rst) words[written[AddressWidth-1:0]] <= in_data;
  end

  cdc_sync #(
      .Width(CountWidth)
  ) u_read (
      .clk(in_clk),
      .rst(in_rst),
      .in(read_gray),
`ifdef FORMAL
      .probe_settled(read_settled),
`endif
      .out(read_seen)
  );

  // The side that reads. A word leaves the memory as soon as the output is free.
  logic takes;
  assign takes = written_seen != read_gray && (!out_valid || out_ready);
  assign read_next = read + CountWidth'(takes);

  always_ff @(posedge out_clk) begin
    if (out_rst) begin
      read      <= '0;
      read_gray <= '0;
      out_valid <= 1'b0;
    end else begin
      read      <= read_next;
      read_gray <= gray(read_next);
      out_valid <= takes || (out_valid && !out_ready);
    end
    if (takes) out_data <= words[read[AddressWidth-1:0]];
  end

  cdc_sync #(
      .Width(CountWidth)
  ) u_written (
      .clk(out_clk),
      .rst(out_rst),
      .in(written_gray),
`ifdef FORMAL
      .probe_settled(written_settled),
`endif
      .out(written_seen)
  );

`ifdef PROVE_CDC_FIFO_GRAY
  `include "cdc_fifo_gray_formal.svh"
`endif

endmodule
