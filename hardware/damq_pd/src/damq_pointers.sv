// Head, tail and whole descriptors of two lists for each port (D-02).
//
// A list is a port and, as its lowest bit, a way. The head has the address of a list's first word
// and whether that is the last of its descriptor. It stays at a descriptor's first word while the
// descriptor is read. Three things happen in a cycle, each to one list: a word is put, a descriptor
// is selected, a descriptor ends. The new head of a list that ended comes a cycle later (`settle`).
module damq_pointers #(
    parameter int unsigned Ports = 4,
    parameter int unsigned AddressWidth = 11,
    localparam int unsigned ListWidth = ((Ports > 1) ? $clog2(Ports) : 1) + 1
) (
    input logic clk,
    input logic rst,

    // A word is put at `put_address`; `first` tells that its list was empty.
    input  logic                    put,
    input  logic [   ListWidth-1:0] put_list,
    input  logic [AddressWidth-1:0] put_address,
    input  logic                    put_last,
    output logic                    first,
    output logic [AddressWidth-1:0] put_tail,

    // A descriptor of this list is selected; its head.
    input  logic                    selected,
    input  logic [   ListWidth-1:0] select_list,
    output logic [AddressWidth-1:0] head_address,
    output logic                    head_last,

    // The last word of a descriptor is read, at `end_address`. `emptied`: no other one follows.
    input  logic                    ends,
    input  logic [   ListWidth-1:0] end_list,
    input  logic [AddressWidth-1:0] end_address,
    output logic                    emptied,

    // The head of a list that ended in the previous cycle.
    input logic                    settle,
    input logic [   ListWidth-1:0] settle_list,
    input logic [AddressWidth-1:0] settle_address,
    input logic                    settle_last,

`ifdef FORMAL
    // Proofs look at all pointers; a head without what settles in this cycle.
    output logic [2**ListWidth-1:0][AddressWidth-1:0] probe_tails,
    output logic [2**ListWidth-1:0][  AddressWidth:0] probe_heads,
`endif
    // Has this list words, and how many whole descriptors has it that are not being read?
    output logic [2**ListWidth-1:0]                   occupied,
    output logic [2**ListWidth-1:0][  AddressWidth:0] whole
);

  localparam int unsigned Lists = 2 ** ListWidth;

  // A memory with two write ports would be registers. So a head is in one of two memories: it was
  // put into an empty list, or it was read from the address queue.
  logic [AddressWidth-1:0] tails[Lists];
  logic [AddressWidth:0] heads_put[Lists], heads_settled[Lists];
  logic [Lists-1:0] head_is_put;

  always_comb begin
    {head_last, head_address} = heads_settled[select_list];
    if (head_is_put[select_list]) {head_last, head_address} = heads_put[select_list];
    if (settle && settle_list == select_list)
      {head_last, head_address} = {settle_last, settle_address};
  end

  assign put_tail = tails[put_list];
  assign emptied = end_address == tails[end_list];
  assign first = !occupied[put_list] || (ends && emptied && end_list == put_list);

  always_ff @(posedge clk) begin
    if (rst) begin
      occupied <= '0;
      whole <= '0;
    end else begin
      // Later assignments win: a first word is the head, whatever ended before it.
      if (settle) head_is_put[settle_list] <= 1'b0;
      if (put && first) head_is_put[put_list] <= 1'b1;
      if (ends && emptied) occupied[end_list] <= 1'b0;
      if (put) occupied[put_list] <= 1'b1;
      if (selected && put && put_last && select_list == put_list) begin
        // One more and one less.
      end else begin
        if (selected) whole[select_list] <= whole[select_list] - (AddressWidth + 1)'(1);
        if (put && put_last) whole[put_list] <= whole[put_list] + (AddressWidth + 1)'(1);
      end
    end
  end

  always_ff @(posedge clk) begin
    if (put) tails[put_list] <= put_address;
    if (put && first) heads_put[put_list] <= {put_last, put_address};
    if (settle) heads_settled[settle_list] <= {settle_last, settle_address};
  end

`ifdef FORMAL
  always_comb begin
    for (int unsigned at = 0; at < Lists; at++) begin
      probe_tails[at] = tails[at];
      probe_heads[at] = head_is_put[at] ? heads_put[at] : heads_settled[at];
    end
  end
`endif

endmodule
