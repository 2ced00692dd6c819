// A memory with one write port and one read port, both clocked.
//
// The data of a read stands at `read_data` in the next cycle and stays until the next read. A read
// of the address that is written in the same cycle gives an undefined word. Block RAMs differ
// there, and a defined one would cost a comparator. Users of this block never use such a word.
module ram_1w1r #(
    parameter int unsigned Width = 8,
    parameter int unsigned Depth = 16,
    localparam int unsigned AddressWidth = (Depth > 1) ? $clog2(Depth) : 1
) (
    input  logic                               clk,
    input  logic                               write,
    input  logic [AddressWidth-1:0]            write_address,
    input  logic [       Width-1:0]            write_data,
    input  logic                               read,
    input  logic [AddressWidth-1:0]            read_address,
`ifdef FORMAL
    // Proofs look at all words at any time.
    output logic [       Depth-1:0][Width-1:0] probe_words,
`endif
    output logic [       Width-1:0]            read_data
);

  if (Width < 1 || Depth < 1) begin : g_parameters
    $error("ram_1w1r: Width and Depth are at least 1");
  end

  logic [Width-1:0] words[Depth];

  always_ff @(posedge clk) begin
    if (write) words[write_address] <= write_data;
    if (read) begin
      read_data <= (write && write_address == read_address) ? 'x : words[read_address];
    end
  end

`ifdef FORMAL
  always_comb begin
    for (int unsigned at = 0; at < Depth; at++) probe_words[at] = words[at];
  end
`endif

endmodule
