// The receiver's credits of one virtual channel: what its buffer holds, and the sum of all that was
// granted, which the sender is told at first, after a packet has left, and again (S-15).
module credit_ledger #(
    parameter int unsigned HeaderWidth = 8,
    parameter int unsigned DataWidth = 12,
    // Packets and data credits for which the buffer has room.
    parameter int unsigned Headers = 32,
    parameter int unsigned Data = 92,
    // Cycles after which an update is repeated, because it may be lost.
    parameter int unsigned AgainAfter = 7500
) (
    input logic clk,
    input logic rst,

    // A packet comes into the buffer, if it has room.
    input  logic                 in_valid,
    output logic                 in_ready,
    input  logic [DataWidth-1:0] in_cost,

    // A packet leaves the buffer.
    input logic                 leave_valid,
    input logic [DataWidth-1:0] leave_cost,

`ifdef FORMAL
    // Proofs look at what is free.
    output logic [HeaderWidth-1:0] probe_headers,
    output logic [  DataWidth-1:0] probe_data,
`endif
    // The sum of all grants.
    output logic                   update_valid,
    input  logic                   update_ready,
    output logic [HeaderWidth-1:0] update_headers,
    output logic [  DataWidth-1:0] update_data
);

  // Wrapping counts cannot tell more apart.
  if (Headers < 1 || Headers >= 2 ** (HeaderWidth - 1)) begin : g_headers
    $error("credit_ledger: Headers is at least 1, and below half of what its count can tell");
  end
  if (Data < 1 || Data >= 2 ** (DataWidth - 1)) begin : g_data
    $error("credit_ledger: Data is at least 1, and below half of what its count can tell");
  end
  if (AgainAfter < 1) begin : g_again
    $error("credit_ledger: AgainAfter is at least 1");
  end

  logic [HeaderWidth-1:0] free_headers;
  logic [DataWidth-1:0] free_data;
  logic enters;
  assign in_ready = free_headers != '0 && free_data >= in_cost;
  assign enters   = in_valid && in_ready;

  localparam int unsigned WaitWidth = $clog2(AgainAfter + 1);
  logic [WaitWidth-1:0] waited;
  logic again;
  assign again = !update_valid && waited == WaitWidth'(AgainAfter);

  always_ff @(posedge clk) begin
    if (rst) begin
      free_headers <= HeaderWidth'(Headers);
      free_data <= DataWidth'(Data);
      update_headers <= HeaderWidth'(Headers);
      update_data <= DataWidth'(Data);
      update_valid <= 1'b1;
    end else begin
      free_headers <= free_headers - HeaderWidth'(enters) + HeaderWidth'(leave_valid);
      free_data <= free_data - (enters ? in_cost : '0) + (leave_valid ? leave_cost : '0);
      if (leave_valid) begin
        update_headers <= update_headers + HeaderWidth'(1);
        update_data <= update_data + leave_cost;
      end
      update_valid <= leave_valid || again || (update_valid && !update_ready);
    end
    waited <= update_valid ? WaitWidth'(1) : waited + WaitWidth'(1);
  end

`ifdef FORMAL
  assign probe_headers = free_headers;
  assign probe_data = free_data;
`endif
`ifdef PROVE_CREDIT_LEDGER
  `include "credit_ledger_formal.svh"
`endif

endmodule
