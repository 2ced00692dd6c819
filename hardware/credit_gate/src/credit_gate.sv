// The sender's credits of one virtual channel: a packet takes a header credit, and data credits for
// its payload (S-15).
//
// The receiver reports the sum of all its grants, and this block counts all that was used. Both
// counts wrap, so a lost update does no harm: the next one carries the whole sum.
module credit_gate #(
    parameter int unsigned HeaderWidth = 8,
    parameter int unsigned DataWidth   = 12
) (
    input logic clk,
    input logic rst,

    // A packet goes, if its credits are there.
    input  logic                 in_valid,
    output logic                 in_ready,
    input  logic [DataWidth-1:0] in_cost,
    output logic                 lacks_header,
    output logic                 lacks_data,

    // The sum of all grants.
    input logic                   update_valid,
    input logic [HeaderWidth-1:0] update_headers,
    input logic [  DataWidth-1:0] update_data,

`ifdef FORMAL
    // Proofs look at what was used.
    output logic [HeaderWidth-1:0] probe_headers,
    output logic [  DataWidth-1:0] probe_data,
`endif
    // Credits that are left.
    output logic [HeaderWidth-1:0] left_headers,
    output logic [  DataWidth-1:0] left_data
);

  if (HeaderWidth < 1 || DataWidth < 1) begin : g_parameters
    $error("credit_gate: HeaderWidth and DataWidth are at least 1");
  end

  logic [HeaderWidth-1:0] granted_headers, used_headers;
  logic [DataWidth-1:0] granted_data, used_data;
  logic goes;

  assign left_headers = granted_headers - used_headers;
  assign left_data = granted_data - used_data;
  assign lacks_header = left_headers == '0;
  assign lacks_data = !lacks_header && left_data < in_cost;
  assign in_ready = !lacks_header && !lacks_data;
  assign goes = in_valid && in_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      granted_headers <= '0;
      granted_data <= '0;
      used_headers <= '0;
      used_data <= '0;
    end else begin
      if (update_valid) begin
        granted_headers <= update_headers;
        granted_data <= update_data;
      end
      if (goes) begin
        used_headers <= used_headers + HeaderWidth'(1);
        used_data <= used_data + in_cost;
      end
    end
  end

`ifdef FORMAL
  assign probe_headers = used_headers;
  assign probe_data = used_data;
`endif

endmodule
