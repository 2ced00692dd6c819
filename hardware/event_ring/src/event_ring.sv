// The interface's side of the event rings in host memory (C-13 to C-16): an event gets the next
// place of its ring and the phase of the lap, and none overtakes software.
//
// An event that enters in cycle t is offered at the output from t + 1 on, and one enters in every
// cycle. What the host writes in cycle t counts from t + 1 on.
module event_ring #(
    // A power of two.
    parameter int unsigned Rings = 64,
    // Bits of a count of records. A ring has fewer records than it can tell apart.
    parameter int unsigned CountWidth = 13,
    parameter int unsigned AddressWidth = 40,
    // Bits of a record, a power of two. Its top bit is the phase.
    parameter int unsigned EventWidth = 256,
    localparam int unsigned RingWidth = (Rings > 1) ? $clog2(Rings) : 1,
    localparam int unsigned OffsetWidth = $clog2(EventWidth / 8),
    localparam int unsigned BaseWidth = AddressWidth - OffsetWidth
) (
    input logic clk,
    input logic rst,

    // The host opens a ring of `host_count` records at `host_base`, in records, or closes one that
    // has none then. Otherwise it reports how many it has consumed since the ring was opened.
    input  logic                  host_valid,
    input  logic                  host_opens,
    input  logic [ RingWidth-1:0] host_ring,
    input  logic [ BaseWidth-1:0] host_base,
    input  logic [CountWidth-1:0] host_count,
    // What it wrote in the cycle before cannot be, and changed nothing.
    output logic                  refused,

    // An event, without its phase. Why it cannot enter does not depend on `in_valid`.
    input  logic                  in_valid,
    output logic                  in_ready,
    input  logic [ RingWidth-1:0] in_ring,
    input  logic [EventWidth-2:0] in_event,
    output logic                  lacks_ring,
    output logic                  lacks_place,

    // Records that can be written to any ring; none to a closed one.
    input  logic [ RingWidth-1:0] ask_ring,
    output logic [CountWidth-1:0] ask_room,

    // A write to host memory, and its ring.
    output logic                    out_valid,
    input  logic                    out_ready,
    output logic [   RingWidth-1:0] out_ring,
    output logic [AddressWidth-1:0] out_address,
    output logic [  EventWidth-1:0] out_event
);

  if (Rings != 2 ** RingWidth) begin : g_rings
    $error("event_ring: Rings is a power of two, and at least 2");
  end
  if (EventWidth < 16 || EventWidth != 8 * 2 ** OffsetWidth) begin : g_event
    $error("event_ring: EventWidth is a power of two, and at least 16");
  end
  if (CountWidth < 1 || CountWidth > BaseWidth) begin : g_count
    $error("event_ring: CountWidth is at least 1, and at most that of a base");
  end

  typedef logic [RingWidth-1:0] ring_t;
  typedef logic [BaseWidth-1:0] base_t;
  typedef logic [CountWidth-1:0] count_t;

  // What a ring has says nothing while it is closed.
  logic [Rings-1:0] is_open;
  base_t base_of[Rings];
  count_t entries_of[Rings];
  // The next place, with the phase of its lap above it.
  logic [CountWidth:0] position_of[Rings];
  // Records written since the ring was opened, and those of them that software has consumed.
  count_t written_of[Rings], consumed_of[Rings];

  // ---- The host. The rings of a node end before the last address: another node's memory may begin
  // there (C-39).

  localparam logic [BaseWidth:0] End = {1'b1, BaseWidth'(0)};
  logic writes_place, opens, reports;
  logic [BaseWidth:0] behind;
  count_t host_consumed, host_unread, news;
  assign behind = (BaseWidth + 1)'(host_base) + (BaseWidth + 1)'(host_count);
  assign host_consumed = consumed_of[host_ring];
  assign host_unread = written_of[host_ring] - host_consumed;
  assign news = host_count - host_consumed;
  assign writes_place = host_valid && host_opens;
  assign opens = writes_place && behind <= End;
  assign reports = host_valid && !host_opens && is_open[host_ring] && news <= host_unread;

  // ---- An event. Openings and events share one write port, so no event enters with an opening.

  base_t base;
  count_t entries, index, index_next, written, unread;
  logic phase, is_last, has_output, enters;
  logic [CountWidth:0] position_next;
  assign base = base_of[in_ring];
  assign entries = entries_of[in_ring];
  assign {phase, index} = position_of[in_ring];
  assign written = written_of[in_ring];
  assign unread = written - consumed_of[in_ring];
  assign lacks_ring = !is_open[in_ring];
  assign lacks_place = is_open[in_ring] && unread == entries;
  assign has_output = !out_valid || out_ready;
  assign in_ready = !writes_place && !lacks_ring && !lacks_place && has_output;
  assign enters = in_valid && in_ready;
  assign index_next = index + count_t'(1);
  assign is_last = index_next == entries;
  assign position_next = is_last ? {!phase, count_t'(0)} : {phase, index_next};

  // ---- What is asked for.

  count_t ask_unread;
  assign ask_unread = written_of[ask_ring] - consumed_of[ask_ring];
  assign ask_room   = is_open[ask_ring] ? entries_of[ask_ring] - ask_unread : '0;

  always_ff @(posedge clk) begin
    if (rst) begin
      is_open   <= '0;
      refused   <= 1'b0;
      out_valid <= 1'b0;
    end else begin
      if (opens) is_open[host_ring] <= host_count != '0;
      refused   <= host_valid && !opens && !reports;
      out_valid <= enters || (out_valid && !out_ready);
    end
    if (enters) begin
      out_ring    <= in_ring;
      out_address <= {base + base_t'(index), OffsetWidth'(0)};
      out_event   <= {phase, in_event};
    end
  end

  ring_t moves;
  assign moves = opens ? host_ring : in_ring;

  always_ff @(posedge clk) begin
    if (opens) begin
      base_of[host_ring] <= host_base;
      entries_of[host_ring] <= host_count;
    end
    if (opens || reports) consumed_of[host_ring] <= opens ? '0 : host_count;
    if (opens || enters) begin
      written_of[moves]  <= opens ? '0 : written + count_t'(1);
      // The first lap has phase 1, over memory that software has zeroed.
      position_of[moves] <= opens ? {1'b1, count_t'(0)} : position_next;
    end
  end

`ifdef PROVE_EVENT_RING
  `include "event_ring_formal.svh"
`endif

endmodule
