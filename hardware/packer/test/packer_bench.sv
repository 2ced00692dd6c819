// `packer` with the ports that the model has, packed.
module packer_bench #(
    parameter int unsigned Beats   = 256,
    parameter int unsigned Packets = 16,
    parameter int unsigned Payload = 128,
    parameter int unsigned Longest = 2048
) (
    input  logic                             clk,
    input  logic                             rst,
    input  logic [ packer_ports::InBits-1:0] in,
    output logic [packer_ports::OutBits-1:0] out
);

  packer_ports::in_t  i;
  packer_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned LaneWidth = $bits(o.out_to);
  localparam int unsigned Width = $bits(o.out_data);
  localparam int unsigned RouteWidth = $bits(o.out_route);
  localparam int unsigned OperationWidth = $bits(o.sent_operation);
  logic [$clog2(Beats > 1 ? Beats : 2):0] room;
  logic [$clog2(Packets > 1 ? Packets : 2):0] packets;
  logic out_last, sent_failed;
  logic [LaneWidth-1:0] out_to;
  logic [RouteWidth-1:0] out_route;
  logic [Width-1:0] out_data;
  logic [OperationWidth-1:0] sent_operation;

  packer #(
      .ByteWidth(Width >> LaneWidth),
      .LaneWidth(LaneWidth),
      .Beats(Beats),
      .Packets(Packets),
      .Payload(Payload),
      .Longest(Longest),
      .AddressWidth($bits(i.move_address)),
      .BytesWidth($bits(i.move_bytes)),
      .RouteWidth(RouteWidth),
      .OperationWidth(OperationWidth)
  ) u_dut (
      .clk,
      .rst,
      .move_valid        (i.move_valid),
      .move_ready        (o.move_ready),
      .move_last         (i.move_last),
      .move_primitive    (i.move_primitive),
      .move_traffic_class(i.move_traffic_class),
      .move_magic        (i.move_magic),
      .move_source       (i.move_source),
      .move_destination  (i.move_destination),
      .move_wants_event  (i.move_wants_event),
      .move_tail_bytes   (i.move_tail_bytes),
      .move_tail         (i.move_tail),
      .move_route        (i.move_route),
      .move_operation    (i.move_operation),
      .move_address      (i.move_address),
      .move_bytes        (i.move_bytes),
      .in_valid          (i.in_valid),
      .in_ready          (o.in_ready),
      .in_ends           (i.in_ends),
      .in_failed         (i.in_failed),
      .in_from           (i.in_from),
      .in_to             (i.in_to),
      .in_data           (i.in_data),
      .room              (room),
      .packets           (packets),
      .out_valid         (o.out_valid),
      .out_ready         (i.out_ready),
      .out_last          (out_last),
      .out_to            (out_to),
      .out_route         (out_route),
      .out_data          (out_data),
      .sent_valid        (o.sent_valid),
      .sent_ready        (i.sent_ready),
      .sent_failed       (sent_failed),
      .sent_operation    (sent_operation)
  );

  assign o.room           = 16'(room);
  assign o.packets        = 8'(packets);
  assign o.out_last       = o.out_valid && out_last;
  assign o.out_to         = o.out_valid ? out_to : '0;
  assign o.out_route      = o.out_valid ? out_route : '0;
  assign o.out_data       = o.out_valid ? out_data : '0;
  assign o.sent_failed    = o.sent_valid && sent_failed;
  assign o.sent_operation = o.sent_valid ? sent_operation : '0;
  assign o.padding        = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
