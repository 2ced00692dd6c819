// The arbiter of packets in front of an input of the crossbar (C-26, C-27, C-42): packer and packer
// of GETs share it.
//
// Senders take turns, packet by packet. A packet whose channel has no room lets the others pass. A
// beat goes on in the cycle in which it comes, and no cycle is lost between packets.
module packet_arb #(
    parameter int unsigned Inputs = 2,
    parameter int unsigned Channels = 3,
    parameter int unsigned Width = 128,
    // Bits of the lane of a beat's last byte.
    parameter int unsigned LaneWidth = 4,
    parameter int unsigned RouteWidth = 8,
    localparam int unsigned ChannelWidth = (Channels > 1) ? $clog2(Channels) : 1
) (
    input logic clk,
    input logic rst,

    // By sender: a beat of a packet, with the lane of its last byte. The channel counts with the
    // first one.
    input  logic [Inputs-1:0]                   in_valid,
    output logic [Inputs-1:0]                   in_ready,
    input  logic [Inputs-1:0]                   in_last,
    input  logic [Inputs-1:0][   LaneWidth-1:0] in_to,
    input  logic [Inputs-1:0][ChannelWidth-1:0] in_channel,
    input  logic [Inputs-1:0][  RouteWidth-1:0] in_route,
    input  logic [Inputs-1:0][       Width-1:0] in_data,

    // A beat for the crossbar, whose channels say whether they take one. It is offered only if it
    // is taken.
    input  logic [    Channels-1:0] out_ready,
    output logic                    out_valid,
    output logic                    out_last,
    output logic [   LaneWidth-1:0] out_to,
    output logic [ChannelWidth-1:0] out_channel,
    output logic [  RouteWidth-1:0] out_route,
    output logic [       Width-1:0] out_data
);

  if (Inputs < 1 || Channels < 1 || Width < 1 || LaneWidth < 1 || RouteWidth < 1) begin : g_sizes
    $error("packet_arb: all parameters are at least 1");
  end

  localparam int unsigned SenderWidth = (Inputs > 1) ? $clog2(Inputs) : 1;
  typedef logic [SenderWidth-1:0] sender_t;
  typedef logic [Inputs-1:0] bits_t;
  typedef logic [ChannelWidth-1:0] channel_t;

  // A packet whose last beat has not gone, its sender and its channel.
  logic mid;
  sender_t owner;
  channel_t channel;

  // Channels that have room; one that does not exist has none.
  logic [2**ChannelWidth-1:0] room;
  assign room = (2 ** ChannelWidth)'(out_ready);

  // Senders whose next packet can begin.
  bits_t has_room, can;
  for (genvar each = 0; each < Inputs; each++) begin : g_room
    assign has_room[each] = room[in_channel[each]];
  end
  assign can = in_valid & has_room;

  bits_t served;
  sender_t server;
  logic begins;
  assign served = in_valid & in_ready;
  assign out_valid = served != '0;
  assign begins = out_valid && !mid;

`ifdef FORMAL
  logic [Inputs-1:0][Inputs-1:0] f_from_pointer;
`endif

  // One arbiter of each sender tells whether that one would go first if it offered a packet. So it
  // is ready whether it does or not.
  for (genvar each = 0; each < Inputs; each++) begin : g_turns
    logic unused_valid;
    sender_t first;
    rr_arb #(
        .Requests(Inputs)
    ) u_rr_arb (
        .clk,
        .rst,
        .request(can | bits_t'(1 << each)),
        .advance(begins),
        .behind(server),
`ifdef FORMAL
        .probe_from_pointer(f_from_pointer[each]),
`endif
        .valid(unused_valid),
        .index(first)
    );
    assign in_ready[each] = mid ? owner == sender_t'(each) && room[channel]
        : first == sender_t'(each) && has_room[each];
    // The sender itself is there.
    logic unused;
    assign unused = unused_valid;
  end

  channel_t begun_channel;
  always_comb begin
    server = '0;
    out_last = 1'b0;
    out_to = '0;
    begun_channel = '0;
    out_route = '0;
    out_data = '0;
    for (int unsigned each = 0; each < Inputs; each++) begin
      if (served[each]) begin
        server |= sender_t'(each);
        out_last |= in_last[each];
        out_to |= in_to[each];
        begun_channel |= in_channel[each];
        out_route |= in_route[each];
        out_data |= in_data[each];
      end
    end
  end
  assign out_channel = mid ? channel : begun_channel;

  always_ff @(posedge clk) begin
    if (rst) mid <= 1'b0;
    else if (out_valid) mid <= !out_last;
    if (begins) begin
      owner   <= server;
      channel <= begun_channel;
    end
  end

`ifdef PROVE_PACKET_ARB
  `include "packet_arb_formal.svh"
`endif

endmodule
