// Makes TLPs of reads, writes and answers to the host's reads (C-22, C-34).
//
// Whole TLPs take turns, and leave in the order in which they were taken. A beat that is taken in
// cycle t is offered from t + 1 on. A header of 3 or 4 DW goes first, so the payload moves by up to
// 4 DW against its lanes: DWs of a beat wait in `held` for the next one, or for a beat of their own
// behind the last.
module pcie_tx #(
    parameter int unsigned AddressWidth = 40,
    // Bits of a count of bytes.
    parameter int unsigned SizeWidth = 13,
    parameter int unsigned Tags = 32,
    // Bits of the number of a function.
    parameter int unsigned FunctionWidth = 3,
    // Bytes of a read and of a write, at most.
    parameter int unsigned MaxRead = 128,
    parameter int unsigned MaxPayload = 128,
    localparam int unsigned TagWidth = (Tags > 1) ? $clog2(Tags) : 1,
    localparam int unsigned DeviceWidth = 16 - FunctionWidth
) (
    input logic clk,
    input logic rst,

    // Bus and device of the interface.
    input logic [DeviceWidth-1:0] device,

    // A read; the host has room for one more.
    input  logic                     read_valid,
    output logic                     read_ready,
    input  logic                     read_credit,
    input  logic [FunctionWidth-1:0] read_function,
    input  logic [ AddressWidth-1:0] read_address,
    input  logic [    SizeWidth-1:0] read_bytes,
    input  logic [     TagWidth-1:0] read_tag,

    // A beat of a write, with each byte on the lane of its address. All but the data is the same
    // for all beats of a write, and the last one has its last byte.
    input  logic                     write_valid,
    output logic                     write_ready,
    input  logic                     write_last,
    input  logic [FunctionWidth-1:0] write_function,
    input  logic [ AddressWidth-1:0] write_address,
    input  logic [    SizeWidth-1:0] write_bytes,
    input  logic [            127:0] write_data,

    // An answer to a request of the host.
    input  logic                     answer_valid,
    output logic                     answer_ready,
    input  logic [FunctionWidth-1:0] answer_function,
    input  logic [             15:0] answer_requester,
    input  logic [              7:0] answer_tag,
    input  logic [              2:0] answer_class,
    input  logic [              2:0] answer_attributes,
    input  logic [              2:0] answer_status,
    input  logic [             11:0] answer_count,
    input  logic [              6:0] answer_lower,
    input  logic                     answer_has_data,
    input  logic [             31:0] answer_data,

    // A beat of a TLP, whose first byte is the lowest one, and DWs that it lacks.
    output logic         out_valid,
    input  logic         out_ready,
    output logic         out_last,
    output logic [  1:0] out_empty,
    output logic [127:0] out_data,

    // A read or a write that was taken in the cycle before makes no TLP: it has no bytes, too many,
    // or crosses a page.
    output logic refused
);

  if (AddressWidth < 12 || AddressWidth > 64 || SizeWidth < 8 || SizeWidth > 13) begin : g_widths
    $error("pcie_tx: AddressWidth is 12 to 64, SizeWidth 8 to 13");
  end
  if (Tags < 1 || Tags > 256 || FunctionWidth < 1 || FunctionWidth > 8) begin : g_numbers
    $error("pcie_tx: Tags is 1 to 256, FunctionWidth 1 to 8");
  end
  if (MaxRead < 1 || MaxRead > 4096 || MaxPayload < 1 || MaxPayload > 4096) begin : g_most
    $error("pcie_tx: MaxRead and MaxPayload are 1 to 4096");
  end

  typedef logic [2:0] bits_t;
  typedef logic [31:0] dword_t;

  // The senders, in the order of the arbiter.
  localparam int unsigned Read = 0;
  localparam int unsigned Write = 1;
  localparam int unsigned Answer = 2;

  // A DW in the order in which it is sent.
  function automatic dword_t turned(input dword_t dword);
    turned = {dword[7:0], dword[15:8], dword[23:16], dword[31:24]};
  endfunction

  // Beats of a write have been taken, and its last one has not.
  logic mid;
  // DWs of the last beat that was taken make a beat of their own: how many, and by how many DWs
  // they move.
  logic tail;
  logic [1:0] tail_count;
  logic [2:0] tail_shift;
  logic [127:0] held;

  // ---- Turns. One arbiter of each sender tells whether that one would be served if it asked. So
  // it is ready whether it asks or not.

  logic has_output, goes;
  bits_t asks, goes_first, served;
  logic [1:0] server;
  assign has_output = !out_valid || out_ready;
  assign goes = has_output && !tail;
  // The host's lack of room for reads must not hold back writes.
  assign asks = {answer_valid, write_valid, read_valid && read_credit};

`ifdef FORMAL
  logic [2:0][2:0] f_from_pointer;
`endif

  logic begins;
  for (genvar each = 0; each < 3; each++) begin : g_turns
    logic unused_valid;
    logic [1:0] first;
    rr_arb #(
        .Requests(3)
    ) u_rr_arb (
        .clk,
        .rst,
        .request(asks | bits_t'(1 << each)),
        .advance(begins),
        .behind(server),
`ifdef FORMAL
        .probe_from_pointer(f_from_pointer[each]),
`endif
        .valid(unused_valid),
        .index(first)
    );
    assign goes_first[each] = first == 2'(each);
    // The sender itself is there.
    logic unused;
    assign unused = unused_valid;
  end

  assign read_ready = goes && !mid && goes_first[Read] && read_credit;
  assign write_ready = goes && (mid || goes_first[Write]);
  assign answer_ready = goes && !mid && goes_first[Answer];
  assign served = {
    answer_valid && answer_ready, write_valid && write_ready, read_valid && read_ready
  };
  assign begins = !mid && served != '0;
  assign server = {served[Answer], served[Write]};

  // ---- The header of a request.

  logic is_write, is_long, fits;
  logic [FunctionWidth-1:0] requesting;
  logic [63:0] address;
  logic [12:0] bytes, end_in_page;
  logic [11:0] end_in_first;
  logic [10:0] dwords;
  logic [3:0] first_mask, last_mask;
  always_comb begin
    is_write = served[Write];
    requesting = is_write ? write_function : read_function;
    address = 64'(is_write ? write_address : read_address);
    bytes = 13'(is_write ? write_bytes : read_bytes);
    is_long = address[63:32] != '0;
    // The byte behind the last one, counted from the beginning of the page.
    end_in_page = 13'(address[11:0]) + bytes;
    fits = bytes != '0 && 32'(bytes) <= (is_write ? MaxPayload : MaxRead)
        && (!end_in_page[12] || end_in_page[11:0] == '0);
    dwords = 11'((13'(address[1:0]) + bytes + 13'd3) >> 2);
    first_mask = 4'hf << address[1:0];
    last_mask = 4'hf >> (2'd0 - end_in_page[1:0]);
    end_in_first = end_in_page[11:0];
  end

  pcie_pkg::dw_0_t request_0, answer_0;
  pcie_pkg::request_dw_1_t request_1;
  pcie_pkg::completion_dw_1_t answer_1;
  pcie_pkg::completion_dw_2_t answer_2;
  always_comb begin
    request_0 = '0;
    request_0.format = (is_write ? pcie_pkg::WithData : 3'd0) | (is_long ? pcie_pkg::Long : 3'd0);
    request_0.kind = pcie_pkg::Memory;
    request_0.dwords = dwords[9:0];
    request_1.requester = {device, requesting};
    request_1.tag = is_write ? 8'd0 : 8'(read_tag);
    request_1.last_enables = (dwords == 11'd1) ? 4'd0 : last_mask;
    request_1.first_enables = (dwords == 11'd1) ? first_mask & last_mask : first_mask;

    answer_0 = '0;
    answer_0.format = answer_has_data ? pcie_pkg::WithData : 3'd0;
    answer_0.kind = pcie_pkg::Completion;
    answer_0.traffic_class = answer_class;
    answer_0.id_order = answer_attributes[2];
    answer_0.attributes = answer_attributes[1:0];
    answer_0.dwords = 10'(answer_has_data);
    answer_1 = '0;
    answer_1.completer = {device, answer_function};
    answer_1.status = answer_status;
    answer_1.byte_count = answer_count;
    answer_2 = '0;
    answer_2.requester = answer_requester;
    answer_2.tag = answer_tag;
    answer_2.lower_address = answer_lower;
  end

  // ---- The payload. It begins `shift` DWs behind the lane of its address: 0 to 4.

  logic [2:0] shift, ends_at, lanes_used;
  logic [255:0] both;
  logic [127:0] moved;
  always_comb begin
    shift = tail ? tail_shift : (is_long ? 3'd4 : 3'd3) - 3'(address[3:2]);
    // Lanes of the last beat that have a DW of the write, and where they end then, beyond the
    // fourth one in a beat of their own.
    lanes_used = 3'(2'((end_in_first - 12'd1) >> 2)) + 3'd1;
    ends_at = shift + lanes_used;
    both = {write_data, held};
    moved = both[127:0];
    for (int unsigned dws = 0; dws < 4; dws++) begin
      if (shift == 3'(dws)) moved = both[(4-dws)*32+:128];
    end
  end

  logic has_tail;
  assign has_tail = is_write && write_last && fits && (shift == 3'd4 || ends_at > 3'd4);

  logic [127:0] header;
  logic [  3:0] in_header;
  always_comb begin
    if (served[Answer]) begin
      header = {answer_data, turned(answer_2), turned(answer_1), turned(answer_0)};
      in_header = 4'b1111;
    end else begin
      header = {
        turned({address[31:2], 2'b0}),
        turned(is_long ? address[63:32] : {address[31:2], 2'b0}),
        turned(request_1),
        turned(request_0)
      };
      in_header = is_long ? 4'b1111 : 4'b0111;
    end
    if (tail || mid) in_header = '0;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid <= 1'b0;
      mid <= 1'b0;
      tail <= 1'b0;
      refused <= 1'b0;
    end else begin
      if (has_output) begin
        out_valid <= tail || served[Answer] || (served != '0 && fits);
        tail <= has_tail;
      end
      if (is_write) mid <= !write_last;
      refused <= (served[Read] || (is_write && write_last)) && !fits;
    end
    if (has_output) begin
      for (int unsigned lane = 0; lane < 4; lane++) begin
        out_data[lane*32+:32] <= in_header[lane] ? header[lane*32+:32] : moved[lane*32+:32];
      end
      if (tail) begin
        out_last  <= 1'b1;
        out_empty <= 2'd0 - tail_count;
      end else if (is_write) begin
        out_last  <= write_last && !has_tail;
        out_empty <= (write_last && !has_tail) ? 2'd0 - ends_at[1:0] : 2'd0;
      end else begin
        out_last  <= 1'b1;
        out_empty <= 2'(served[Answer] ? !answer_has_data : !is_long);
      end
    end
    if (is_write) begin
      held <= write_data;
      tail_shift <= shift;
      // Of four there are none in two bits.
      tail_count <= ends_at[1:0];
    end
  end

`ifdef PROVE_PCIE_TX
  `include "pcie_tx_formal.svh"
`endif

endmodule
