// Tells the network that a place for a packet from there is free again, by class: a packet has
// left its channel of the crossbar.
//
// The crossbar says how many packets are in each channel. It counts one from the cycle behind its
// first beat, and no longer from the cycle behind its last one.
module net_credit #(
    parameter int unsigned CountWidth = 6
) (
    input logic clk,
    input logic rst,

    // A beat of a packet from the network enters the crossbar.
    input logic in_taken,
    input logic in_class,
    input logic in_last,

    // Packets in each channel.
    input  logic [1:0][CountWidth-1:0] packets,
    output logic [1:0]                 credit
);

  if (CountWidth < 1) begin : g_parameters
    $error("net_credit: CountWidth is at least 1");
  end

  // The packet that comes has begun. Packets of the cycle before, with the one that began then.
  logic mid;
  logic [1:0][CountWidth-1:0] inside_before;
  logic [1:0] begins;
  always_comb begin
    for (int unsigned each = 0; each < 2; each++) begin
      begins[each] = in_taken && !mid && in_class == 1'(each);
      credit[each] = inside_before[each] != packets[each];
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      mid <= 1'b0;
      inside_before <= '0;
    end else begin
      if (in_taken) mid <= !in_last;
      for (int unsigned each = 0; each < 2; each++) begin
        inside_before[each] <= packets[each] + CountWidth'(begins[each]);
      end
    end
  end

`ifdef PROVE_NET_CREDIT
  `include "net_credit_formal.svh"
`endif

endmodule
