// Takes the TLPs of the host apart (C-31, C-35, C-36): completions and stores go on with each byte
// on the lane of its address, and a request that wants an answer is told.
//
// A header of 3 or 4 DW stands in front of the payload, so that moves by up to 4 DW towards its
// lanes: DWs of a beat wait in `held` for the next one. What comes in cycle t stands at the outputs
// from t + 1 on; last DWs that make a beat of their own follow in the next cycle, in which nothing
// is taken.
module pcie_rx #(
    parameter int unsigned Tags = 32,
    // Bits of the number of a function, and of a byte in the window.
    parameter int unsigned FunctionWidth = 3,
    parameter int unsigned WindowWidth = 16,
    // Bits of the count of dropped TLPs.
    parameter int unsigned DroppedWidth = 32,
    localparam int unsigned TagWidth = (Tags > 1) ? $clog2(Tags) : 1,
    localparam int unsigned DeviceWidth = 16 - FunctionWidth
) (
    input logic clk,
    input logic rst,

    // Bus and device of the interface; the window's address, without the bits of its size.
    input logic [   DeviceWidth-1:0] device,
    input logic [63-WindowWidth : 0] base,

    // A read leaves for the host: the low bits of the address behind its last byte.
    input logic                read_valid,
    input logic [TagWidth-1:0] read_tag,
    input logic [         6:0] read_end,

    // A beat of a TLP, whose first byte is the lowest one, and DWs that it lacks.
    input  logic         in_valid,
    output logic         in_ready,
    input  logic         in_last,
    input  logic [  1:0] in_empty,
    input  logic [127:0] in_data,

    // A beat of a completion, for `read_arb` and those behind it.
    output logic                completion_valid,
    output logic [TagWidth-1:0] completion_tag,
    output logic                completion_failed,
    output logic [        12:0] completion_bytes,
    output logic [        12:0] completion_remaining,

    // A beat of a store, for `bell_decode`. One with bytes that are not meant, or wrong, has none.
    output logic                   store_valid,
    output logic [WindowWidth-1:0] store_address,
    output logic [           12:0] store_bytes,

    // The beat of either.
    output logic         out_last,
    output logic [127:0] out_data,

    // A request that wants an answer: it reads a DW of the window, or is not supported.
    output logic                   request_valid,
    input  logic                   request_ready,
    output logic                   request_is_read,
    output logic [WindowWidth-1:0] request_address,
    output logic [           15:0] request_requester,
    output logic [            7:0] request_tag,
    output logic [            2:0] request_class,
    output logic [            2:0] request_attributes,
    output logic [           11:0] request_count,
    output logic [            6:0] request_lower,

    // The TLP that ended in the cycle before was dropped; how many were since reset.
    output logic                    dropped_valid,
    output logic [DroppedWidth-1:0] dropped
);

  if (Tags < 1 || Tags > 256 || FunctionWidth < 1 || FunctionWidth > 8) begin : g_numbers
    $error("pcie_rx: Tags is 1 to 256, FunctionWidth 1 to 8");
  end
  if (WindowWidth < 7 || WindowWidth > 32 || DroppedWidth < 1) begin : g_widths
    $error("pcie_rx: WindowWidth is 7 to 32, DroppedWidth at least 1");
  end

  typedef logic [31:0] dword_t;

  // A DW, whose most significant byte was sent first.
  function automatic dword_t turned(input dword_t dword);
    turned = {dword[7:0], dword[15:8], dword[23:16], dword[31:24]};
  endfunction

  // Of each tag, where its last read ends.
  logic [6:0] end_of[2**TagWidth];
  always_ff @(posedge clk) begin
    if (read_valid) end_of[read_tag] <= read_end;
  end

  // ---- The header, which counts with the first beat.

  pcie_pkg::dw_0_t dw_0;
  pcie_pkg::request_dw_1_t request_1;
  pcie_pkg::completion_dw_1_t completion_1;
  pcie_pkg::completion_dw_2_t completion_2;
  assign dw_0 = turned(in_data[31:0]);
  assign request_1 = turned(in_data[63:32]);
  assign completion_1 = turned(in_data[63:32]);
  assign completion_2 = turned(in_data[95:64]);

  logic is_long, has_data, is_known, is_memory, is_window, is_completion;
  logic [10:0] dwords, total;
  logic [63:0] address;
  always_comb begin
    is_long = dw_0.format[0];
    has_data = dw_0.format[1];
    is_known = !dw_0.format[2];
    dwords = {dw_0.dwords == '0, dw_0.dwords};
    total = (is_long ? 11'd4 : 11'd3) + (has_data ? dwords : 11'd0);
    address = is_long ?
        {turned(in_data[95:64]), turned(in_data[127:96])} : {32'd0, turned(in_data[95:64])};
    is_window = address[63:WindowWidth] == base;
    is_memory = is_known && dw_0.kind == pcie_pkg::Memory;
    is_completion = is_known && dw_0.kind == pcie_pkg::Completion && !is_long;
  end

  // A completion: bytes by its DWs, and by what its read lacks.
  logic [12:0] room, remaining, bytes;
  logic is_mine, is_success, fits, is_end;
  always_comb begin
    remaining = {completion_1.byte_count == '0, completion_1.byte_count};
    room = {dwords, 2'b0} - 13'(completion_2.lower_address[1:0]);
    is_end = room >= remaining;
    bytes = is_end ? remaining : room;
    is_mine = completion_2.requester[15:FunctionWidth] == device
        && 32'(completion_2.tag) < 2 ** TagWidth;
    is_success = completion_1.status == pcie_pkg::Success;
    // Where a read ends says where each piece of it must begin (C-35).
    fits = completion_2.lower_address + remaining[6:0] == end_of[completion_2.tag[TagWidth-1:0]]
        && 14'(room) < 14'(remaining) + 14'd4;
  end

  // What is done with it.
  logic new_goes, new_is_store, new_fails, new_asks;
  logic is_piece;
  always_comb begin
    is_piece = is_completion && is_mine && has_data && is_success && fits;
    new_is_store = is_memory && has_data && is_window;
    new_goes = new_is_store || (is_piece && !dw_0.poisoned);
    // Behind a piece that is not the last one more may come, so its tag is not free.
    new_fails = (is_completion && is_mine && !has_data && !is_success)
        || (is_piece && dw_0.poisoned && is_end);
    new_asks = (is_memory && !has_data) || (is_known && pcie_pkg::OtherNonPosted[dw_0.kind]);
  end

  // A read by the host: the bytes in front of the first one that is meant, and behind the last one.
  logic [3:0] enabled_last;
  logic [1:0] lead, trail;
  always_comb begin
    enabled_last = (dwords == 11'd1) ? request_1.first_enables : request_1.last_enables;
    lead = 2'd0;
    trail = 2'd3;
    for (int unsigned at = 0; at < 4; at++) begin
      if (request_1.first_enables[3-at]) lead = 2'(3 - at);
      if (enabled_last[at]) trail = 2'(3 - at);
    end
  end

  // ---- The TLP that comes, from its second beat on.

  logic mid, goes, is_store, fails, asks, tail;
  logic [ 10:0] left;
  logic [  2:0] shift;
  logic [127:0] held;

  logic now_goes, now_fails, now_asks, takes, begins, ends, is_wrong, has_tail;
  logic [10:0] now_left, came;
  logic [2:0] now_shift;
  always_comb begin
    takes = in_valid && in_ready;
    begins = takes && !mid;
    ends = takes && in_last;
    now_goes = mid ? goes : new_goes;
    now_fails = mid ? fails : new_fails;
    now_asks = mid ? asks : new_asks;
    now_left = mid ? left : total;
    now_shift = mid ? shift
        : new_is_store ? (is_long ? 3'd4 : 3'd3) - 3'(address[3:2])
        : 3'd3 - 3'(completion_2.lower_address[3:2]);
    came = 11'd4 - 11'(in_empty);
    is_wrong = now_left != came;
    // One of which there are more or fewer DWs than its header says has more or fewer beats than it
    // should, so that nobody takes it for whole.
    if (now_left == '0) has_tail = 1'b1;
    else if (now_left > 11'd4) has_tail = 1'b0;
    else has_tail = (11'(now_shift) < now_left) != is_wrong;
    if (now_fails) has_tail = !is_wrong;
  end

  assign in_ready = !tail && !request_valid;

  logic [255:0] both;
  logic [127:0] moved;
  always_comb begin
    both  = {in_data, held};
    moved = both[255:128];
    for (int unsigned dws = 0; dws < 4; dws++) begin
      if (shift == 3'(dws)) moved = both[dws*32+:128];
    end
  end

  logic sends;
  assign sends = tail || (takes && mid && goes);

  always_ff @(posedge clk) begin
    if (rst) begin
      mid <= 1'b0;
      tail <= 1'b0;
      completion_valid <= 1'b0;
      store_valid <= 1'b0;
      request_valid <= 1'b0;
      dropped_valid <= 1'b0;
      dropped <= '0;
    end else begin
      if (takes) mid <= !in_last;
      tail <= ends && (now_goes || now_fails) && has_tail;
      completion_valid <= sends && !is_store;
      store_valid <= sends && is_store;
      request_valid <= (ends && now_asks && !is_wrong) || (request_valid && !request_ready);
      dropped_valid <= ends && (is_wrong || !(now_goes || now_fails || now_asks));
      if (ends && (is_wrong || !(now_goes || now_fails || now_asks))) begin
        dropped <= dropped + DroppedWidth'(1);
      end
    end
    if (takes) begin
      held <= in_data;
      left <= (now_left > 11'd4) ? now_left - 11'd4 : '0;
    end
    out_last <= tail || (in_last && !has_tail);
    out_data <= moved;
    if (begins) begin
      goes <= new_goes;
      is_store <= new_is_store;
      fails <= new_fails;
      asks <= new_asks;
      shift <= now_shift;
      request_is_read <= is_memory && is_window && dwords == 11'd1;
      request_address <= is_memory ? {address[WindowWidth-1:2], 2'b0} : '0;
      request_requester <= request_1.requester;
      request_tag <= request_1.tag;
      request_class <= dw_0.traffic_class;
      request_attributes <= {dw_0.id_order, dw_0.attributes};
      request_count <= is_memory ? 12'({dwords, 2'b0} - 13'(lead) - 13'(trail)) : 12'd4;
      request_lower <= is_memory ? {address[6:2], lead} : '0;
    end
  end

  // What is said of the TLP goes with its beats, and those follow one cycle later.
  logic [TagWidth-1:0] tag;
  logic [12:0] piece_bytes, piece_remaining, stored;
  logic [WindowWidth-1:0] place;
  always_ff @(posedge clk) begin
    if (begins) begin
      tag <= completion_2.tag[TagWidth-1:0];
      piece_bytes <= has_data ? bytes : '0;
      piece_remaining <= remaining;
      place <= {address[WindowWidth-1:2], 2'b0};
      stored <= (request_1.first_enables == 4'hf && enabled_last == 4'hf && !dw_0.poisoned)
          ? {dwords, 2'b0} : '0;
    end
    completion_tag <= tag;
    completion_failed <= fails;
    completion_bytes <= piece_bytes;
    completion_remaining <= piece_remaining;
    store_address <= place;
    store_bytes <= stored;
  end

  // Other bits of headers say nothing here.
  logic unused;
  assign unused = ^{dw_0, completion_1, completion_2, address[1:0]};

`ifdef PROVE_PCIE_RX
  `include "pcie_rx_formal.svh"
`endif

endmodule
