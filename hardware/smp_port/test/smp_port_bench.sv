// `smp_port` with the ports that the model has, packed.
module smp_port_bench #(
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
    input  logic                               clk,
    input  logic                               rst,
    input  logic [ smp_port_ports::InBits-1:0] in,
    output logic [smp_port_ports::OutBits-1:0] out
);

  smp_port_ports::in_t  i;
  smp_port_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic [1:0] out_last, out_bad;
  logic [1:0][  1:0] out_empty;
  logic [1:0][127:0] out_data;

  smp_port #(
      .Replay          (Replay),
      .ReplayAfter     (ReplayAfter),
      .AcknowledgeAfter(AcknowledgeAfter),
      .Headers         (Headers),
      .Data            (Data),
      .UpdateAgainAfter(UpdateAgainAfter),
      .InitAgainAfter  (InitAgainAfter),
      .CutThrough      (CutThrough),
      .MarkEvery       (MarkEvery),
      .MaxSkew         (MaxSkew),
      .Every           (Every),
      .Sets            (Sets),
      .LostAfter       (LostAfter)
  ) u_dut (
      .clk,
      .rst,
      .in_valid    (i.in_valid),
      .in_ready    (o.in_ready),
      .in_last     (i.in_last),
      .in_data     (i.in_data),
      .malformed   (o.malformed),
      .out_valid   (o.out_valid),
      .out_ready   (i.out_ready),
      .out_last    (out_last),
      .out_bad     (out_bad),
      .out_empty   (out_empty),
      .out_data    (out_data),
      .up          (o.up),
      .left_headers(o.left_headers),
      .left_data   (o.left_data),
      .lanes_up    (o.lanes_up),
      .trained     (o.trained),
      .recovers    (o.recovers),
      .damaged     (o.damaged),
      .refused     (o.refused),
      .tx_k        (o.tx_k),
      .tx_data     (o.tx_data),
      .rx_k        (i.rx_k),
      .rx_data     (i.rx_data)
  );

  for (genvar at = 0; at < 2; at++) begin : g_channel
    assign o.out_last[at] = o.out_valid[at] && out_last[at];
    assign o.out_bad[at] = o.out_valid[at] && out_bad[at];
    assign o.out_empty[at*2+:2] = o.out_valid[at] ? out_empty[at] : '0;
    assign o.out_data[at*128+:128] = o.out_valid[at] ? out_data[at] : '0;
  end
  assign o.padding = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
