// `op_arb` with the ports that the model has, packed.
module op_arb_bench #(
    parameter int unsigned PlaceWidth = 7
) (
    input  logic                             clk,
    input  logic                             rst,
    input  logic [ op_arb_ports::InBits-1:0] in,
    output logic [op_arb_ports::OutBits-1:0] out
);

  op_arb_ports::in_t  i;
  op_arb_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic [PlaceWidth:0] pack_operation;

  op_arb #(
      .FunctionWidth($bits(o.ask_function)),
      .AddressWidth ($bits(o.ask_address)),
      .BytesWidth   ($bits(i.move_total) / 2),
      .SizeWidth    ($bits(o.ask_bytes)),
      .Width        ($bits(o.put_data)),
      .LaneWidth    ($bits(o.put_to)),
      .PlaceWidth   (PlaceWidth),
      .SaysWidth    ($bits(o.pack_says))
  ) u_dut (
      .clk,
      .rst,
      .move_valid    (i.move_valid),
      .move_ready    (o.move_ready),
      .move_last     (i.move_last),
      .move_get      (i.move_get),
      .move_total    (i.move_total),
      .move_says     (i.move_says),
      .read_valid    (i.read_valid),
      .read_ready    (o.read_ready),
      .read_ends     (i.read_ends),
      .read_function (i.read_function),
      .read_address  (i.read_address),
      .read_bytes    (i.read_bytes),
      .data_valid    (i.data_valid),
      .data_ready    (o.data_ready),
      .data_ends     (i.data_ends),
      .data_get      (i.data_get),
      .data_to       (i.data_to),
      .data          (i.data),
      .place_valid   (o.place_valid),
      .place_ready   (i.place_ready),
      .place         (i.place[PlaceWidth-1:0]),
      .pack_valid    (o.pack_valid),
      .pack_ready    (i.pack_ready),
      .pack_last     (o.pack_last),
      .pack_operation(pack_operation),
      .pack_says     (o.pack_says),
      .ask_valid     (o.ask_valid),
      .ask_ready     (i.ask_ready),
      .ask_ends      (o.ask_ends),
      .ask_function  (o.ask_function),
      .ask_address   (o.ask_address),
      .ask_bytes     (o.ask_bytes),
      .put_valid     (o.put_valid),
      .put_ready     (i.put_ready),
      .put_ends      (o.put_ends),
      .put_to        (o.put_to),
      .put_data      (o.put_data),
      .get_valid     (o.get_valid),
      .get_ready     (i.get_ready),
      .get_data_valid(o.get_data_valid),
      .get_data_ready(i.get_data_ready)
  );

  // The mark is the model's highest bit, however few places there are.
  localparam int unsigned ModelWidth = $bits(o.pack_operation);
  logic [ModelWidth-1:0] operation;
  assign operation = {
    pack_operation[PlaceWidth], (ModelWidth - 1)'(pack_operation[PlaceWidth-1:0])
  };
  assign o.pack_operation = o.pack_valid ? operation : '0;
  assign o.padding = '0;

  // Bits that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.place};

endmodule
