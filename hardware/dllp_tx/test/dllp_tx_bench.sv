// `dllp_tx` with the ports that the model has, packed.
module dllp_tx_bench (
    input  logic                              clk,
    input  logic                              rst,
    input  logic [ dllp_tx_ports::InBits-1:0] in,
    output logic [dllp_tx_ports::OutBits-1:0] out
);

  dllp_tx_ports::in_t  i;
  dllp_tx_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic [$bits(o.dllp_data)-1:0] dllp_data;

  dllp_tx u_dut (
      .ack_valid     (i.ack_valid),
      .ack_ready     (o.ack_ready),
      .ack_nak       (i.ack_nak),
      .ack_sequence  (i.ack_sequence),
      .update_valid  (i.update_valid),
      .update_ready  (o.update_ready),
      .update_stage  (i.update_stage),
      .update_headers(i.update_headers),
      .update_data   (i.update_data),
      .dllp_valid    (o.dllp_valid),
      .dllp_ready    (i.dllp_ready),
      .dllp_data     (dllp_data)
  );

  assign o.dllp_data = o.dllp_valid ? dllp_data : '0;
  assign o.padding   = '0;

  logic unused;
  assign unused = ^{clk, rst, i.padding};

endmodule
