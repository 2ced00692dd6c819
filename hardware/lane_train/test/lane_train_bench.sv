// `lane_train` with the ports that the model has, packed.
module lane_train_bench #(
    parameter int unsigned Every     = 16,
    parameter int unsigned Sets      = 8,
    parameter int unsigned LostAfter = 2048
) (
    input  logic                                 clk,
    input  logic                                 rst,
    input  logic [ lane_train_ports::InBits-1:0] in,
    output logic [lane_train_ports::OutBits-1:0] out
);

  lane_train_ports::in_t  i;
  lane_train_ports::out_t o;
  assign i   = in;
  assign out = o;

  lane_train #(
      .Every    (Every),
      .Sets     (Sets),
      .LostAfter(LostAfter)
  ) u_dut (
      .clk,
      .rst,
      .retrain  (i.retrain),
      .up       (o.up),
      .trained  (o.trained),
      .recovers (o.recovers),
      .line_k   (i.line_k),
      .line_data(i.line_data),
      .tx_k     (o.tx_k),
      .tx_data  (o.tx_data),
      .rx_k     (i.rx_k),
      .rx_data  (i.rx_data)
  );

  assign o.padding = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
