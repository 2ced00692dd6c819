// `get_packer` with the ports that the model has, packed.
module get_packer_bench #(
    parameter int unsigned Gets = 2,
    parameter int unsigned GetBeats = 256
) (
    input  logic                                 clk,
    input  logic                                 rst,
    input  logic [ get_packer_ports::InBits-1:0] in,
    output logic [get_packer_ports::OutBits-1:0] out
);

  get_packer_ports::in_t  i;
  get_packer_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned Width = $bits(o.out_data);
  localparam int unsigned RouteWidth = $bits(o.out_route);
  localparam int unsigned OperationWidth = $bits(o.sent_operation);
  logic out_last;
  logic [RouteWidth-1:0] out_route;
  logic [Width-1:0] out_data;
  logic [OperationWidth-1:0] sent_operation;

  get_packer #(
      .Gets(Gets),
      .GetBeats(GetBeats),
      .RouteWidth(RouteWidth),
      .OperationWidth(OperationWidth)
  ) u_dut (
      .clk,
      .rst,
      .move_valid        (i.move_valid),
      .move_ready        (o.move_ready),
      .move_traffic_class(i.move_traffic_class),
      .move_magic        (i.move_magic),
      .move_source       (i.move_source),
      .move_destination  (i.move_destination),
      .move_bytes        (i.move_bytes),
      .move_route        (i.move_route),
      .move_operation    (i.move_operation),
      .in_valid          (i.in_valid),
      .in_ready          (o.in_ready),
      .in_ends           (i.in_ends),
      .in_data           (i.in_data),
      .credit            (o.credit),
      .out_valid         (o.out_valid),
      .out_ready         (i.out_ready),
      .out_last          (out_last),
      .out_route         (out_route),
      .out_data          (out_data),
      .sent_valid        (o.sent_valid),
      .sent_ready        (i.sent_ready),
      .sent_operation    (sent_operation)
  );

  assign o.out_last       = o.out_valid && out_last;
  assign o.out_route      = o.out_valid ? out_route : '0;
  assign o.out_data       = o.out_valid ? out_data : '0;
  assign o.sent_operation = o.sent_valid ? sent_operation : '0;
  assign o.padding        = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
