// `rx_ack` with the ports that the model has, packed.
module rx_ack_bench #(
    parameter int unsigned AcknowledgeAfter = 69
) (
    input  logic                             clk,
    input  logic                             rst,
    input  logic [ rx_ack_ports::InBits-1:0] in,
    output logic [rx_ack_ports::OutBits-1:0] out
);

  rx_ack_ports::in_t  i;
  rx_ack_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic ack_nak;
  logic [$bits(o.ack_sequence)-1:0] ack_sequence;

  rx_ack #(
      .SequenceWidth($bits(i.frame_sequence)),
      .AcknowledgeAfter(AcknowledgeAfter)
  ) u_dut (
      .clk,
      .rst,
      .frame_valid   (i.frame_valid),
      .frame_damaged (i.frame_damaged),
      .frame_sequence(i.frame_sequence),
      .deliver       (o.deliver),
      .repeated      (o.repeated),
      .discarded     (o.discarded),
      .ack_valid     (o.ack_valid),
      .ack_ready     (i.ack_ready),
      .ack_nak       (ack_nak),
      .ack_sequence  (ack_sequence)
  );

  assign o.ack_nak      = o.ack_valid && ack_nak;
  assign o.ack_sequence = o.ack_valid ? ack_sequence : '0;
  assign o.padding      = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
