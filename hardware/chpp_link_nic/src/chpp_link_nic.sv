// The whole network interface of cHPP with a link between processors as its network: TLPs of the
// host on one side, and eight lanes on the other.
//
// No class of packets ever waits for the other one: each has its buffers, its channel of the link,
// and its credits. A packet for the far end has a place in `tlp_wrap` before it leaves the
// interface. One from there enters when all of it has come, and a place is there for it.
module chpp_link_nic #(
    // Doorbells of a function that wait.
    parameter int unsigned Bells = 32,
    // Tags, and cycles after which one is lost, at least.
    parameter int unsigned Tags = 32,
    parameter int unsigned Timeout = 2500000,
    // Beats of the re-order memory, and reads of data under way.
    parameter int unsigned Beats = 512,
    parameter int unsigned Reads = 32,
    // Beats of a read, and of a descriptor, at most.
    parameter int unsigned Request = 8,
    parameter int unsigned Longest = 256,
    // Descriptors from here that are being fetched, and those that are being taken apart.
    parameter int unsigned Fetches = 4,
    parameter int unsigned Places = 2,
    // Operations of a function whose events wait, and GETs that wait for the crossbar.
    parameter int unsigned Events = 16,
    parameter int unsigned Gets = 2,
    // The packer: beats, packets, and the bytes of a PUT and of a NAP.
    parameter int unsigned PackBeats = 256,
    parameter int unsigned PackPackets = 16,
    parameter int unsigned Payload = 128,
    parameter int unsigned LongestNap = 2048,
    // Packets of each class that the crossbar may send without hearing of a free place. Packets
    // in a channel of it, and beats.
    parameter int unsigned Packets = 4,
    parameter int unsigned Depth = 32,
    parameter int unsigned Room = 598,
    // Bytes of a write, at most.
    parameter int unsigned Write = 128,
    // Slots in the cache of a queue pair, and those that are read at once.
    parameter int unsigned Slots = 32,
    parameter int unsigned Batch = 16,
    // Beats of the replay buffer.
    parameter int unsigned Replay = 128,
    // Cycles from the end of a frame to a replay, and from a frame to its acknowledgement.
    parameter int unsigned ReplayAfter = 206,
    parameter int unsigned AcknowledgeAfter = 69,
    // Credits of a channel.
    parameter int unsigned Headers = 32,
    parameter int unsigned Data = 92,
    // Cycles from an update of credits to the next one, and from an InitFC to the next one.
    parameter int unsigned UpdateAgainAfter = 7500,
    parameter int unsigned InitAgainAfter = 34,
    // Packets leave before their ends have come; otherwise behind them.
    parameter bit CutThrough = 1'b1,
    // Cycles from a mark to the next one, and from the first lane to the last one.
    parameter int unsigned MarkEvery = 640,
    parameter int unsigned MaxSkew = 7,
    // Training: cycles of a set, sets that must be heard, and cycles in which lanes bring marks.
    parameter int unsigned Every = 16,
    parameter int unsigned Sets = 8,
    parameter int unsigned LostAfter = 2048,
    localparam int unsigned Classes = 2,
    localparam int unsigned Lanes = 8
) (
    input logic clk,
    input logic rst,

    // Straps: the own processor, and how many there are.
    input logic [3:0] cpu,
    input logic [4:0] cpus,

    // The hard block's: bus and device, the window's address, and that the host has room for one
    // more read.
    input logic [12:0] device,
    input logic [47:0] base,
    input logic        read_credit,

    // A beat of a TLP from the host, whose first byte is the lowest one, and DWs that it lacks.
    input  logic         rx_valid,
    output logic         rx_ready,
    input  logic         rx_last,
    input  logic [  1:0] rx_empty,
    input  logic [127:0] rx_data,

    // A beat of a TLP for the host.
    output logic         tx_valid,
    input  logic         tx_ready,
    output logic         tx_last,
    output logic [  1:0] tx_empty,
    output logic [127:0] tx_data,

    // By lane: two symbols, and which of them are special.
    output logic [Lanes-1:0][ 1:0] lane_tx_k,
    output logic [Lanes-1:0][15:0] lane_tx_data,
    input  logic [Lanes-1:0][ 1:0] lane_rx_k,
    input  logic [Lanes-1:0][15:0] lane_rx_data,

    // The lanes carry the link's symbols; packets of a class may go.
    output logic               lanes_up,
    output logic [Classes-1:0] up,
    // The training ends; a new one begins in the next cycle.
    output logic               trained,
    output logic               recovers,
    // Something was damaged, and comes again. A packet was dropped. What no end of this link sends.
    output logic               damaged,
    output logic [Classes-1:0] dropped,
    output logic               refused
);

  // Beats of the longest packet of each class: a header, data, and a tail that may begin a beat.
  localparam int unsigned Data0 = (Payload > LongestNap) ? Payload : LongestNap;
  localparam int unsigned Most0 = (Data0 + 15) / 16 + 3;
  localparam int unsigned Most1 = Longest + 1;
  localparam int unsigned Segment = link_pkg::MaxPayload / 4;

  // ---- The interface.

  logic from_valid, from_class, from_last;
  logic [Classes-1:0] from_ready, from_credit, to_credit;
  logic [3:0] from_to, to_to;
  logic [127:0] from_data, to_data;
  logic to_valid, to_class, to_last;
  logic [Classes-1:0] has_room;
  chpp_nic #(
      .Bells(Bells),
      .Tags(Tags),
      .Timeout(Timeout),
      .Beats(Beats),
      .Reads(Reads),
      .Request(Request),
      .Longest(Longest),
      .Fetches(Fetches),
      .Places(Places),
      .Events(Events),
      .Gets(Gets),
      .PackBeats(PackBeats),
      .PackPackets(PackPackets),
      .Payload(Payload),
      .LongestNap(LongestNap),
      .Packets(Packets),
      .Depth(Depth),
      .Room(Room),
      .Write(Write),
      .Slots(Slots),
      .Batch(Batch)
  ) u_nic (
      .clk,
      .rst,
      .cpu,
      .cpus,
      .device,
      .base,
      .read_credit,
      .rx_valid,
      .rx_ready,
      .rx_last,
      .rx_empty,
      .rx_data,
      .tx_valid,
      .tx_ready,
      .tx_last,
      .tx_empty,
      .tx_data,
      .from_valid,
      .from_ready,
      .from_class,
      .from_last,
      .from_to,
      .from_data,
      .from_credit,
      .to_valid,
      .to_ready(has_room == '1),
      .to_class,
      .to_last,
      .to_to,
      .to_data,
      .to_credit
  );

  // ---- Between packets and TLPs.

  logic [Classes-1:0] go_valid, go_ready, go_last;
  logic [Classes-1:0][127:0] go_data;
  logic [Classes-1:0] come_valid, come_ready, come_last, come_bad;
  logic [Classes-1:0][  1:0] come_empty;
  logic [Classes-1:0][127:0] come_data;
  logic [Classes-1:0] waits_valid, waits_ready, waits_last;
  logic [Classes-1:0][  3:0] waits_to;
  logic [Classes-1:0][127:0] waits_data;
  for (genvar each = 0; each < Classes; each++) begin : g_class
    localparam int unsigned Most = (each == 0) ? Most0 : Most1;
    localparam int unsigned Held = Packets * Most;
    tlp_wrap #(
        .Channel (each == 1),
        .Beats   ((Held > Segment) ? Held : Segment),
        .Segments(Packets * ((Most + Segment - 1) / Segment))
    ) u_wrap (
        .clk,
        .rst,
        .in_valid (to_valid && has_room == '1 && to_class == 1'(each)),
        .in_ready (has_room[each]),
        .in_last  (to_last),
        .in_to    (to_to),
        .in_data  (to_data),
        .credit   (to_credit[each]),
        .out_valid(go_valid[each]),
        .out_ready(go_ready[each]),
        .out_last (go_last[each]),
        .out_data (go_data[each])
    );
    tlp_unwrap #(
        .Beats(Most)
    ) u_unwrap (
        .clk,
        .rst,
        .in_valid (come_valid[each]),
        .in_ready (come_ready[each]),
        .in_last  (come_last[each]),
        .in_bad   (come_bad[each]),
        .in_empty (come_empty[each]),
        .in_data  (come_data[each]),
        .dropped  (dropped[each]),
        .out_valid(waits_valid[each]),
        .out_ready(waits_ready[each]),
        .out_last (waits_last[each]),
        .out_to   (waits_to[each]),
        .out_data (waits_data[each])
    );
  end

  // ---- A packet enters the interface, if a place is there.

  localparam int unsigned PlaceWidth = $clog2(Packets + 1);
  typedef logic [PlaceWidth-1:0] place_t;
  logic mid;
  logic [Classes-1:0] may_go;
  for (genvar each = 0; each < Classes; each++) begin : g_places
    place_t places;
    logic   begins;
    assign begins = from_valid && !mid && from_class == 1'(each);
    assign may_go[each] = from_ready[each] && (mid || places != '0);
    always_ff @(posedge clk) begin
      if (rst) places <= place_t'(Packets);
      else places <= places + place_t'(from_credit[each]) - place_t'(begins);
    end
  end
  always_ff @(posedge clk) begin
    if (rst) mid <= 1'b0;
    else if (from_valid) mid <= !from_last;
  end

  logic unused_route;
  packet_arb #(
      .Inputs(Classes),
      .Channels(Classes),
      .RouteWidth(1)
  ) u_arb (
      .clk,
      .rst,
      .in_valid(waits_valid),
      .in_ready(waits_ready),
      .in_last(waits_last),
      .in_to(waits_to),
      .in_channel(2'b10),
      .in_route('0),
      .in_data(waits_data),
      .out_ready(may_go),
      .out_valid(from_valid),
      .out_last(from_last),
      .out_to(from_to),
      .out_channel(from_class),
      .out_route(unused_route),
      .out_data(from_data)
  );

  // ---- The link.

  logic [Classes-1:0] malformed;
  logic link_refused;
  logic [Classes-1:0][7:0] unused_headers;
  logic [Classes-1:0][11:0] unused_credits;
  smp_port #(
      .Replay(Replay),
      .ReplayAfter(ReplayAfter),
      .AcknowledgeAfter(AcknowledgeAfter),
      .Headers(Headers),
      .Data(Data),
      .UpdateAgainAfter(UpdateAgainAfter),
      .InitAgainAfter(InitAgainAfter),
      .CutThrough(CutThrough),
      .MarkEvery(MarkEvery),
      .MaxSkew(MaxSkew),
      .Every(Every),
      .Sets(Sets),
      .LostAfter(LostAfter)
  ) u_port (
      .clk,
      .rst,
      .in_valid(go_valid),
      .in_ready(go_ready),
      .in_last(go_last),
      .in_data(go_data),
      .malformed,
      .out_valid(come_valid),
      .out_ready(come_ready),
      .out_last(come_last),
      .out_bad(come_bad),
      .out_empty(come_empty),
      .out_data(come_data),
      .up,
      .left_headers(unused_headers),
      .left_data(unused_credits),
      .lanes_up,
      .trained,
      .recovers,
      .damaged,
      .refused(link_refused),
      .tx_k(lane_tx_k),
      .tx_data(lane_tx_data),
      .rx_k(lane_rx_k),
      .rx_data(lane_rx_data)
  );
  assign refused = link_refused || malformed != '0;

endmodule
