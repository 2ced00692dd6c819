// The arbiter of reads of host memory (C-34, C-36): those of descriptors, of data and of slot
// addresses share one port and one allocator of tags.
//
// Requesters take turns. A read that is taken in cycle t gets the tag that is offered in t, and is
// offered to the PCIe boundary from t + 1 on. One leaves in every cycle. Each beat of a completion
// is the requester's whose read has its tag, in the cycle in which it comes.
module read_arb #(
    parameter int unsigned Requesters = 3,
    parameter int unsigned Tags = 32,
    parameter int unsigned FunctionWidth = 3,
    parameter int unsigned AddressWidth = 40,
    // Bits of a count of bytes.
    parameter int unsigned SizeWidth = 13,
    localparam int unsigned TagWidth = (Tags > 1) ? $clog2(Tags) : 1
) (
    input logic clk,
    input logic rst,

    // By requester: a read, and the function that it is for.
    input  logic [Requesters-1:0]                    ask_valid,
    output logic [Requesters-1:0]                    ask_ready,
    input  logic [Requesters-1:0][FunctionWidth-1:0] ask_function,
    input  logic [Requesters-1:0][ AddressWidth-1:0] ask_address,
    input  logic [Requesters-1:0][    SizeWidth-1:0] ask_bytes,

    // The tag of the read that is taken.
    input  logic                tag_valid,
    output logic                tag_ready,
    input  logic [TagWidth-1:0] tag,

    // The read that was taken last, for the PCIe boundary.
    output logic                     read_valid,
    input  logic                     read_ready,
    output logic [FunctionWidth-1:0] read_function,
    output logic [ AddressWidth-1:0] read_address,
    output logic [    SizeWidth-1:0] read_bytes,
    output logic [     TagWidth-1:0] read_tag,

    // A beat of a completion, whose tag counts with its first beat. By requester: it is its own.
    input  logic                  in_valid,
    input  logic                  in_last,
    input  logic [  TagWidth-1:0] in_tag,
    output logic [Requesters-1:0] own_valid,
    // What ended in the cycle before was for nobody.
    output logic                  unexpected,

    // By requester: what came for it in the cycle before was the last of a read, or failed. So the
    // tag comes back to the allocator.
    input  logic [Requesters-1:0] free_valid,
    output logic                  release_valid,
    output logic [  TagWidth-1:0] release_tag,

    // The allocator has freed this tag, because its completions did not come in time. By requester:
    // it is of a read of its own.
    input  logic                  lost_valid,
    input  logic [  TagWidth-1:0] lost_tag,
    output logic [Requesters-1:0] own_lost
);

  if (Requesters < 1 || Tags < 1 || AddressWidth < 1 || SizeWidth < 1) begin : g_parameters
    $error("read_arb: Requesters, Tags, AddressWidth and SizeWidth are at least 1");
  end
  if (FunctionWidth < 1) begin : g_function
    $error("read_arb: FunctionWidth is at least 1");
  end

  localparam int unsigned OwnerWidth = (Requesters > 1) ? $clog2(Requesters) : 1;
  typedef logic [OwnerWidth-1:0] owner_t;
  typedef logic [Requesters-1:0] bits_t;
  typedef logic [TagWidth-1:0] tag_t;

  function automatic bits_t only(input logic is_some, input owner_t owner);
    only = '0;
    for (int unsigned each = 0; each < Requesters; each++) begin
      only[each] = is_some && owner == owner_t'(each);
    end
  endfunction

  // Tags of reads that wait for completions, and whose reads these are.
  logic [2**TagWidth-1:0] waits;
  owner_t owner_of[2**TagWidth];

  // ---- A read. One arbiter of each requester tells whether that one would be served if it asked.
  // So it is ready whether it asks or not.

  logic has_room, takes;
  bits_t  served;
  owner_t server;
  // Two reads under one tag could not be told apart (C-36).
  assign has_room = (!read_valid || read_ready) && !waits[tag];
  assign tag_ready = ask_valid != '0 && has_room;
  assign served = ask_valid & ask_ready;
  assign takes = served != '0;

`ifdef FORMAL
  logic [Requesters-1:0][Requesters-1:0] f_from_pointer;
`endif

  for (genvar each = 0; each < Requesters; each++) begin : g_turns
    logic   unused_valid;
    owner_t first;
    rr_arb #(
        .Requests(Requesters)
    ) u_rr_arb (
        .clk,
        .rst,
        .request(ask_valid | bits_t'(1 << each)),
        .advance(takes),
        .behind(server),
`ifdef FORMAL
        .probe_from_pointer(f_from_pointer[each]),
`endif
        .valid(unused_valid),
        .index(first)
    );
    assign ask_ready[each] = first == owner_t'(each) && has_room && tag_valid;
    // The requester itself is there.
    logic unused;
    assign unused = unused_valid;
  end

  logic [FunctionWidth-1:0] of_function;
  logic [AddressWidth-1:0] address;
  logic [   SizeWidth-1:0] bytes;
  always_comb begin
    server = '0;
    of_function = '0;
    address = '0;
    bytes = '0;
    for (int unsigned each = 0; each < Requesters; each++) begin
      if (served[each]) begin
        server |= owner_t'(each);
        of_function |= ask_function[each];
        address |= ask_address[each];
        bytes |= ask_bytes[each];
      end
    end
  end

  always_ff @(posedge clk) begin
    if (rst) read_valid <= 1'b0;
    else read_valid <= takes || (read_valid && !read_ready);
    if (takes) begin
      read_function <= of_function;
      read_address <= address;
      read_bytes <= bytes;
      read_tag <= tag;
    end
  end

  // ---- A completion: all its beats go where the first one went. Its read is held if it has had
  // the tag all the time: between beats a tag may be lost and used again.

  logic mid, piece_is_own, piece_held, is_own, held, ended_held;
  tag_t piece_tag, in_piece_tag;
  owner_t piece_owner, owner;
  logic frees, meets;
  always_comb begin
    in_piece_tag = mid ? piece_tag : in_tag;
    is_own = mid ? piece_is_own : waits[in_tag];
    owner = mid ? piece_owner : owner_of[in_tag];
    held = (mid ? piece_held : is_own) && !(lost_valid && lost_tag == in_piece_tag)
        && !(frees && piece_tag == in_piece_tag);
  end
  assign own_valid = only(in_valid && is_own, owner);

  // ---- Tags come back. What ended in the cycle before is still in the registers of the piece.

  assign frees = ended_held && free_valid[piece_owner];
  // The allocator has freed it in the same moment.
  assign meets = frees && lost_valid && lost_tag == piece_tag;
  assign release_valid = frees && !meets;
  assign release_tag = piece_tag;
  assign own_lost = only(lost_valid && waits[lost_tag] && !meets, owner_of[lost_tag]);

  always_ff @(posedge clk) begin
    if (rst) begin
      mid <= 1'b0;
      unexpected <= 1'b0;
      ended_held <= 1'b0;
      waits <= '0;
    end else begin
      if (in_valid) mid <= !in_last;
      unexpected <= in_valid && in_last && !is_own;
      ended_held <= in_valid && in_last && held;
      if (frees) waits[piece_tag] <= 1'b0;
      if (lost_valid) waits[lost_tag] <= 1'b0;
      if (takes) waits[tag] <= 1'b1;
    end
    if (in_valid) begin
      piece_tag <= in_piece_tag;
      piece_owner <= owner;
      piece_is_own <= is_own;
    end
    piece_held <= held;
    if (takes) owner_of[tag] <= server;
  end

`ifdef PROVE_READ_ARB
  `include "read_arb_formal.svh"
`endif

endmodule
