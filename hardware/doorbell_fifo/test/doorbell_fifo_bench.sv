// `doorbell_fifo` with the ports that the model has, packed.
module doorbell_fifo_bench #(
    parameter int unsigned Functions = 8,
    parameter int unsigned Depth = 32,
    parameter int unsigned DroppedWidth = 32
) (
    input  logic                                    clk,
    input  logic                                    rst,
    input  logic [ doorbell_fifo_ports::InBits-1:0] in,
    output logic [doorbell_fifo_ports::OutBits-1:0] out
);

  doorbell_fifo_ports::in_t  i;
  doorbell_fifo_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1;
  localparam int unsigned CountWidth = ((Depth > 1) ? $clog2(Depth) : 1) + 1;

  logic [Functions-1:0] waits;
  logic [Functions-1:0][CountWidth-1:0] count;
  logic dropped_valid;
  logic [FunctionWidth-1:0] dropped_function;
  logic [DroppedWidth-1:0] dropped;
  logic [$bits(o.word)-1:0] word;

  doorbell_fifo #(
      .Functions(Functions),
      .Depth(Depth),
      .Width($bits(i.in_word)),
      .DroppedWidth(DroppedWidth)
  ) u_dut (
      .clk,
      .rst,
      .in_valid     (i.in_valid),
      .in_function  (i.in_function[FunctionWidth-1:0]),
      .in_word      (i.in_word),
      .dropped_valid,
      .dropped_function,
      .dropped,
      .waits,
      .count,
      .take         (i.take),
      .take_function(i.take_function[FunctionWidth-1:0]),
      .word
  );

  // The output says nothing before the first doorbell is taken.
  logic [7:0] all_waits;
  logic shown;
  assign all_waits = 8'(waits);
  always_ff @(posedge clk) begin
    if (rst) shown <= 1'b0;
    else if (i.take && all_waits[i.take_function]) shown <= 1'b1;
  end

  // Element `at` of an array of the model has its share of the bits.
  always_comb begin
    o = '0;
    o.waits = all_waits;
    for (int unsigned at = 0; at < Functions; at++) o.count[8*at+:8] = 8'(count[at]);
    o.word = shown ? word : '0;
    o.dropped_valid = dropped_valid;
    o.dropped_function = dropped_valid ? 3'(dropped_function) : '0;
    o.dropped = 32'(dropped);
  end

  logic unused;
  assign unused = ^{i.padding, i.in_function, i.take_function};

endmodule
