// The joiner of data in front of the packer (C-34, C-35; Fig. 11): data of reads and immediate data
// become one stream, in the order of operations.
//
// Each port has its data in that order. A queue of one bit a read knows which read is the last of
// its operation. Immediate data goes when no read is in front of it. Between the beats of an
// operation goes none of another one. A beat goes in the cycle in which it comes.
module data_join #(
    // Reads that have been requested and have not left.
    parameter int unsigned Reads = 32,
    // Bits of a beat, and of a lane.
    parameter int unsigned Width = 128,
    parameter int unsigned LaneWidth = 4
) (
    input logic clk,
    input logic rst,

    // A read is requested.
    input  logic read_valid,
    output logic read_ready,
    input  logic read_ends,

    // A beat of the oldest read.
    input  logic                 data_valid,
    output logic                 data_ready,
    input  logic                 data_last,
    input  logic                 data_failed,
    input  logic [LaneWidth-1:0] data_from,
    input  logic [LaneWidth-1:0] data_to,
    input  logic [    Width-1:0] data,

    // A beat of immediate data.
    input  logic                 put_valid,
    output logic                 put_ready,
    input  logic                 put_ends,
    input  logic [LaneWidth-1:0] put_to,
    input  logic [    Width-1:0] put_data,

    // A beat for the packer.
    output logic                 out_valid,
    input  logic                 out_ready,
    output logic                 out_ends,
    output logic                 out_failed,
    output logic [LaneWidth-1:0] out_from,
    output logic [LaneWidth-1:0] out_to,
    output logic [    Width-1:0] out_data
);

  localparam int unsigned IndexWidth = $clog2(Reads);

  if (Reads < 2 || Reads > 256 || 2 ** IndexWidth != Reads) begin : g_reads
    $error("data_join: Reads is a power of two from 2 to 256");
  end
  if (Width < 1 || LaneWidth < 1) begin : g_parameters
    $error("data_join: Width and LaneWidth are at least 1");
  end

  // Of each read that has not left, whether it is the last of its operation. Both counts have a bit
  // more than an index.
  logic [Reads-1:0] ends;
  logic [IndexWidth:0] written, left;
  // An operation of which beats have gone, but not the last one; it is one of immediate data.
  logic mid, of_puts;

  logic waits, from_puts, leaves;
  assign waits = written != left;
  assign read_ready = written - left != (IndexWidth + 1)'(Reads);
  assign from_puts = mid ? of_puts : !waits;

  assign out_valid = from_puts ? put_valid : data_valid && waits;
  assign data_ready = !from_puts && waits && out_ready;
  assign put_ready = from_puts && out_ready;
  assign out_ends = from_puts ? put_ends : data_last && waits && ends[left[IndexWidth-1:0]];
  assign out_failed = !from_puts && data_failed;
  assign out_from = from_puts ? '0 : data_from;
  assign out_to = from_puts ? put_to : data_to;
  assign out_data = from_puts ? put_data : data;
  assign leaves = out_valid && out_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      mid     <= 1'b0;
      written <= '0;
      left    <= '0;
    end else begin
      if (leaves) mid <= !out_ends;
      if (leaves && !from_puts && data_last) left <= left + 1'b1;
      if (read_valid && read_ready) written <= written + 1'b1;
    end
    if (leaves) of_puts <= from_puts;
    if (read_ready) ends[written[IndexWidth-1:0]] <= read_ends;
  end

`ifdef PROVE_DATA_JOIN
  `include "data_join_formal.svh"
`endif

endmodule
