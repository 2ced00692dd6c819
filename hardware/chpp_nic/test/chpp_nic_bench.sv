// `chpp_nic` with the ports that the model has, packed.
module chpp_nic_bench #(
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
    parameter int unsigned Batch = 2
) (
    input  logic                               clk,
    input  logic                               rst,
    input  logic [ chpp_nic_ports::InBits-1:0] in,
    output logic [chpp_nic_ports::OutBits-1:0] out
);

  chpp_nic_ports::in_t  i;
  chpp_nic_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic tx_last, to_class, to_last;
  logic [1:0] tx_empty;
  logic [127:0] tx_data, to_data;
  logic [3:0] to_to;

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
  ) u_dut (
      .clk,
      .rst,
      .cpu        (i.cpu),
      .cpus       (i.cpus),
      .device     (i.device),
      .base       (i.base),
      .read_credit(i.read_credit),
      .rx_valid   (i.rx_valid),
      .rx_ready   (o.rx_ready),
      .rx_last    (i.rx_last),
      .rx_empty   (i.rx_empty),
      .rx_data    (i.rx_data),
      .tx_valid   (o.tx_valid),
      .tx_ready   (i.tx_ready),
      .tx_last    (tx_last),
      .tx_empty   (tx_empty),
      .tx_data    (tx_data),
      .from_valid (i.from_valid),
      .from_ready (o.from_ready),
      .from_class (i.from_class),
      .from_last  (i.from_last),
      .from_to    (i.from_to),
      .from_data  (i.from_data),
      .from_credit(o.from_credit),
      .to_valid   (o.to_valid),
      .to_ready   (i.to_ready),
      .to_class   (to_class),
      .to_last    (to_last),
      .to_to      (to_to),
      .to_data    (to_data),
      .to_credit  (i.to_credit)
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
  assign o.tx_data  = shown;
  assign o.tx_last  = o.tx_valid && tx_last;
  assign o.tx_empty = o.tx_valid ? tx_empty : '0;
  assign o.to_class = o.to_valid && to_class;
  assign o.to_last  = o.to_valid && to_last;
  assign o.to_to    = o.to_valid ? to_to : '0;
  assign o.to_data  = o.to_valid ? to_data : '0;
  assign o.padding  = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
