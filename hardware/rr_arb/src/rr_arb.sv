// A round-robin arbiter: the first request at or after a pointer, cyclically.
//
// A grant is combinational. The pointer moves behind the granted request in cycles with `advance`.
// A request that stays is granted after at most `Requests` - 1 other grants.
module rr_arb #(
    parameter  int unsigned Requests   = 4,
    localparam int unsigned IndexWidth = (Requests > 1) ? $clog2(Requests) : 1
) (
    input  logic                  clk,
    input  logic                  rst,
    input  logic [  Requests-1:0] request,
    // The pointer moves behind this request, whether it was granted here or not.
    input  logic                  advance,
    input  logic [IndexWidth-1:0] behind,
`ifdef FORMAL
    // Proofs look at the pointer.
    output logic [  Requests-1:0] probe_from_pointer,
`endif
    // Some request is there, and which is granted.
    output logic                  valid,
    output logic [IndexWidth-1:0] index
);

  if (Requests < 1) begin : g_parameters
    $error("rr_arb: at least one request");
  end

  // One bit for each request at or after the pointer.
  logic [Requests-1:0] from_pointer;
  logic [Requests-1:0] preferred, candidates, grant;

  assign preferred = request & from_pointer;
  assign candidates = (preferred != '0) ? preferred : request;
  assign grant = candidates & (~candidates + Requests'(1));
  assign valid = request != '0;

  always_comb begin
    index = '0;
    for (int unsigned at = 0; at < Requests; at++) begin
      if (grant[at]) index |= IndexWidth'(at);
    end
  end

  always_ff @(posedge clk) begin
    if (rst) from_pointer <= '1;
    else if (advance) begin
      // Behind the last request comes the first.
      if (behind == IndexWidth'(Requests - 1)) from_pointer <= '1;
      else from_pointer <= {Requests{1'b1}} << ((IndexWidth + 1)'(behind) + (IndexWidth + 1)'(1));
    end
  end

`ifdef FORMAL
  assign probe_from_pointer = from_pointer;
`endif
`ifdef PROVE_RR_ARB
  `include "rr_arb_formal.svh"
`endif

endmodule
