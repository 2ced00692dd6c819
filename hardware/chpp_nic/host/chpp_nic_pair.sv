// Two interfaces back to back: what a host drives in `host.py`.
module chpp_nic_pair (
    input logic clk,
    input logic rst,

    // The host of processor 0.
    input  logic [ 12:0] a_device,
    input  logic [ 47:0] a_base,
    input  logic         a_read_credit,
    input  logic         a_rx_valid,
    output logic         a_rx_ready,
    input  logic         a_rx_last,
    input  logic [  1:0] a_rx_empty,
    input  logic [127:0] a_rx_data,
    output logic         a_tx_valid,
    input  logic         a_tx_ready,
    output logic         a_tx_last,
    output logic [  1:0] a_tx_empty,
    output logic [127:0] a_tx_data,

    // The host of processor 1.
    input  logic [ 12:0] b_device,
    input  logic [ 47:0] b_base,
    input  logic         b_read_credit,
    input  logic         b_rx_valid,
    output logic         b_rx_ready,
    input  logic         b_rx_last,
    input  logic [  1:0] b_rx_empty,
    input  logic [127:0] b_rx_data,
    output logic         b_tx_valid,
    input  logic         b_tx_ready,
    output logic         b_tx_last,
    output logic [  1:0] b_tx_empty,
    output logic [127:0] b_tx_data
);

  logic a_to_valid, a_to_class, a_to_last;
  logic [  3:0] a_to_to;
  logic [127:0] a_to_data;
  logic [1:0] a_from_ready, a_from_credit;
  logic b_to_valid, b_to_class, b_to_last;
  logic [  3:0] b_to_to;
  logic [127:0] b_to_data;
  logic [1:0] b_from_ready, b_from_credit;

  chpp_nic u_a (
      .clk,
      .rst,
      .cpu(4'd0),
      .cpus(5'd2),
      .device(a_device),
      .base(a_base),
      .read_credit(a_read_credit),
      .rx_valid(a_rx_valid),
      .rx_ready(a_rx_ready),
      .rx_last(a_rx_last),
      .rx_empty(a_rx_empty),
      .rx_data(a_rx_data),
      .tx_valid(a_tx_valid),
      .tx_ready(a_tx_ready),
      .tx_last(a_tx_last),
      .tx_empty(a_tx_empty),
      .tx_data(a_tx_data),
      .from_valid(b_to_valid),
      .from_ready(a_from_ready),
      .from_class(b_to_class),
      .from_last(b_to_last),
      .from_to(b_to_to),
      .from_data(b_to_data),
      .from_credit(a_from_credit),
      .to_valid(a_to_valid),
      .to_ready(b_from_ready[a_to_class]),
      .to_class(a_to_class),
      .to_last(a_to_last),
      .to_to(a_to_to),
      .to_data(a_to_data),
      .to_credit(b_from_credit)
  );

  chpp_nic u_b (
      .clk,
      .rst,
      .cpu(4'd1),
      .cpus(5'd2),
      .device(b_device),
      .base(b_base),
      .read_credit(b_read_credit),
      .rx_valid(b_rx_valid),
      .rx_ready(b_rx_ready),
      .rx_last(b_rx_last),
      .rx_empty(b_rx_empty),
      .rx_data(b_rx_data),
      .tx_valid(b_tx_valid),
      .tx_ready(b_tx_ready),
      .tx_last(b_tx_last),
      .tx_empty(b_tx_empty),
      .tx_data(b_tx_data),
      .from_valid(a_to_valid),
      .from_ready(b_from_ready),
      .from_class(a_to_class),
      .from_last(a_to_last),
      .from_to(a_to_to),
      .from_data(a_to_data),
      .from_credit(b_from_credit),
      .to_valid(b_to_valid),
      .to_ready(a_from_ready[b_to_class]),
      .to_class(b_to_class),
      .to_last(b_to_last),
      .to_to(b_to_to),
      .to_data(b_to_data),
      .to_credit(a_from_credit)
  );

endmodule
