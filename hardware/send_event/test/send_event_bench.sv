// `send_event` with the ports that the model has, packed.
module send_event_bench #(
    parameter int unsigned Functions = 8,
    parameter int unsigned Depth = 16,
    parameter int unsigned DroppedWidth = 32
) (
    input  logic                                 clk,
    input  logic                                 rst,
    input  logic [ send_event_ports::InBits-1:0] in,
    output logic [send_event_ports::OutBits-1:0] out
);

  send_event_ports::in_t  i;
  send_event_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1;
  localparam int unsigned IndexWidth = (Depth > 1) ? $clog2(Depth) : 1;
  localparam int unsigned PlaceWidth = FunctionWidth + IndexWidth;
  localparam int unsigned RoomWidth = IndexWidth + 1;
  localparam int unsigned RingWidth = FunctionWidth + 3;
  localparam int unsigned EventWidth = $bits(o.event_record);
  localparam int unsigned Packers = $bits(i.sent_valid);
  localparam int unsigned WholePlaceWidth = $bits(o.move_place);

  logic [PlaceWidth-1:0] move_place;
  logic [Packers-1:0][PlaceWidth-1:0] sent_place;
  logic [Functions-1:0][RoomWidth-1:0] room;
  logic [RingWidth-1:0] event_ring;
  logic [EventWidth-2:0] event_record;
  logic [FunctionWidth-1:0] dropped_function;
  logic [DroppedWidth-1:0] dropped;

  send_event #(
      .Functions(Functions),
      .Depth(Depth),
      .Packers(Packers),
      .DroppedWidth(DroppedWidth),
      .AddressWidth($bits(i.move_descriptor)),
      .TailWidth($bits(i.move_tail))
  ) u_dut (
      .clk,
      .rst,
      .move_valid        (i.move_valid),
      .move_ready        (o.move_ready),
      .move_place        (move_place),
      .move_function     (i.move_function[FunctionWidth-1:0]),
      .move_pair         (i.move_pair),
      .move_peer         (i.move_peer),
      .move_primitive    (i.move_primitive),
      .move_tail_bytes   (i.move_tail_bytes),
      .move_tail         (i.move_tail),
      .move_total        (i.move_total),
      .move_descriptor   (i.move_descriptor),
      .sent_valid        (i.sent_valid),
      .sent_failed       (i.sent_failed),
      .sent_place        (sent_place),
      .report_valid      (i.report_valid),
      .report_ready      (o.report_ready),
      .report_status     (i.report_status),
      .report_function   (i.report_function[FunctionWidth-1:0]),
      .report_pair       (i.report_pair),
      .report_peer       (i.report_peer),
      .report_primitive  (i.report_primitive),
      .report_address    (i.report_address),
      .room              (room),
      .upload_valid      (i.upload_valid),
      .upload_ready      (o.upload_ready),
      .upload_ring       (i.upload_ring[RingWidth-1:0]),
      .upload_record     (i.upload_record[EventWidth-2:0]),
      .upload_lacks_ring (o.upload_lacks_ring),
      .upload_lacks_place(o.upload_lacks_place),
      .event_valid       (o.event_valid),
      .event_ready       (i.event_ready),
      .event_ring        (event_ring),
      .event_record      (event_record),
      .lacks_ring        (i.lacks_ring),
      .lacks_place       (i.lacks_place),
      .dropped_valid     (o.dropped_valid),
      .dropped_function  (dropped_function),
      .dropped           (dropped)
  );

  always_comb begin
    for (int unsigned packer = 0; packer < Packers; packer++) begin
      sent_place[packer] = i.sent_place[packer*WholePlaceWidth+:PlaceWidth];
    end
    o.room = '0;
    for (int unsigned each = 0; each < Functions; each++) begin
      o.room[each*8+:8] = 8'(room[each]);
    end
  end
  assign o.move_place       = WholePlaceWidth'(move_place);
  assign o.event_ring       = 6'(event_ring);
  assign o.event_record     = o.event_valid ? {1'b0, event_record} : '0;
  assign o.dropped_function = o.dropped_valid ? 3'(dropped_function) : '0;
  assign o.dropped          = 32'(dropped);
  assign o.padding          = '0;

  // The phase, and bits that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.move_function, i.sent_place, i.report_function, i.upload_ring,
                    i.upload_record};

endmodule
