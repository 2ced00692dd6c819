// Takes stores into the doorbell window apart (C-31, C-32, C-39): each function has a page, and
// rings by a store of one whole word at its beginning.
//
// Any other store is dropped and counted: one that is partial, longer, misaligned, or of a page
// that is no function's. What a store's last beat brings stands at the outputs in the next cycle.
module bell_decode #(
    parameter  int unsigned Functions     = 8,
    // Bits of the number of a byte in the window, and in a page.
    parameter  int unsigned WindowWidth   = 16,
    parameter  int unsigned PageShift     = 12,
    // Bits of a count of bytes, and of dropped stores.
    parameter  int unsigned SizeWidth     = 13,
    parameter  int unsigned DroppedWidth  = 32,
    localparam int unsigned FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1
) (
    input logic clk,
    input logic rst,

    // A beat of a store. Address and bytes count with the first one.
    input logic                         store_valid,
    input logic                         store_last,
    input logic [WindowWidth-1:0]       store_address,
    input logic [  SizeWidth-1:0]       store_bytes,
    input logic [            1:0][63:0] store_data,

    // A doorbell, for `doorbell_fifo`.
    output logic                     bell_valid,
    output logic [FunctionWidth-1:0] bell_function,
    output logic [             63:0] bell_word,

    // The store that ended in the cycle before was dropped; how many were since reset.
    output logic                    dropped_valid,
    output logic [DroppedWidth-1:0] dropped
);

  if (Functions < 1 || DroppedWidth < 1 || SizeWidth < 4) begin : g_parameters
    $error("bell_decode: Functions and DroppedWidth are at least 1, SizeWidth 4");
  end
  if (PageShift < 4 || WindowWidth < PageShift + FunctionWidth) begin : g_window
    $error("bell_decode: PageShift is at least 4, and the window has a page of each function");
  end

  // A beat of the store has come, and its last one has not.
  logic mid;
  logic ends, rings;
  assign ends = store_valid && store_last;
  assign rings = ends && !mid && store_bytes == SizeWidth'(8) && store_address[PageShift-1:0] == '0
      && 32'(store_address[WindowWidth-1:PageShift]) < Functions;

  always_ff @(posedge clk) begin
    if (rst) begin
      mid <= 1'b0;
      bell_valid <= 1'b0;
      dropped_valid <= 1'b0;
      dropped <= '0;
    end else begin
      if (store_valid) mid <= !store_last;
      bell_valid <= rings;
      dropped_valid <= ends && !rings;
      if (ends && !rings) dropped <= dropped + DroppedWidth'(1);
    end
    bell_function <= store_address[PageShift+:FunctionWidth];
    bell_word <= store_data[0];
  end

  // The upper half of a beat is no doorbell.
  logic unused;
  assign unused = ^store_data[1];

`ifdef PROVE_BELL_DECODE
  `include "bell_decode_formal.svh"
`endif

endmodule
