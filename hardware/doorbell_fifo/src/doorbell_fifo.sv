// The doorbell FIFOs of cHPP, one for each function (C-31, C-32).
//
// One doorbell comes and one is taken in every cycle. One that comes in cycle t waits from t + 1
// on. One that is taken in cycle t stands at the output in t + 1, until the next one is taken.
//
// All FIFOs lie in one memory, but each has its own places there: no function can fill another's
// (C-39). A doorbell has no `ready`: the bus cannot hold back a store for one function without
// holding back all others. So one that finds its FIFO full is dropped, told and counted.
module doorbell_fifo #(
    parameter int unsigned Functions = 8,
    parameter int unsigned Depth = 32,
    parameter int unsigned Width = 64,
    // Bits of the number of dropped doorbells.
    parameter int unsigned DroppedWidth = 32,
    localparam int unsigned FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1,
    localparam int unsigned AddressWidth = (Depth > 1) ? $clog2(Depth) : 1,
    localparam int unsigned CountWidth = AddressWidth + 1
) (
    input logic clk,
    input logic rst,

    // A doorbell comes. The address of the store, not the word, says of which function.
    input logic                     in_valid,
    input logic [FunctionWidth-1:0] in_function,
    input logic [        Width-1:0] in_word,

    // The doorbell that came in the cycle before was dropped; how many were since reset.
    output logic                     dropped_valid,
    output logic [FunctionWidth-1:0] dropped_function,
    output logic [ DroppedWidth-1:0] dropped,

    // By function: doorbells wait, and how many.
    output logic [Functions-1:0]                 waits,
    output logic [Functions-1:0][CountWidth-1:0] count,

    // The oldest doorbell of a function is taken, if one waits. It stands at `word` from the next
    // cycle on.
    input  logic                     take,
    input  logic [FunctionWidth-1:0] take_function,
    output logic [        Width-1:0] word
);

  if (Functions < 1 || Depth < 1 || Width < 1 || DroppedWidth < 1) begin : g_parameters
    $error("doorbell_fifo: all parameters are at least 1");
  end

  typedef logic [FunctionWidth-1:0] function_t;
  typedef logic [AddressWidth-1:0] address_t;
  typedef logic [CountWidth-1:0] count_t;

  // By function: doorbells that entered and that were taken, with one bit more than an address has.
  logic [Functions-1:0][CountWidth-1:0] written, read;
  logic [Functions-1:0] enters, leaves;
  logic writes, reads, drops;

  // A number that no function has enters nowhere and takes nothing.
  for (genvar at = 0; at < Functions; at++) begin : g_function
    assign count[at]  = written[at] - read[at];
    assign waits[at]  = written[at] != read[at];
    assign enters[at] = in_valid && in_function == function_t'(at) && count[at] < count_t'(Depth);
    assign leaves[at] = take && take_function == function_t'(at) && waits[at];

    always_ff @(posedge clk) begin
      if (rst) begin
        written[at] <= '0;
        read[at] <= '0;
      end else begin
        written[at] <= written[at] + count_t'(enters[at]);
        read[at] <= read[at] + count_t'(leaves[at]);
      end
    end
  end

  assign writes = enters != '0;
  assign reads  = leaves != '0;
  assign drops  = in_valid && !writes;

  always_ff @(posedge clk) begin
    if (rst) begin
      dropped_valid <= 1'b0;
      dropped <= '0;
    end else begin
      dropped_valid <= drops;
      dropped <= dropped + DroppedWidth'(drops);
    end
    dropped_function <= in_function;
  end

  // The places of the function that rings and of the one that is served.
  address_t write_place, read_place;
  always_comb begin
    write_place = '0;
    read_place  = '0;
    for (int unsigned at = 0; at < Functions; at++) begin
      if (in_function == function_t'(at)) write_place = address_t'(written[at]);
      if (take_function == function_t'(at)) read_place = address_t'(read[at]);
    end
  end

`ifdef FORMAL
  // Proofs look at all words.
  logic [2**(FunctionWidth+AddressWidth)-1:0][Width-1:0] f_words;
`endif

  // Both ports meet at one place only if its FIFO is empty or full: then only one of them is used.
  ram_1w1r #(
      .Width(Width),
      .Depth(2 ** (FunctionWidth + AddressWidth))
  ) u_ram (
      .clk,
      .write(writes),
      .write_address({in_function, write_place}),
      .write_data(in_word),
      .read(reads),
      .read_address({take_function, read_place}),
`ifdef FORMAL
      .probe_words(f_words),
`endif
      .read_data(word)
  );

`ifdef PROVE_DOORBELL_FIFO
  `include "doorbell_fifo_formal.svh"
`endif

endmodule
