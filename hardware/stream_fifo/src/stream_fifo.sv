// A FIFO of streams in a clocked memory.
//
// A word that enters in cycle t can leave from t + 2 on: the memory takes one cycle, and its output
// register is the FIFO's output. One word enters and one leaves in every cycle. All outputs are
// registers, or depend on registers only.
module stream_fifo #(
    parameter int unsigned Width = 8,
    parameter int unsigned Depth = 16,
    localparam int unsigned AddressWidth = (Depth > 1) ? $clog2(Depth) : 1,
    localparam int unsigned CountWidth = AddressWidth + 1
) (
    input  logic                                  clk,
    input  logic                                  rst,
    input  logic                                  in_valid,
    output logic                                  in_ready,
    input  logic [          Width-1:0]            in_data,
    output logic                                  out_valid,
    input  logic                                  out_ready,
    output logic [          Width-1:0]            out_data,
`ifdef FORMAL
    // Proofs look at all words, and at the counters.
    output logic [2**AddressWidth-1:0][Width-1:0] probe_words,
    output logic [     CountWidth-1:0]            probe_written,
    output logic [     CountWidth-1:0]            probe_read,
`endif
    // Words that entered and have not left.
    output logic [     CountWidth-1:0]            count
);

  if (Width < 1 || Depth < 1) begin : g_parameters
    $error("stream_fifo: Width and Depth are at least 1");
  end

  // Both count words, with one bit more than an address has.
  logic [CountWidth-1:0] written, read, read_next;
  logic enters, leaves;

  assign count = written - read;
  assign in_ready = count < CountWidth'(Depth);
  assign enters = in_valid && in_ready;
  assign leaves = out_valid && out_ready;
  assign read_next = read + CountWidth'(leaves);

  // The read of a cycle is for the next one, so it follows what leaves now. A word that is being
  // written is not yet in the memory: hence `written` and not its next value.
  ram_1w1r #(
      .Width(Width),
      .Depth(2 ** AddressWidth)
  ) u_ram (
      .clk,
      .write(enters),
      .write_address(written[AddressWidth-1:0]),
      .write_data(in_data),
      .read(1'b1),
      .read_address(read_next[AddressWidth-1:0]),
`ifdef FORMAL
      .probe_words,
`endif
      .read_data(out_data)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      written   <= '0;
      read      <= '0;
      out_valid <= 1'b0;
    end else begin
      written   <= written + CountWidth'(enters);
      read      <= read_next;
      out_valid <= read_next != written;
    end
  end

`ifdef FORMAL
  assign probe_written = written;
  assign probe_read = read;
`ifdef INVARIANTS
  `include "stream_fifo_lemmas.svh"
`endif
`endif
`ifdef PROVE_STREAM_FIFO
  `include "stream_fifo_formal.svh"
`endif

endmodule
