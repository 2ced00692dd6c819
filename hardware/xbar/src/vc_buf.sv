// The buffer of one input of a crossbar, with its virtual channels (C-42, C-43).
//
// All channels share a memory. Each has a ring of `Room` beats there. A packet begins to come if
// there is room for the longest one. So it never stops within, where it would hold up the others.
//
// A beat that comes in cycle t is in a register in t + 1, which is written into the memory. So its
// packet can start to cross in t + 2, and the beat leaves from t + 3 on. Packets come one after the
// other and leave one after the other, whatever their channels.
//
// A packet keeps its place until its last beat has left. Only that beat, at the memory's output,
// tells that its packet ends. So the next one can start a cycle later: a packet of n beats takes
// n + 1 cycles.
module vc_buf #(
    parameter int unsigned Channels = 3,
    // Packets that a channel holds, and beats of all of them together; beats of a packet, at most.
    parameter int unsigned Depth = 32,
    parameter int unsigned Room = 598,
    parameter int unsigned Beats = 257,
    parameter int unsigned Width = 128,
    parameter int unsigned RouteWidth = 3,
    localparam int unsigned ChannelWidth = (Channels > 1) ? $clog2(Channels) : 1,
    localparam int unsigned CountWidth = $clog2(Depth + 1)
) (
    input logic clk,
    input logic rst,

    // A beat comes, if its channel is ready. The route counts with the first beat of a packet.
    input  logic                    in_valid,
    output logic [    Channels-1:0] in_ready,
    input  logic [ChannelWidth-1:0] in_channel,
    input  logic [  RouteWidth-1:0] in_route,
    input  logic                    in_last,
    input  logic [       Width-1:0] in_data,

    // The packets in front of the channels. One starts to cross; none is crossing then.
    output logic [    Channels-1:0]                 front_valid,
    output logic [    Channels-1:0][RouteWidth-1:0] front_route,
    input  logic                                    take,
    input  logic [ChannelWidth-1:0]                 take_channel,
    output logic                                    crosses,

    // The beats of the packet that is crossing.
    output logic             out_valid,
    input  logic             out_ready,
    output logic             out_last,
    output logic [Width-1:0] out_data,

    // Packets in each channel.
    output logic [Channels-1:0][CountWidth-1:0] packets
);

  if (Channels < 1 || Depth < 1 || Beats < 1 || Width < 1 || RouteWidth < 1) begin : g_parameters
    $error("vc_buf: all parameters are at least 1");
  end
  if (Room < Beats) begin : g_room
    $error("vc_buf: Room is at least Beats");
  end

  localparam int unsigned RoomWidth = $clog2(Room + 1);
  localparam int unsigned Words = Channels * Room;
  localparam int unsigned AddressWidth = (Words > 1) ? $clog2(Words) : 1;

`ifdef FORMAL
  // Proofs look at all words.
  localparam int unsigned RouteAddress = (Depth > 1) ? $clog2(Depth) : 1;
  logic [Words-1:0][Width:0] probe_beats;
  logic [Channels-1:0][2**RouteAddress-1:0][RouteWidth-1:0] probe_routes;
  logic [Channels-1:0][RouteAddress:0] probe_written, probe_read;
`endif

  // ---- What comes: its channel is checked at the port, and it is written a cycle later.

  logic coming, enters, begins;
  logic [ChannelWidth-1:0] coming_channel;
  logic entered, entered_last;
  logic [ChannelWidth-1:0] entered_channel;
  logic [Width-1:0] entered_data;

  assign enters = in_valid && in_ready[in_channel];
  assign begins = enters && !coming;

  always_ff @(posedge clk) begin
    if (rst) begin
      coming  <= 1'b0;
      entered <= 1'b0;
    end else begin
      entered <= enters;
      if (enters) coming <= !in_last;
    end
    if (enters) begin
      coming_channel  <= in_channel;
      entered_channel <= in_channel;
      entered_last    <= in_last;
      entered_data    <= in_data;
    end
  end

  // ---- What leaves.

  logic [ChannelWidth-1:0] crossing_channel, read_channel;
  logic goes_on, ends, has_beat, read;

  assign read_channel = crosses ? crossing_channel : take_channel;
  // Only the beat at the output tells whether its packet goes on.
  assign goes_on = !out_valid || (out_ready && !out_last);
  assign ends = out_valid && out_ready && out_last;
  assign read = (take || crosses) && goes_on && has_beat;

  always_ff @(posedge clk) begin
    if (rst) begin
      crosses   <= 1'b0;
      out_valid <= 1'b0;
    end else begin
      crosses   <= take || (crosses && !ends);
      out_valid <= read || (out_valid && !out_ready);
    end
    if (take) crossing_channel <= take_channel;
  end

  // ---- The channels.

  // The address of a ring's next word, and whether the ring was passed an odd number of times.
  logic [Channels-1:0][AddressWidth-1:0] write_at, read_at;
  logic [Channels-1:0] write_odd, read_odd;
  // Beats that came and were not read.
  logic [Channels-1:0][RoomWidth-1:0] filled;

  // Those of the channel that is written and of the one that is read.
  logic [AddressWidth-1:0] write_address, read_address;
  always_comb begin
    write_address = '0;
    read_address = '0;
    has_beat = 1'b0;
    for (int unsigned at = 0; at < Channels; at++) begin
      if (entered_channel == ChannelWidth'(at)) write_address = write_at[at];
      if (read_channel == ChannelWidth'(at)) begin
        read_address = read_at[at];
        has_beat = {write_odd[at], write_at[at]} != {read_odd[at], read_at[at]};
      end
    end
  end

  for (genvar at = 0; at < Channels; at++) begin : g_channel
    localparam logic [ChannelWidth-1:0] Channel = ChannelWidth'(at);
    localparam logic [AddressWidth-1:0] First = AddressWidth'(at * Room);
    localparam logic [AddressWidth-1:0] Last = AddressWidth'(at * Room + Room - 1);
    logic comes, writes, reads, packet_begins, packet_ends;

    assign comes = enters && in_channel == Channel;
    assign writes = entered && entered_channel == Channel;
    assign reads = read && read_channel == Channel;
    assign packet_begins = begins && in_channel == Channel;
    assign packet_ends = ends && crossing_channel == Channel;
    assign in_ready[at] = coming ? coming_channel == Channel
        : packets[at] < CountWidth'(Depth) && filled[at] <= RoomWidth'(Room - Beats);

    always_ff @(posedge clk) begin
      if (rst) begin
        packets[at] <= '0;
        filled[at] <= '0;
        {write_odd[at], write_at[at]} <= {1'b0, First};
        {read_odd[at], read_at[at]} <= {1'b0, First};
      end else begin
        packets[at] <= packets[at] + CountWidth'(packet_begins) - CountWidth'(packet_ends);
        filled[at]  <= filled[at] + RoomWidth'(comes) - RoomWidth'(reads);
        if (writes && write_at[at] == Last) begin
          {write_odd[at], write_at[at]} <= {!write_odd[at], First};
        end else write_at[at] <= write_at[at] + AddressWidth'(writes);
        if (reads && read_at[at] == Last) begin
          {read_odd[at], read_at[at]} <= {!read_odd[at], First};
        end else read_at[at] <= read_at[at] + AddressWidth'(reads);
      end
    end

    // A packet has a place, so its route has one.
    logic unused_ready;
    logic [((Depth > 1) ? $clog2(Depth) : 1):0] unused_count;
    stream_fifo #(
        .Width(RouteWidth),
        .Depth(Depth)
    ) u_routes (
        .clk,
        .rst,
        .in_valid     (packet_begins),
        .in_ready     (unused_ready),
        .in_data      (in_route),
        .out_valid    (front_valid[at]),
        .out_ready    (take && take_channel == Channel),
        .out_data     (front_route[at]),
`ifdef FORMAL
        .probe_words  (probe_routes[at]),
        .probe_written(probe_written[at]),
        .probe_read   (probe_read[at]),
`endif
        .count        (unused_count)
    );
    logic unused;
    assign unused = ^{unused_ready, unused_count};
  end

  ram_1w1r #(
      .Width(Width + 1),
      .Depth(Words)
  ) u_beats (
      .clk,
      .write(entered),
      .write_address,
      .write_data({entered_last, entered_data}),
      .read,
      .read_address,
`ifdef FORMAL
      .probe_words(probe_beats),
`endif
      .read_data({out_last, out_data})
  );

`ifdef PROVE_VC_BUF
  `include "vc_buf_formal.svh"
`endif

endmodule
