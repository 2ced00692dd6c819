// The free addresses of one way (D-03): those that nobody has used yet, then those that came back,
// in the order in which they came.
//
// An address that comes back in cycle t can be taken from t + 2 on.
module damq_free_list #(
    parameter int unsigned First = 0,
    parameter int unsigned Count = 1024,
    parameter int unsigned AddressWidth = 11,
    localparam int unsigned CountWidth = $clog2(Count > 1 ? Count : 2) + 1
) (
    input  logic                                           clk,
    input  logic                                           rst,
    input  logic                                           give,
    input  logic [     AddressWidth-1:0]                   give_address,
    input  logic                                           take,
    output logic                                           valid,
    output logic [     AddressWidth-1:0]                   address,
`ifdef FORMAL
    output logic [       CountWidth-1:0]                   probe_fresh,
    output logic [       CountWidth-1:0]                   probe_written,
    output logic [       CountWidth-1:0]                   probe_read,
    output logic [2**(CountWidth-1)-1:0][AddressWidth-1:0] probe_words,
`endif
    // How many addresses are free, also those that cannot be taken yet.
    output logic [       CountWidth-1:0]                   count
);

  if (First + Count > 2 ** AddressWidth) begin : g_parameters
    $error("damq_free_list: an address has too few bits");
  end

  // Addresses that were taken for the first time.
  logic [CountWidth-1:0] fresh, returned_count;
  logic has_fresh, returned_valid;
  logic [AddressWidth-1:0] returned;

  assign has_fresh = fresh != CountWidth'(Count);
  assign valid = has_fresh || returned_valid;
  assign address = has_fresh ? AddressWidth'(First) + AddressWidth'(fresh) : returned;
  assign count = CountWidth'(Count) - fresh + returned_count;

  // It has room for every address, so it never refuses one.
  logic unused_ready;
  stream_fifo #(
      .Width(AddressWidth),
      .Depth(Count)
  ) u_returned (
      .clk,
      .rst,
      .in_valid (give),
      .in_ready (unused_ready),
      .in_data  (give_address),
      .out_valid(returned_valid),
      .out_ready(take && !has_fresh),
      .out_data (returned),
`ifdef FORMAL
      .probe_written,
      .probe_read,
      .probe_words,
`endif
      .count    (returned_count)
  );

  always_ff @(posedge clk) begin
    if (rst) fresh <= '0;
    else if (take && has_fresh) fresh <= fresh + CountWidth'(1);
  end

`ifdef FORMAL
  assign probe_fresh = fresh;
`endif

endmodule
