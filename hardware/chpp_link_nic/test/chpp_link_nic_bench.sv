// `chpp_link_nic` with the ports that the model has, packed.
module chpp_link_nic_bench #(
    parameter int unsigned Bells = 4,
    parameter int unsigned Tags = 8,
    parameter int unsigned Timeout = 1500,
    parameter int unsigned Beats = 64,
    parameter int unsigned Reads = 8,
    parameter int unsigned Request = 8,
    parameter int unsigned Longest = 32,
    parameter int unsigned Fetches = 4,
    parameter int unsigned Places = 2,
    parameter int unsigned Events = 4,
    parameter int unsigned Gets = 2,
    parameter int unsigned PackBeats = 32,
    parameter int unsigned PackPackets = 4,
    parameter int unsigned Payload = 128,
    parameter int unsigned LongestNap = 256,
    parameter int unsigned Packets = 2,
    parameter int unsigned Depth = 4,
    parameter int unsigned Room = 128,
    parameter int unsigned Write = 128,
    parameter int unsigned Slots = 4,
    parameter int unsigned Batch = 2,
    parameter int unsigned Replay = 128,
    parameter int unsigned ReplayAfter = 206,
    parameter int unsigned AcknowledgeAfter = 69,
    parameter int unsigned Headers = 32,
    parameter int unsigned Data = 92,
    parameter int unsigned UpdateAgainAfter = 7500,
    parameter int unsigned InitAgainAfter = 34,
    parameter bit CutThrough = 1'b1,
    parameter int unsigned MarkEvery = 640,
    parameter int unsigned MaxSkew = 7,
    parameter int unsigned Every = 16,
    parameter int unsigned Sets = 8,
    parameter int unsigned LostAfter = 2048
) (
    input  logic                                    clk,
    input  logic                                    rst,
    input  logic [ chpp_link_nic_ports::InBits-1:0] in,
    output logic [chpp_link_nic_ports::OutBits-1:0] out
);

  chpp_link_nic_ports::in_t  i;
  chpp_link_nic_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic tx_last;
  logic [1:0] tx_empty;
  logic [127:0] tx_data;

  chpp_link_nic #(
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
      .Batch(Batch),
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
  ) u_dut (
      .clk,
      .rst,
      .cpu         (i.cpu),
      .cpus        (i.cpus),
      .device      (i.device),
      .base        (i.base),
      .read_credit (i.read_credit),
      .rx_valid    (i.rx_valid),
      .rx_ready    (o.rx_ready),
      .rx_last     (i.rx_last),
      .rx_empty    (i.rx_empty),
      .rx_data     (i.rx_data),
      .tx_valid    (o.tx_valid),
      .tx_ready    (i.tx_ready),
      .tx_last     (tx_last),
      .tx_empty    (tx_empty),
      .tx_data     (tx_data),
      .lane_tx_k   (o.lane_tx_k),
      .lane_tx_data(o.lane_tx_data),
      .lane_rx_k   (i.lane_rx_k),
      .lane_rx_data(i.lane_rx_data),
      .lanes_up    (o.lanes_up),
      .up          (o.up),
      .trained     (o.trained),
      .recovers    (o.recovers),
      .damaged     (o.damaged),
      .dropped     (o.dropped),
      .refused     (o.refused)
  );

  // DWs that a beat lacks can have any value.
  logic [127:0] shown;
  always_comb begin
    shown = '0;
    for (int unsigned lane = 0; lane < 4; lane++) begin
      if (o.tx_valid && lane + 32'(tx_empty) < 4) begin
        shown[lane*32+:32] = tx_data[lane*32+:32];
      end
    end
  end
  assign o.tx_last  = o.tx_valid && tx_last;
  assign o.tx_empty = o.tx_valid ? tx_empty : '0;
  assign o.tx_data  = shown;
  assign o.padding  = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
