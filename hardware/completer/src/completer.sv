// Answers requests of the host (C-32, C-39): a read of a register gets its value, and any other
// request is told to be unsupported.
//
// A request that is taken in cycle t is answered from t + 1 on, with the value of t.
module completer #(
    // Registers, and the page of the window that has them.
    parameter int unsigned Registers = 16,
    parameter int unsigned Page = 8,
    // Bits of the number of a byte in the window, and in a page.
    parameter int unsigned WindowWidth = 16,
    parameter int unsigned PageShift = 12
) (
    input logic clk,
    input logic rst,

    // By register.
    input logic [Registers-1:0][31:0] value,

    // A request: it reads a DW of the window, or is not supported.
    input  logic                   request_valid,
    output logic                   request_ready,
    input  logic                   request_is_read,
    input  logic [WindowWidth-1:0] request_address,
    input  logic [           15:0] request_requester,
    input  logic [            7:0] request_tag,
    input  logic [            2:0] request_class,
    input  logic [            2:0] request_attributes,
    input  logic [           11:0] request_count,
    input  logic [            6:0] request_lower,

    // Its answer, for `pcie_tx`.
    output logic        answer_valid,
    input  logic        answer_ready,
    output logic [15:0] answer_requester,
    output logic [ 7:0] answer_tag,
    output logic [ 2:0] answer_class,
    output logic [ 2:0] answer_attributes,
    output logic [ 2:0] answer_status,
    output logic [11:0] answer_count,
    output logic [ 6:0] answer_lower,
    output logic        answer_has_data,
    output logic [31:0] answer_data
);

  if (PageShift < 3 || PageShift > 31 || WindowWidth <= PageShift) begin : g_window
    $error("completer: PageShift is 3 to 31, and the window has several pages");
  end
  if (Registers < 1 || Registers > 2 ** (PageShift - 2)) begin : g_registers
    $error("completer: there is at least one register, and all are in a page");
  end
  if (Page >= 2 ** (WindowWidth - PageShift)) begin : g_page
    $error("completer: the window has the page");
  end

  logic is_page;
  logic [Registers-1:0] is_register;
  logic [31:0] found;
  assign request_ready = !answer_valid || answer_ready;
  assign is_page = request_is_read && 32'(request_address[WindowWidth-1:PageShift]) == Page;
  always_comb begin
    found = '0;
    for (int unsigned each = 0; each < Registers; each++) begin
      is_register[each] = is_page && 32'(request_address[PageShift-1:2]) == each;
      if (is_register[each]) found |= value[each];
    end
  end

  always_ff @(posedge clk) begin
    if (rst) answer_valid <= 1'b0;
    else answer_valid <= request_valid || !request_ready;
    if (request_ready) begin
      answer_requester <= request_requester;
      answer_tag <= request_tag;
      answer_class <= request_class;
      answer_attributes <= request_attributes;
      answer_status <= (is_register != '0) ? pcie_pkg::Success : pcie_pkg::Unsupported;
      answer_count <= request_count;
      answer_lower <= request_lower;
      answer_has_data <= is_register != '0;
      answer_data <= found;
    end
  end

  // Requests are of whole DWs.
  logic unused;
  assign unused = ^request_address[1:0];

`ifdef PROVE_COMPLETER
  `include "completer_formal.svh"
`endif

endmodule
