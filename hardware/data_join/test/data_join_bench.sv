// `data_join` with the ports that the model has, packed.
module data_join_bench #(
    parameter int unsigned Reads = 32
) (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [ data_join_ports::InBits-1:0] in,
    output logic [data_join_ports::OutBits-1:0] out
);

  data_join_ports::in_t  i;
  data_join_ports::out_t o;
  assign i   = in;
  assign out = o;

  data_join #(
      .Reads    (Reads),
      .Width    ($bits(o.out_data)),
      .LaneWidth($bits(o.out_to))
  ) u_dut (
      .clk,
      .rst,
      .read_valid (i.read_valid),
      .read_ready (o.read_ready),
      .read_ends  (i.read_ends),
      .data_valid (i.data_valid),
      .data_ready (o.data_ready),
      .data_last  (i.data_last),
      .data_failed(i.data_failed),
      .data_from  (i.data_from),
      .data_to    (i.data_to),
      .data       (i.data),
      .put_valid  (i.put_valid),
      .put_ready  (o.put_ready),
      .put_ends   (i.put_ends),
      .put_to     (i.put_to),
      .put_data   (i.put_data),
      .out_valid  (o.out_valid),
      .out_ready  (i.out_ready),
      .out_ends   (o.out_ends),
      .out_failed (o.out_failed),
      .out_from   (o.out_from),
      .out_to     (o.out_to),
      .out_data   (o.out_data)
  );

  assign o.padding = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
