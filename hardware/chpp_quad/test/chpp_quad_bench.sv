// `chpp_quad` with the ports that the model has, packed.
module chpp_quad_bench #(
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
    parameter int unsigned Channels = 2
) (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [ chpp_quad_ports::InBits-1:0] in,
    output logic [chpp_quad_ports::OutBits-1:0] out
);

  chpp_quad_ports::in_t  i;
  chpp_quad_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic [3:0] tx_last;
  logic [3:0][1:0] tx_empty;
  logic [3:0][127:0] tx_data;

  chpp_quad #(
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
      .Batch      (Batch),
      .Channels   (Channels)
  ) u_dut (
      .clk,
      .rst,
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
      .crosses    (o.crosses)
  );

  // DWs that a beat lacks can have any value.
  logic [3:0][3:0][31:0] shown;
  always_comb begin
    shown = '0;
    for (int unsigned at = 0; at < 4; at++) begin
      for (int unsigned lane = 0; lane < 4; lane++) begin
        if (o.tx_valid[at] && lane + 32'(tx_empty[at]) < 4) begin
          shown[at][lane] = tx_data[at][lane*32+:32];
        end
      end
      o.tx_empty[2*at+:2] = o.tx_valid[at] ? tx_empty[at] : '0;
    end
  end
  assign o.tx_data = shown;
  assign o.tx_last = o.tx_valid & tx_last;
  assign o.padding = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
