// One end of a link between processors (S-13 to S-17, S-20, S-21): packets in and out by virtual
// channel, and a beat of symbols for the lanes and from them in each cycle.
//
// A packet is a TLP. The blocks stand in the order of the data: from `in` to `tx`, and from `rx` to
// `out`. `tx_ready` waits for the lanes.
module smp_link #(
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
    localparam int unsigned Channels = 2
) (
    input logic clk,
    input logic rst,

    // Beats of packets for the far end, by channel.
    input  logic [Channels-1:0]        in_valid,
    output logic [Channels-1:0]        in_ready,
    input  logic [Channels-1:0]        in_last,
    input  logic [Channels-1:0][127:0] in_data,
    // The packet that begins or leaves is not what its header says.
    output logic [Channels-1:0]        malformed,

    // Beats of packets from there, and DWs that the last one lacks. A bad packet is to be dropped.
    output logic [Channels-1:0]        out_valid,
    input  logic [Channels-1:0]        out_ready,
    output logic [Channels-1:0]        out_last,
    output logic [Channels-1:0]        out_bad,
    output logic [Channels-1:0][  1:0] out_empty,
    output logic [Channels-1:0][127:0] out_data,

    // Packets of the channel may go, and the credits that are left.
    output logic [Channels-1:0]       up,
    output logic [Channels-1:0][ 7:0] left_headers,
    output logic [Channels-1:0][11:0] left_data,

    // Symbols for the lanes; without `tx_valid` idle ones should go, which are zeros.
    output logic         tx_valid,
    input  logic         tx_ready,
    output logic [ 15:0] tx_k,
    output logic [127:0] tx_data,

    // Symbols from the lanes.
    input logic         rx_valid,
    input logic [ 15:0] rx_k,
    input logic [127:0] rx_data,

    // The link should be trained anew. Something was damaged. What came is sound, and no end of
    // this link sends it: a packet without credits or of another type, another link packet, an ACK
    // for what was never sent.
    output logic retrain,
    output logic damaged,
    output logic refused
);

  // Beats of the longest packet, and of its frame.
  localparam int unsigned Longest = link_pkg::MaxPayload / 4 + 2;
  localparam int unsigned RoomWidth = $clog2((Replay > 1) ? Replay : 2) + 1;
  typedef logic [link_pkg::SequenceWidth-1:0] sequence_t;

  // ---- From `in` to `tx`.

  logic [Channels-1:0][11:0] cost;
  logic [Channels-1:0] has_credits, begins;
  logic [RoomWidth-1:0] room;
  logic sent_valid, sent_last;
  logic [127:0] sent_data;
  send_vc #(
      .Depth(Longest),
      .RoomWidth(RoomWidth)
  ) u_send (
      .clk,
      .rst,
      .in_valid,
      .in_ready,
      .in_last,
      .in_data,
      .cost,
      .allowed  (up & has_credits),
      .begins,
      .malformed,
      .room,
      .out_valid(sent_valid),
      .out_last (sent_last),
      .out_data (sent_data)
  );

  logic kept_valid, kept_ready, kept_last;
  sequence_t kept_sequence;
  logic [127:0] kept_data;
  logic ack_valid, ack_ready, ack_nak, ack_refused;
  sequence_t ack_sequence;
  // A packet begins only if all of it has room.
  logic unused_ready, unused_again, unused_timed_out;
  replay_buf #(
      .Depth(Replay),
      .ReplayAfter(ReplayAfter)
  ) u_replay (
      .clk,
      .rst,
      .in_valid(sent_valid),
      .in_ready(unused_ready),
      .in_last(sent_last),
      .in_data(sent_data),
      .room,
      .out_valid(kept_valid),
      .out_ready(kept_ready),
      .out_last(kept_last),
      .out_again(unused_again),
      .out_sequence(kept_sequence),
      .out_data(kept_data),
      .ack_valid,
      .ack_ready,
      .ack_nak,
      .ack_sequence,
      .refused(ack_refused),
      .timed_out(unused_timed_out),
      .retrain
  );

  logic dllp_valid, dllp_ready;
  logic [63:0] dllp_data;
  frame_tx u_frame_tx (
      .clk,
      .rst,
      .in_valid(kept_valid),
      .in_ready(kept_ready),
      .in_last(kept_last),
      .in_sequence(kept_sequence),
      .in_data(kept_data),
      .dllp_valid,
      .dllp_ready,
      .dllp_data,
      .line_valid(tx_valid),
      .line_ready(tx_ready),
      .line_k(tx_k),
      .line_data(tx_data)
  );

  // ---- From `rx` to `out`.

  logic came_valid, came_last;
  logic [  1:0] came_empty;
  logic [127:0] came_data;
  logic frame_valid, frame_damaged;
  sequence_t frame_sequence;
  logic heard_valid;
  logic [63:0] heard_data;
  frame_rx #(
      .MaxBeats(Longest)
  ) u_frame_rx (
      .clk,
      .rst,
      .line_valid(rx_valid),
      .line_k(rx_k),
      .line_data(rx_data),
      .out_valid(came_valid),
      .out_last(came_last),
      .out_empty(came_empty),
      .out_data(came_data),
      .frame_valid,
      .frame_damaged,
      .frame_sequence,
      .dllp_valid(heard_valid),
      .dllp_data(heard_data)
  );

  logic deliver, told_valid, told_ready, told_nak;
  sequence_t told_sequence;
  logic unused_repeated, unused_discarded;
  rx_ack #(
      .AcknowledgeAfter(AcknowledgeAfter)
  ) u_rx_ack (
      .clk,
      .rst,
      .frame_valid,
      .frame_damaged,
      .frame_sequence,
      .deliver,
      .repeated(unused_repeated),
      .discarded(unused_discarded),
      .ack_valid(told_valid),
      .ack_ready(told_ready),
      .ack_nak(told_nak),
      .ack_sequence(told_sequence)
  );

  // The first beat of a packet has its channel. Only the next frame in order may leave early.
  sequence_t expected;
  logic mid;
  logic [Channels-1:0] held, coming, is_own;
  assign coming = mid ? held : is_own;
  always_ff @(posedge clk) begin
    if (rst) begin
      expected <= '0;
      mid <= 1'b0;
    end else begin
      expected <= expected + sequence_t'(deliver);
      if (came_valid) mid <= !came_last;
    end
    if (came_valid) held <= coming;
  end

  // ---- Link packets.

  logic [Channels-1:0] heard_update;
  logic [1:0] heard_stage;
  logic [7:0] heard_headers;
  logic [11:0] heard_credits;
  logic dllp_damaged, dllp_unknown;
  dllp_rx u_dllp_rx (
      .clk,
      .rst,
      .dllp_valid(heard_valid),
      .dllp_data(heard_data),
      .ack_valid,
      .ack_ready,
      .ack_nak,
      .ack_sequence,
      .update_valid(heard_update),
      .update_stage(heard_stage),
      .update_headers(heard_headers),
      .update_data(heard_credits),
      .damaged(dllp_damaged),
      .unknown(dllp_unknown)
  );

  logic [Channels-1:0] send_valid, send_ready;
  logic [Channels-1:0][ 1:0] send_stage;
  logic [Channels-1:0][ 7:0] update_headers;
  logic [Channels-1:0][11:0] update_data;
  dllp_tx u_dllp_tx (
      .ack_valid(told_valid),
      .ack_ready(told_ready),
      .ack_nak(told_nak),
      .ack_sequence(told_sequence),
      .update_valid(send_valid),
      .update_ready(send_ready),
      .update_stage(send_stage),
      .update_headers,
      .update_data,
      .dllp_valid,
      .dllp_ready,
      .dllp_data
  );

  // ---- What each channel has.

  logic [Channels-1:0] no_credits;
  for (genvar at = 0; at < Channels; at++) begin : g_channel
    logic grant_valid, update_valid, update_ready, kept;
    logic unused_header, unused_data;
    assign is_own[at] = came_data[15:0]
        == (link_pkg::PostedWrite | 16'(at) << link_pkg::ChannelBit);

    fc_init #(
        .AgainAfter(InitAgainAfter)
    ) u_init (
        .clk,
        .rst,
        .update_valid,
        .update_ready,
        .send_valid(send_valid[at]),
        .send_ready(send_ready[at]),
        .send_stage(send_stage[at]),
        .heard_valid(heard_update[at]),
        .heard_stage,
        .grant_valid,
        .deliver(kept),
        .up(up[at])
    );

    credit_gate u_gate (
        .clk,
        .rst,
        .in_valid(begins[at]),
        .in_ready(has_credits[at]),
        .in_cost(cost[at]),
        .lacks_header(unused_header),
        .lacks_data(unused_data),
        .update_valid(grant_valid),
        .update_headers(heard_headers),
        .update_data(heard_credits),
        .left_headers(left_headers[at]),
        .left_data(left_data[at])
    );

    vc_rx_buf #(
        .Headers(Headers),
        .Data(Data),
        .Longest(Longest),
        .AgainAfter(UpdateAgainAfter)
    ) u_buffer (
        .clk,
        .rst,
        .in_valid(came_valid && coming[at]),
        .in_last(came_last),
        .in_empty(came_empty),
        .in_data(came_data),
        .in_early(CutThrough && frame_sequence == expected),
        .in_deliver(deliver),
        .kept,
        .refused(no_credits[at]),
        .out_valid(out_valid[at]),
        .out_ready(out_ready[at]),
        .out_last(out_last[at]),
        .out_bad(out_bad[at]),
        .out_empty(out_empty[at]),
        .out_data(out_data[at]),
        .update_valid,
        .update_ready,
        .update_headers(update_headers[at]),
        .update_data(update_data[at])
    );
  end

  assign damaged = dllp_damaged || (frame_valid && frame_damaged);
  assign refused = dllp_unknown || ack_refused || no_credits != '0 || (deliver && coming == '0);

endmodule
