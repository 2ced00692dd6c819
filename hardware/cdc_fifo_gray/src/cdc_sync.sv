// Brings a value from another clock, by two registers.
//
// `in` may change at the edge that stores it. Each bit then settles to the old or the new value. So
// at most one bit of `in` may change in a cycle of its clock. Tools for boards are to keep both
// registers close together, and to exempt `in` from timing.
module cdc_sync #(
    parameter int unsigned Width = 1
) (
    input  logic             clk,
    input  logic             rst,
    input  logic [Width-1:0] in,
`ifdef FORMAL
    output logic [Width-1:0] probe_settled,
`endif
    output logic [Width-1:0] out
);

  logic [Width-1:0] caught, settled;

  always_ff @(posedge clk) begin
    if (rst) begin
      caught <= '0;
      out    <= '0;
    end else begin
      caught <= in;
      out    <= settled;
    end
  end

`ifdef FORMAL
  // Where `in` changes at the edge that catches it, each bit is the old or the new one.
  (* anyseq *) logic [Width-1:0] is_new;
  logic [Width-1:0] kept;
  logic clk_before;
  logic rises;
  assign rises   = clk && !clk_before && !rst;
  assign settled = rises ? (is_new & in) | (~is_new & caught) : kept;
  always @($global_clock) begin
    clk_before <= clk;
    kept       <= settled;
    if (rst) kept <= '0;
  end
  assign probe_settled = settled;
`else
  assign settled = caught;
`endif

endmodule
