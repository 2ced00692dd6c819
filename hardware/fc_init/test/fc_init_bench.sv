// `fc_init` with the ports that the model has, packed.
module fc_init_bench #(
    parameter int unsigned AgainAfter = 34
) (
    input  logic                              clk,
    input  logic                              rst,
    input  logic [ fc_init_ports::InBits-1:0] in,
    output logic [fc_init_ports::OutBits-1:0] out
);

  fc_init_ports::in_t  i;
  fc_init_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic [$bits(o.send_stage)-1:0] send_stage;

  fc_init #(
      .AgainAfter(AgainAfter)
  ) u_dut (
      .clk,
      .rst         (rst || i.restart),
      .update_valid(i.update_valid),
      .update_ready(o.update_ready),
      .send_valid  (o.send_valid),
      .send_ready  (i.send_ready),
      .send_stage  (send_stage),
      .heard_valid (i.heard_valid),
      .heard_stage (i.heard_stage),
      .grant_valid (o.grant_valid),
      .deliver     (i.deliver),
      .up          (o.up)
  );

  assign o.send_stage = o.send_valid ? send_stage : '0;
  assign o.padding    = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
