// `desc_gate` with the ports that the model has, packed.
module desc_gate_bench #(
    parameter int unsigned Functions = 8,
    parameter int unsigned Depth     = 16,
    parameter int unsigned Gets      = 2
) (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [ desc_gate_ports::InBits-1:0] in,
    output logic [desc_gate_ports::OutBits-1:0] out
);

  desc_gate_ports::in_t  i;
  desc_gate_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1;
  localparam int unsigned RoomWidth = $clog2(Depth + 1);
  logic [Functions-1:0] may_ring;
  logic [Functions-1:0][RoomWidth-1:0] room;
  for (genvar each = 0; each < Functions; each++) begin : g_room
    assign room[each] = i.room[8*each+:RoomWidth];
  end

  desc_gate #(
      .Functions(Functions),
      .Depth    (Depth),
      .Gets     (Gets)
  ) u_dut (
      .clk,
      .rst,
      .waits          (i.waits[Functions-1:0]),
      .may_ring       (may_ring),
      .take           (i.take),
      .take_function  (i.take_function[FunctionWidth-1:0]),
      .room           (room),
      .move_valid     (i.move_valid),
      .move_get       (i.move_get),
      .move_function  (i.move_function[FunctionWidth-1:0]),
      .report_valid   (i.report_valid),
      .report_function(i.report_function[FunctionWidth-1:0]),
      .credit         (i.credit),
      .word_valid     (i.word_valid),
      .word_ready     (o.word_ready),
      .word_last      (i.word_last),
      .word_void      (i.word_void),
      .word_primitive (i.word_primitive),
      .to_valid       (o.to_valid),
      .to_ready       (i.to_ready)
  );

  assign o.may_ring = 8'(may_ring);
  assign o.padding  = '0;

  // Bits that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.waits, i.take_function, i.room, i.move_function,
                    i.report_function};

endmodule
