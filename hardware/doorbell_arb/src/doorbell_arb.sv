// The arbiter over the doorbell FIFOs of cHPP (C-41; Fig. 13): functions with doorbells take turns.
//
// A doorbell is taken from its FIFO in a cycle in which none stands at the output, or the one there
// leaves. In the next cycle it is offered to the descriptor engines. Its word comes out of
// `doorbell_fifo` then, and stays there for as long as it is offered. So one doorbell is served in
// every cycle in which the engines take one.
module doorbell_arb #(
    parameter int unsigned Functions = 8,
    localparam int unsigned FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1
) (
    input logic clk,
    input logic rst,

    // By function: doorbells wait. One is taken.
    input  logic [    Functions-1:0] waits,
    output logic                     take,
    output logic [FunctionWidth-1:0] take_function,

    // The doorbell that was taken last is offered; the engines take it if they are ready.
    output logic                     out_valid,
    input  logic                     out_ready,
    output logic [FunctionWidth-1:0] out_function
);

  if (Functions < 1) begin : g_parameters
    $error("doorbell_arb: at least one function");
  end

`ifdef FORMAL
  logic [Functions-1:0] f_from_pointer;
`endif

  logic some_waits;
  rr_arb #(
      .Requests(Functions)
  ) u_rr_arb (
      .clk,
      .rst,
      .request(waits),
      .advance(take),
      .behind(take_function),
`ifdef FORMAL
      .probe_from_pointer(f_from_pointer),
`endif
      .valid(some_waits),
      .index(take_function)
  );

  assign take = some_waits && (!out_valid || out_ready);

  always_ff @(posedge clk) begin
    if (rst) out_valid <= 1'b0;
    else out_valid <= take || (out_valid && !out_ready);
    if (take) out_function <= take_function;
  end

`ifdef PROVE_DOORBELL_ARB
  `include "doorbell_arb_formal.svh"
`endif

endmodule
