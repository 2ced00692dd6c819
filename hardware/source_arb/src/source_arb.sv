// The arbiter of what is asked of `key_window` about sources (C-31, C-39): two blocks that take
// descriptors apart and the doorbells share one port.
//
// A descriptor extract asks with the word that it takes, and cannot wait then. So its words are
// held back while another one goes first. A doorbell waits until nobody else asks, or has a cycle
// of its own in its turn. What is asked in cycle t is answered in t + 1. Then the doorbell is
// offered with the answer, which stays until it is taken.
module source_arb #(
    parameter int unsigned FunctionWidth = 3,
    parameter int unsigned AddressWidth  = 40
) (
    input logic clk,
    input logic rst,

    // By descriptor extract: a word comes, and goes on to it.
    input  logic [1:0] word_valid,
    output logic [1:0] word_ready,
    output logic [1:0] to_valid,
    input  logic [1:0] to_ready,

    // By descriptor extract: it asks about a source, with the word that it takes.
    input logic [1:0]                    ask_valid,
    input logic [1:0][FunctionWidth-1:0] ask_function,
    input logic [1:0][ AddressWidth-1:0] ask_address,
    input logic [1:0][ AddressWidth-1:0] ask_length,

    // A doorbell, which stays until it is taken.
    input  logic                     bell_valid,
    output logic                     bell_ready,
    input  logic [FunctionWidth-1:0] bell_function,
    input  logic [             63:0] bell_word,

    // For `key_window`, whose answer counts in the next cycle.
    output logic                     source_valid,
    output logic [FunctionWidth-1:0] source_function,
    output logic [ AddressWidth-1:0] source_address,
    output logic [ AddressWidth-1:0] source_length,
    input  logic                     source_fits,

    // The doorbell, for the fetch of descriptors.
    output logic out_valid,
    input  logic out_ready,
    output logic out_outside
);

  if (FunctionWidth < 1 || AddressWidth < 16 || AddressWidth > 48) begin : g_parameters
    $error("source_arb: FunctionWidth is at least 1, AddressWidth 16 to 48");
  end

  // Who goes before all others: the second descriptor extract, or the doorbell alone. Otherwise the
  // first descriptor extract does.
  logic second_first, bell_first;
  // The doorbell was asked about in the cycle before, or earlier, and the answer from then.
  logic asked, answered, answer;

  logic [1:0] may_take, asks;
  logic bell_waits, bell_asks;
  always_comb begin
    may_take[0] = !second_first && !bell_first;
    asks[0] = may_take[0] && ask_valid[0];
    may_take[1] = !bell_first && !asks[0];
    asks[1] = may_take[1] && ask_valid[1];
  end
  assign to_valid = word_valid & may_take;
  assign word_ready = to_ready & may_take;

  assign bell_waits = bell_valid && !out_valid;
  assign bell_asks = bell_waits && asks == '0;
  assign source_valid = asks != '0 || bell_waits;
  always_comb begin
    source_function = bell_function;
    source_address  = bell_word[AddressWidth-1:0];
    source_length   = AddressWidth'(bell_word[63:48]);
    for (int unsigned each = 0; each < 2; each++) begin
      if (asks[each]) begin
        source_function = ask_function[each];
        source_address  = ask_address[each];
        source_length   = ask_length[each];
      end
    end
  end

  assign out_valid   = asked || answered;
  assign out_outside = asked ? !source_fits : answer;
  assign bell_ready  = out_valid && out_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      second_first <= 1'b0;
      bell_first <= 1'b0;
      asked <= 1'b0;
      answered <= 1'b0;
    end else begin
      second_first <= asks[0] && word_valid[1] && to_ready[1];
      bell_first <= bell_waits && asks != '0 && !(asks[0] && word_valid[1] && to_ready[1]);
      asked <= bell_asks;
      answered <= out_valid && !out_ready;
    end
    answer <= out_outside;
  end

  logic unused;
  assign unused = ^bell_word;

`ifdef PROVE_SOURCE_ARB
  `include "source_arb_formal.svh"
`endif

endmodule
