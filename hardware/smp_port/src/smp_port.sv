// One end of a link between processors, with its eight lanes (S-13 to S-21): packets in and out by
// virtual channel, and two symbols of each lane in each cycle.
//
// Training stops the symbols of the link, and resets nothing of it: frames that are under way then
// are replayed.
module smp_port #(
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
    localparam int unsigned Channels = 2,
    localparam int unsigned Lanes = 8
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

    // The lanes carry the link's symbols. The training ends; a new one begins in the next cycle.
    output logic lanes_up,
    output logic trained,
    output logic recovers,

    // Something was damaged. What came is sound, and no end of this link sends it.
    output logic damaged,
    output logic refused,

    // By lane: two symbols, and which of them are special.
    output logic [Lanes-1:0][ 1:0] tx_k,
    output logic [Lanes-1:0][15:0] tx_data,
    input  logic [Lanes-1:0][ 1:0] rx_k,
    input  logic [Lanes-1:0][15:0] rx_data
);

  // Sets are as far from each other as marks must be, and a lane that brings marks is not lost.
  if (Every <= 2 * MaxSkew || LostAfter <= MarkEvery) begin : g_times
    $error("smp_port: Every is above 2 * MaxSkew, and LostAfter above MarkEvery");
  end

  logic line_valid, line_ready;
  logic [15:0] line_k;
  logic [127:0] line_data;
  logic came_valid;
  logic [15:0] came_k;
  logic [127:0] came_data;
  logic retrain;
  smp_link #(
      .Replay(Replay),
      .ReplayAfter(ReplayAfter),
      .AcknowledgeAfter(AcknowledgeAfter),
      .Headers(Headers),
      .Data(Data),
      .UpdateAgainAfter(UpdateAgainAfter),
      .InitAgainAfter(InitAgainAfter),
      .CutThrough(CutThrough)
  ) u_link (
      .clk,
      .rst,
      .in_valid,
      .in_ready,
      .in_last,
      .in_data,
      .malformed,
      .out_valid,
      .out_ready,
      .out_last,
      .out_bad,
      .out_empty,
      .out_data,
      .up,
      .left_headers,
      .left_data,
      .tx_valid(line_valid),
      .tx_ready(lanes_up && line_ready),
      .tx_k(line_k),
      .tx_data(line_data),
      .rx_valid(came_valid),
      .rx_k(came_k),
      .rx_data(came_data),
      .retrain,
      .damaged,
      .refused
  );

  // A mark goes first when the lanes are up.
  logic [Lanes-1:0][ 1:0] lane_k;
  logic [Lanes-1:0][15:0] lane_data;
  lane_stripe #(
      .MarkEvery(MarkEvery)
  ) u_stripe (
      .clk,
      .rst(rst || !lanes_up),
      .line_valid,
      .line_ready,
      .line_k,
      .line_data,
      .lane_k,
      .lane_data
  );

  lane_train #(
      .Lanes(Lanes),
      .Every(Every),
      .Sets(Sets),
      .LostAfter(LostAfter)
  ) u_train (
      .clk,
      .rst,
      .retrain,
      .up(lanes_up),
      .trained,
      .recovers,
      .line_k(lane_k),
      .line_data(lane_data),
      .tx_k,
      .tx_data,
      .rx_k,
      .rx_data
  );

  logic unused_aligned;
  lane_deskew #(
      .Lanes  (Lanes),
      .MaxSkew(MaxSkew)
  ) u_deskew (
      .clk,
      .rst,
      .lane_k(rx_k),
      .lane_data(rx_data),
      .aligned(unused_aligned),
      .line_valid(came_valid),
      .line_k(came_k),
      .line_data(came_data)
  );

endmodule
