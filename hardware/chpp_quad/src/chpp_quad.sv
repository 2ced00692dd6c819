// Four interfaces of cHPP and the crossbar between them (C-01, C-04): what serves four processors.
//
// Interface i is that of processor i. A packet goes to the port of the processor that it names, in
// the channel of GETs or in that of the processor's number modulo the others (C-42). What has a
// place is taken whatever GETs wait for (C-27), so there is room for each packet that has one.
module chpp_quad #(
    // Those of each interface, as `chpp_nic` has them. Room is for all packets that may be on their
    // way to it.
    parameter int unsigned Bells = 32,
    parameter int unsigned Tags = 32,
    parameter int unsigned Timeout = 2500000,
    parameter int unsigned Beats = 512,
    parameter int unsigned Reads = 32,
    parameter int unsigned Request = 8,
    parameter int unsigned Longest = 256,
    parameter int unsigned Fetches = 4,
    parameter int unsigned Places = 2,
    parameter int unsigned Events = 16,
    parameter int unsigned Gets = 2,
    parameter int unsigned PackBeats = 256,
    parameter int unsigned PackPackets = 16,
    parameter int unsigned Payload = 128,
    parameter int unsigned LongestNap = 2048,
    parameter int unsigned Packets = 4,
    parameter int unsigned Depth = 32,
    parameter int unsigned Room = 1028,
    parameter int unsigned Write = 128,
    parameter int unsigned Slots = 32,
    parameter int unsigned Batch = 16,
    // Channels of an input of the crossbar that PUTs and NAPs share.
    parameter int unsigned Channels = 2
) (
    input logic clk,
    input logic rst,

    // By interface, as all others. The hard block's: bus and device, the window's address, and that
    // the host has room for one more read.
    input logic [3:0][12:0] device,
    input logic [3:0][47:0] base,
    input logic [3:0]       read_credit,

    // A beat of a TLP from the host, whose first byte is the lowest one, and DWs that it lacks.
    input  logic [3:0]        rx_valid,
    output logic [3:0]        rx_ready,
    input  logic [3:0]        rx_last,
    input  logic [3:0][  1:0] rx_empty,
    input  logic [3:0][127:0] rx_data,

    // A beat of a TLP for the host.
    output logic [3:0]        tx_valid,
    input  logic [3:0]        tx_ready,
    output logic [3:0]        tx_last,
    output logic [3:0][  1:0] tx_empty,
    output logic [3:0][127:0] tx_data,

    // A packet starts to cross from this interface to another one.
    output logic [3:0] crosses
);

  localparam int unsigned Ports = 4;
  localparam int unsigned AllChannels = Channels + 1;
  localparam int unsigned ChannelWidth = $clog2(AllChannels);
  localparam int unsigned CountWidth = $clog2(Packets + 1);
  // Packets of a class in all channels of an input.
  localparam int unsigned SumWidth = $clog2(Channels * Packets + 1);
  // As in `nic_core`.
  localparam int unsigned LongestPacket = (Payload > LongestNap) ? Payload : LongestNap;
  localparam int unsigned DataBeats = 3 + (LongestPacket + 15) / 16;
  localparam int unsigned XbarBeats = (DataBeats > 1 + Longest) ? DataBeats : 1 + Longest;

  if (Channels < 1) begin : g_channels
    $error("chpp_quad: Channels is at least 1");
  end
  if (Depth < Packets || Room < Packets * XbarBeats) begin : g_room
    $error("chpp_quad: an interface has a place and room for each packet that may come");
  end

  // ---- Between the interfaces and the crossbar.

  logic [Ports-1:0] to_valid, to_ready, to_class, to_last;
  logic [Ports-1:0][  3:0] to_to;
  logic [Ports-1:0][127:0] to_data;
  logic [Ports-1:0][1:0] to_credit, from_credit, from_ready;
  logic [Ports-1:0] from_valid, from_taken, from_class, from_last;
  logic [Ports-1:0][3:0] from_to;
  logic [Ports-1:0][127:0] from_data;

  logic [Ports-1:0] enters;
  logic [Ports-1:0][1:0] goal;
  logic [Ports-1:0][ChannelWidth-1:0] channel;
  logic [Ports-1:0][AllChannels-1:0] xbar_ready;
  logic [Ports-1:0][131:0] to_beat, from_beat;
  logic [Ports-1:0][1:0][CountWidth-1:0] xbar_credits;
  logic [Ports-1:0][AllChannels-1:0][CountWidth-1:0] packets;

  for (genvar at = 0; at < Ports; at++) begin : g_port
    chpp_nic #(
        .Bells      (Bells),
        .Tags       (Tags),
        .Timeout    (Timeout),
        .Beats      (Beats),
        .Reads      (Reads),
        .Request    (Request),
        .Longest    (Longest),
        .Fetches    (Fetches),
        .Places     (Places),
        .Events     (Events),
        .Gets       (Gets),
        .PackBeats  (PackBeats),
        .PackPackets(PackPackets),
        .Payload    (Payload),
        .LongestNap (LongestNap),
        .Packets    (Packets),
        .Depth      (Depth),
        .Room       (Room),
        .Write      (Write),
        .Slots      (Slots),
        .Batch      (Batch)
    ) u_chpp_nic (
        .clk,
        .rst,
        .cpu        (4'(at)),
        .cpus       (5'(Ports)),
        .device     (device[at]),
        .base       (base[at]),
        .read_credit(read_credit[at]),
        .rx_valid   (rx_valid[at]),
        .rx_ready   (rx_ready[at]),
        .rx_last    (rx_last[at]),
        .rx_empty   (rx_empty[at]),
        .rx_data    (rx_data[at]),
        .tx_valid   (tx_valid[at]),
        .tx_ready   (tx_ready[at]),
        .tx_last    (tx_last[at]),
        .tx_empty   (tx_empty[at]),
        .tx_data    (tx_data[at]),
        .from_valid (from_valid[at]),
        .from_ready (from_ready[at]),
        .from_class (from_class[at]),
        .from_last  (from_last[at]),
        .from_to    (from_to[at]),
        .from_data  (from_data[at]),
        .from_credit(from_credit[at]),
        .to_valid   (to_valid[at]),
        .to_ready   (to_ready[at]),
        .to_class   (to_class[at]),
        .to_last    (to_last[at]),
        .to_to      (to_to[at]),
        .to_data    (to_data[at]),
        .to_credit  (to_credit[at])
    );

    // The header names the processor: its lowest two bits, as there is no other one. It counts for
    // all beats of its packet.
    logic mid;
    logic [1:0] kept;
    assign goal[at] = mid ? kept : to_data[at][76:75];
    assign channel[at] = to_class[at] ? ChannelWidth'(Channels)
        : ChannelWidth'(32'(goal[at]) % Channels);
    assign to_ready[at] = xbar_ready[at][channel[at]];
    assign enters[at] = to_valid[at] && to_ready[at];

    always_ff @(posedge clk) begin
      if (rst) mid <= 1'b0;
      else if (enters[at]) mid <= !to_last[at];
      if (enters[at]) kept <= goal[at];
    end

    assign to_beat[at] = {to_to[at], to_data[at]};
    assign {from_to[at], from_data[at]} = from_beat[at];
    assign from_taken[at] = from_ready[at][from_class[at]];

    // A packet leaves its channel, whichever that is, and its class has a place again.
    logic [SumWidth-1:0] data_packets;
    always_comb begin
      data_packets = '0;
      for (int unsigned each = 0; each < Channels; each++) begin
        data_packets += SumWidth'(packets[at][each]);
      end
    end

    net_credit #(
        .CountWidth(SumWidth)
    ) u_net_credit (
        .clk,
        .rst,
        .in_taken(enters[at]),
        .in_class(to_class[at]),
        .in_last (to_last[at]),
        .packets ({SumWidth'(packets[at][Channels]), data_packets}),
        .credit  (to_credit[at])
    );
  end

  // An interface sends a packet if there is a place: so channels have as many, and room for them.
  xbar #(
      .Ports   (Ports),
      .Channels(AllChannels),
      .Depth   (Packets),
      .Room    (Packets * XbarBeats),
      .Beats   (XbarBeats),
      .Width   (132),
      .Classes (2),
      .Credits (Packets)
  ) u_xbar (
      .clk,
      .rst,
      .in_valid  (to_valid),
      .in_ready  (xbar_ready),
      .in_channel(channel),
      .in_output (goal),
      .in_class  (to_class),
      .in_last   (to_last),
      .in_data   (to_beat),
      .granted   (crosses),
      .out_valid (from_valid),
      .out_ready (from_taken),
      .out_class (from_class),
      .out_last  (from_last),
      .out_data  (from_beat),
      .credit    (from_credit),
      .credits   (xbar_credits),
      .packets   (packets)
  );

  logic unused;
  assign unused = ^xbar_credits;

endmodule
