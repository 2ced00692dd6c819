// `event_ring` with the ports that the model has, packed.
module event_ring_bench #(
    parameter int unsigned Rings = 64,
    parameter int unsigned CountWidth = 13
) (
    input  logic                                 clk,
    input  logic                                 rst,
    input  logic [ event_ring_ports::InBits-1:0] in,
    output logic [event_ring_ports::OutBits-1:0] out
);

  event_ring_ports::in_t  i;
  event_ring_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned RingWidth = (Rings > 1) ? $clog2(Rings) : 1;
  localparam int unsigned AddressWidth = $bits(o.out_address);
  localparam int unsigned EventWidth = $bits(o.out_event);
  logic [CountWidth-1:0] ask_room;
  logic [RingWidth-1:0] out_ring;
  logic [AddressWidth-1:0] out_address;
  logic [EventWidth-1:0] out_event;

  event_ring #(
      .Rings(Rings),
      .CountWidth(CountWidth),
      .AddressWidth(AddressWidth),
      .EventWidth(EventWidth)
  ) u_dut (
      .clk,
      .rst,
      .host_valid (i.host_valid),
      .host_opens (i.host_opens),
      .host_ring  (i.host_ring[RingWidth-1:0]),
      .host_base  (i.host_base),
      .host_count (i.host_count[CountWidth-1:0]),
      .refused    (o.refused),
      .in_valid   (i.in_valid),
      .in_ready   (o.in_ready),
      .in_ring    (i.in_ring[RingWidth-1:0]),
      .in_event   (i.in_event[EventWidth-2:0]),
      .lacks_ring (o.lacks_ring),
      .lacks_place(o.lacks_place),
      .ask_ring   (i.ask_ring[RingWidth-1:0]),
      .ask_room   (ask_room),
      .out_valid  (o.out_valid),
      .out_ready  (i.out_ready),
      .out_ring   (out_ring),
      .out_address(out_address),
      .out_event  (out_event)
  );

  assign o.ask_room    = 13'(ask_room);
  assign o.out_ring    = o.out_valid ? 6'(out_ring) : '0;
  assign o.out_address = o.out_valid ? out_address : '0;
  assign o.out_event   = o.out_valid ? out_event : '0;

  // The phase of an event that enters, and bits that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.in_event, i.host_ring, i.in_ring, i.ask_ring, i.host_count};

endmodule
