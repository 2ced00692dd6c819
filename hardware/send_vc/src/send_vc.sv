// The sender's virtual channels of a link: a queue of each, and whose packet goes next (S-14,
// S-15).
//
// A beat that enters in cycle t can leave from t + 2 on, also before the rest of its packet: the
// header of a TLP tells the length. A packet begins if its credits are there, and if the replay
// buffer has room for all of it. Then it leaves a beat in each cycle, as far as it has come.
module send_vc #(
    parameter int unsigned Width = 128,
    // Beats that wait in each channel.
    parameter int unsigned Depth = 34,
    parameter int unsigned RoomWidth = 8,
    parameter int unsigned DataWidth = 12,
    localparam int unsigned Channels = 2
) (
    input logic clk,
    input logic rst,

    // Beats of TLPs, by channel.
    input  logic [Channels-1:0]            in_valid,
    output logic [Channels-1:0]            in_ready,
    input  logic [Channels-1:0]            in_last,
    input  logic [Channels-1:0][Width-1:0] in_data,

    // Data credits of the packet that could begin, whether they are there, and that it begins.
    output logic [Channels-1:0][DataWidth-1:0] cost,
    input  logic [Channels-1:0]                allowed,
    output logic [Channels-1:0]                begins,
    // The packet that leaves is not what its header says.
    output logic [Channels-1:0]                malformed,

    // Beats that can enter the replay buffer, and beats for it.
    input  logic [RoomWidth-1:0] room,
    output logic                 out_valid,
    output logic                 out_last,
    output logic [    Width-1:0] out_data
);

  if (Width < 32 || Depth < 1 || RoomWidth < 1 || DataWidth < 9) begin : g_parameters
    $error("send_vc: Width is at least 32, Depth and RoomWidth 1, DataWidth 9");
  end

  localparam int unsigned LengthWidth = 10;
  localparam int unsigned BeatsWidth = LengthWidth - 1;
  localparam int unsigned CompareWidth = (RoomWidth > BeatsWidth) ? RoomWidth : BeatsWidth;
  typedef logic [BeatsWidth-1:0] beats_t;

  // A packet has begun to leave and has not ended: its channel, and the beats that are to leave.
  logic mid, current;
  beats_t left;
  // The channel whose turn it is, whether its packet begins, and the channel of what leaves.
  logic turn, is_turn, starts, channel;

`ifdef FORMAL
  localparam int unsigned AddressWidth = (Depth > 1) ? $clog2(Depth) : 1;
  logic [Channels-1:0][2**AddressWidth-1:0][Width:0] f_words;
  logic [Channels-1:0][AddressWidth:0] f_written, f_read;
  logic [Channels-1:0] f_from_pointer;
`endif

  // By channel, the beat in front. If it is a packet's first one: DWs of payload.
  logic [Channels-1:0] waits, takes, last, is_own;
  logic [Channels-1:0][Width-1:0] front;
  logic [Channels-1:0][LengthWidth-1:0] length;
  for (genvar at = 0; at < Channels; at++) begin : g_channel
    logic [$clog2(Depth > 1 ? Depth : 2):0] unused_count;
    stream_fifo #(
        .Width(Width + 1),
        .Depth(Depth)
    ) u_queue (
        .clk,
        .rst,
        .in_valid(in_valid[at]),
        .in_ready(in_ready[at]),
        .in_data({in_last[at], in_data[at]}),
        .out_valid(waits[at]),
        .out_ready(takes[at]),
        .out_data({last[at], front[at]}),
`ifdef FORMAL
        .probe_words(f_words[at]),
        .probe_written(f_written[at]),
        .probe_read(f_read[at]),
`endif
        .count(unused_count)
    );
    assign length[at] = {front[at][link_pkg::LengthBit-8+:2], front[at][link_pkg::LengthBit+:8]};
    assign cost[at] = (waits[at] && !mid) ? ((DataWidth'(length[at]) + DataWidth'(3)) >> 2) : '0;
    assign is_own[at] = front[at][15:0] == (link_pkg::PostedWrite | 16'(at) << link_pkg::ChannelBit)
        && length[at] <= LengthWidth'(link_pkg::MaxPayload);
    assign takes[at] = out_valid && channel == 1'(at);
    assign begins[at] = takes[at] && !mid;
    assign malformed[at] = takes[at] && (last[at] != out_last || (begins[at] && !is_own[at]));
  end

  // Channels with credits take turns. One whose packet finds no room keeps its turn.
  rr_arb #(
      .Requests(Channels)
  ) u_turn (
      .clk,
      .rst,
      .request(waits & allowed),
      .advance(starts),
      .behind(turn),
`ifdef FORMAL
      .probe_from_pointer(f_from_pointer),
`endif
      .valid(is_turn),
      .index(turn)
  );

  // A TLP has 5 DWs beside its payload.
  beats_t beats;
  assign beats = beats_t'(length[turn] >> 2) + beats_t'(2);
  assign starts = !mid && is_turn && CompareWidth'(beats) <= CompareWidth'(room);
  assign channel = mid ? current : turn;
  assign out_valid = mid ? waits[channel] : starts;
  assign out_last = mid && left == beats_t'(1);
  assign out_data = front[channel];

  always_ff @(posedge clk) begin
    if (rst) mid <= 1'b0;
    else if (out_valid) mid <= !out_last;
    if (starts) current <= turn;
    if (out_valid) left <= (mid ? left : beats) - beats_t'(1);
  end

`ifdef PROVE_SEND_VC
  `include "send_vc_formal.svh"
`endif

endmodule
