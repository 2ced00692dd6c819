// `source_arb` with the ports that the model has, packed.
module source_arb_bench #(
    parameter int unsigned Functions = 8
) (
    input  logic                                 clk,
    input  logic                                 rst,
    input  logic [ source_arb_ports::InBits-1:0] in,
    output logic [source_arb_ports::OutBits-1:0] out
);

  source_arb_ports::in_t  i;
  source_arb_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned ModelWidth = $bits(o.source_function);
  localparam int unsigned FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1;
  localparam int unsigned AddressWidth = $bits(o.source_address);
  logic [1:0][FunctionWidth-1:0] ask_function;
  logic [FunctionWidth-1:0] source_function;
  logic out_outside;

  for (genvar each = 0; each < 2; each++) begin : g_function
    assign ask_function[each] = i.ask_function[ModelWidth*each+:FunctionWidth];
  end

  source_arb #(
      .FunctionWidth(FunctionWidth),
      .AddressWidth (AddressWidth)
  ) u_dut (
      .clk,
      .rst,
      .word_valid     (i.word_valid),
      .word_ready     (o.word_ready),
      .to_valid       (o.to_valid),
      .to_ready       (i.to_ready),
      .ask_valid      (i.ask_valid),
      .ask_function   (ask_function),
      .ask_address    (i.ask_address),
      .ask_length     (i.ask_length),
      .bell_valid     (i.bell_valid),
      .bell_ready     (o.bell_ready),
      .bell_function  (i.bell_function[FunctionWidth-1:0]),
      .bell_word      (i.bell_word),
      .source_valid   (o.source_valid),
      .source_function(source_function),
      .source_address (o.source_address),
      .source_length  (o.source_length),
      .source_fits    (i.source_fits),
      .out_valid      (o.out_valid),
      .out_ready      (i.out_ready),
      .out_outside    (out_outside)
  );

  assign o.source_function = ModelWidth'(source_function);
  assign o.out_outside     = o.out_valid && out_outside;
  assign o.padding         = '0;

  // Bits that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.ask_function, i.bell_function};

endmodule
