// `doorbell_arb` with the ports that the model has, packed.
module doorbell_arb_bench #(
    parameter int unsigned Functions = 8
) (
    input  logic                                   clk,
    input  logic                                   rst,
    input  logic [ doorbell_arb_ports::InBits-1:0] in,
    output logic [doorbell_arb_ports::OutBits-1:0] out
);

  doorbell_arb_ports::in_t  i;
  doorbell_arb_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1;
  logic [FunctionWidth-1:0] take_function, out_function;

  doorbell_arb #(
      .Functions(Functions)
  ) u_dut (
      .clk,
      .rst,
      .waits        (i.waits[Functions-1:0]),
      .take         (o.take),
      .take_function(take_function),
      .out_valid    (o.out_valid),
      .out_ready    (i.out_ready),
      .out_function (out_function)
  );

  assign o.take_function = o.take ? 3'(take_function) : '0;
  assign o.out_function  = o.out_valid ? 3'(out_function) : '0;
  assign o.padding       = '0;

  logic unused;
  assign unused = ^{i.padding, i.waits};

endmodule
