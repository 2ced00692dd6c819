// Spreads symbols over the lanes of a link: symbol i goes over lane i modulo 8 (S-19).
//
// In one of `MarkEvery` cycles all lanes carry a mark, by which the far end sees how much later
// each one is. No register stands behind the symbols.
module lane_stripe #(
    parameter int unsigned MarkEvery = 640,
    localparam int unsigned Lanes = 8
) (
    input logic clk,
    input logic rst,

    // Symbols; without `line_valid` idle ones go, which are zeros.
    input  logic         line_valid,
    output logic         line_ready,
    input  logic [ 15:0] line_k,
    input  logic [127:0] line_data,

    // By lane: two symbols, and which of them are special.
    output logic [Lanes-1:0][ 1:0] lane_k,
    output logic [Lanes-1:0][15:0] lane_data
);

  if (MarkEvery < 2) begin : g_marks
    $error("lane_stripe: MarkEvery is at least 2");
  end

  localparam int unsigned LeftWidth = $clog2(MarkEvery);
  // Cycles until the next mark.
  logic [LeftWidth-1:0] left;
  assign line_ready = left != '0;
  always_ff @(posedge clk) begin
    if (rst) left <= '0;
    else left <= line_ready ? left - LeftWidth'(1) : LeftWidth'(MarkEvery - 1);
  end

  for (genvar at = 0; at < Lanes; at++) begin : g_lane
    always_comb begin
      lane_k[at] = '0;
      lane_data[at] = '0;
      if (!line_ready) begin
        lane_k[at] = 2'b11;
        lane_data[at] = {link_pkg::Skp, link_pkg::Com};
      end else if (line_valid) begin
        lane_k[at] = {line_k[at+Lanes], line_k[at]};
        lane_data[at] = {line_data[8*(at+Lanes)+:8], line_data[8*at+:8]};
      end
    end
  end

`ifdef PROVE_LANE_STRIPE
  `include "lane_stripe_formal.svh"
`endif

endmodule
