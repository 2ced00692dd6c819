// `dllp_rx` with the ports that the model has, packed.
module dllp_rx_bench (
    input  logic                              clk,
    input  logic                              rst,
    input  logic [ dllp_rx_ports::InBits-1:0] in,
    output logic [dllp_rx_ports::OutBits-1:0] out
);

  dllp_rx_ports::in_t  i;
  dllp_rx_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic ack_nak;
  logic [$bits(o.ack_sequence)-1:0] ack_sequence;
  logic [$bits(o.update_stage)-1:0] update_stage;
  logic [$bits(o.update_headers)-1:0] update_headers;
  logic [$bits(o.update_data)-1:0] update_data;

  dllp_rx u_dut (
      .clk,
      .rst,
      .dllp_valid    (i.dllp_valid),
      .dllp_data     (i.dllp_data),
      .ack_valid     (o.ack_valid),
      .ack_ready     (i.ack_ready),
      .ack_nak       (ack_nak),
      .ack_sequence  (ack_sequence),
      .update_valid  (o.update_valid),
      .update_stage  (update_stage),
      .update_headers(update_headers),
      .update_data   (update_data),
      .damaged       (o.damaged),
      .unknown       (o.unknown)
  );

  assign o.ack_nak        = o.ack_valid && ack_nak;
  assign o.ack_sequence   = o.ack_valid ? ack_sequence : '0;
  assign o.update_stage   = o.update_valid != '0 ? update_stage : '0;
  assign o.update_headers = o.update_valid != '0 ? update_headers : '0;
  assign o.update_data    = o.update_valid != '0 ? update_data : '0;
  assign o.padding        = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
