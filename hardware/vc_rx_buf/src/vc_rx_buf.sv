// The receiver's buffer of one virtual channel of a link, and its credits (S-15, S-20, S-21, S-26).
//
// A packet can leave when all of it has come and its check is right. One that may leave earlier
// leaves while it comes (cut-through). If that one proves wrong, its last beat is marked bad. A
// wrong packet of which nothing was offered leaves no trace.
module vc_rx_buf #(
    parameter int unsigned Width = 128,
    parameter int unsigned HeaderWidth = 8,
    parameter int unsigned DataWidth = 12,
    // Packets and data credits that it has.
    parameter int unsigned Headers = 32,
    parameter int unsigned Data = 92,
    // Beats of the longest packet.
    parameter int unsigned Longest = 34,
    // Cycles after which an update of credits is repeated.
    parameter int unsigned AgainAfter = 7500
) (
    input logic clk,
    input logic rst,

    // Beats of TLPs, and the DWs that the last one lacks. With the first one: whether the packet
    // may leave early. With the last one: whether it is sound, and the next in order.
    input logic             in_valid,
    input logic             in_last,
    input logic [      1:0] in_empty,
    input logic [Width-1:0] in_data,
    input logic             in_early,
    input logic             in_deliver,

    // The packet that ends is kept. It should be, and has no credits.
    output logic kept,
    output logic refused,

    // Beats of packets. One whose last beat is bad is to be dropped.
    output logic             out_valid,
    input  logic             out_ready,
    output logic             out_last,
    output logic             out_bad,
    output logic [      1:0] out_empty,
    output logic [Width-1:0] out_data,

    // The sum of all grants.
    output logic                   update_valid,
    input  logic                   update_ready,
    output logic [HeaderWidth-1:0] update_headers,
    output logic [  DataWidth-1:0] update_data
);

  // A TLP has a beat for its header, and up to one more than its data credits for payload and
  // check. A bad packet that leaves has no credits, and there is one at most.
  localparam int unsigned Depth = 2 * Headers + Data + Longest;
  localparam int unsigned AddressWidth = $clog2(Depth);
  localparam int unsigned CountWidth = AddressWidth + 1;
  typedef logic [CountWidth-1:0] count_t;
  typedef logic [DataWidth-1:0] data_t;

  // Beats that have come, those of them in whole packets, and those that have left.
  count_t written, whole, read;
  // A packet has begun to come and has not ended. It may leave; a beat of it was offered; a beat
  // of it found no place.
  logic mid, early, begun, lost;
  // Beats of the packet that leaves which have left.
  count_t left;

`ifdef FORMAL
  logic [2**AddressWidth-1:0][Width+3:0] f_beats;
  logic [HeaderWidth-1:0] f_free_headers;
  logic [DataWidth-1:0] f_free_data;
`endif

  logic has_place, loses, ends, drops, writes;
  assign has_place = written - read != count_t'(Depth);
  assign loses = lost || !has_place;
  assign ends = in_valid && in_last;
  assign drops = ends && !kept && !begun;
  assign writes = in_valid && !loses && !drops;

  // One beat is a TLP's header, and the last DW its check.
  count_t came;
  data_t in_cost, leave_cost;
  logic delivers, has_credits, leaves, leave_valid;
  assign came = written - whole;
  assign in_cost = data_t'(came) - data_t'(in_empty == 2'd3);
  assign delivers = ends && in_deliver && !loses;
  assign kept = delivers && has_credits;
  assign refused = ends && in_deliver && !kept;
  assign leaves = out_valid && out_ready;
  assign leave_valid = leaves && out_last && !out_bad;
  assign leave_cost = data_t'(left) - data_t'(out_empty == 2'd3);
  credit_ledger #(
      .HeaderWidth(HeaderWidth),
      .DataWidth(DataWidth),
      .Headers(Headers),
      .Data(Data),
      .AgainAfter(AgainAfter)
  ) u_ledger (
      .clk,
      .rst,
      .in_valid(delivers),
      .in_ready(has_credits),
      .in_cost,
      .leave_valid,
      .leave_cost,
`ifdef FORMAL
      .probe_headers(f_free_headers),
      .probe_data(f_free_data),
`endif
      .update_valid,
      .update_ready,
      .update_headers,
      .update_data
  );

  // The read of a cycle is for the next one, so it follows what leaves now. A beat that is being
  // written is not yet in the memory: hence `written` and not its next value.
  count_t read_next, limit;
  logic shows;
  assign read_next = read + count_t'(leaves);
  // Only a packet that finds a place for each beat may leave early: its end must have one.
  assign limit = (early && has_place && !drops) ? written : whole;
  assign shows = read_next != limit;
  ram_1w1r #(
      .Width(Width + 4),
      .Depth(2 ** AddressWidth)
  ) u_beats (
      .clk,
      .write(writes),
      .write_address(written[AddressWidth-1:0]),
      .write_data({in_last && !kept, in_last, in_empty, in_data}),
      .read(1'b1),
      .read_address(read_next[AddressWidth-1:0]),
`ifdef FORMAL
      .probe_words(f_beats),
`endif
      .read_data({out_bad, out_last, out_empty, out_data})
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      written <= '0;
      whole <= '0;
      read <= '0;
      out_valid <= 1'b0;
      mid <= 1'b0;
      early <= 1'b0;
      begun <= 1'b0;
      lost <= 1'b0;
      left <= '0;
    end else begin
      read <= read_next;
      out_valid <= shows;
      if (leaves) left <= out_last ? '0 : left + count_t'(1);
      if (drops) written <= whole;
      else if (writes) written <= written + count_t'(1);
      if (ends && !drops) whole <= written + count_t'(1);
      if (in_valid) begin
        mid   <= !in_last;
        early <= !in_last && !loses && (mid ? early : in_early);
        lost  <= !in_last && loses;
      end
      begun <= !ends && (begun || (early && shows && read_next == whole));
    end
  end

`ifdef PROVE_VC_RX_BUF
  `include "vc_rx_buf_formal.svh"
`endif

endmodule
