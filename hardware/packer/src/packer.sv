// Joins control, destination and data into network packets (C-34).
//
// Moves come in the order of their operations, and the bytes for them as one stream of beats, each
// with bytes in some lanes. Bytes are put to their places behind the header, as the DWs of their
// destination want it, and the tail behind them. A packet leaves when all of its bytes have come:
// without pauses, and not at all if its data failed. The last byte of a packet comes in cycle t; so
// its header is offered from t + 2 on, or a cycle later if its end takes a beat more.
module packer #(
    // Bits of a byte, of its number in a beat, and of its number in a DW.
    parameter int unsigned ByteWidth = 8,
    parameter int unsigned LaneWidth = 4,
    parameter int unsigned DwordWidth = 2,
    // Beats of the buffer, and packets in it: powers of two.
    parameter int unsigned Beats = 256,
    parameter int unsigned Packets = 16,
    // Bytes of a PUT packet, and of any other one, at most.
    parameter int unsigned Payload = 128,
    parameter int unsigned Longest = 2048,
    parameter int unsigned AddressWidth = 40,
    // Bits of a count of a move's bytes.
    parameter int unsigned BytesWidth = 40,
    parameter int unsigned RouteWidth = 8,
    parameter int unsigned OperationWidth = 8,
    localparam int unsigned Lanes = 2 ** LaneWidth,
    localparam int unsigned Width = ByteWidth * Lanes,
    localparam int unsigned PlaceWidth = (Beats > 1) ? $clog2(Beats) : 1,
    localparam int unsigned CountWidth = PlaceWidth + 1,
    localparam int unsigned SlotWidth = (Packets > 1) ? $clog2(Packets) : 1
) (
    input logic clk,
    input logic rst,

    // A move: bytes that lie one behind the other at their destination. All but its address and its
    // bytes is the same for all moves of an operation.
    input  logic                      move_valid,
    output logic                      move_ready,
    input  logic                      move_last,
    input  logic [               3:0] move_primitive,
    input  logic [               2:0] move_traffic_class,
    input  logic [               7:0] move_magic,
    input  logic [               8:0] move_source,
    input  logic [               8:0] move_destination,
    input  logic                      move_wants_event,
    input  logic [       LaneWidth:0] move_tail_bytes,
    input  logic [         Width-1:0] move_tail,
    input  logic [    RouteWidth-1:0] move_route,
    input  logic [OperationWidth-1:0] move_operation,
    input  logic [  AddressWidth-1:0] move_address,
    input  logic [    BytesWidth-1:0] move_bytes,

    // A beat of data, with the lanes of its first and last byte. `in_ends`: the last one of its
    // operation. `in_failed`: it has no bytes, and some of its operation do not come.
    input  logic                 in_valid,
    output logic                 in_ready,
    input  logic                 in_ends,
    input  logic                 in_failed,
    input  logic [LaneWidth-1:0] in_from,
    input  logic [LaneWidth-1:0] in_to,
    input  logic [    Width-1:0] in_data,

    // Free beats of the buffer; whole packets in it.
    output logic [CountWidth-1:0] room,
    output logic [   SlotWidth:0] packets,

    // The beats of packets, with the lane of the last byte.
    output logic                  out_valid,
    input  logic                  out_ready,
    output logic                  out_last,
    output logic [ LaneWidth-1:0] out_to,
    output logic [RouteWidth-1:0] out_route,
    output logic [     Width-1:0] out_data,

    // An operation has left: its last packet has, or its data failed.
    output logic                      sent_valid,
    input  logic                      sent_ready,
    output logic                      sent_failed,
    output logic [OperationWidth-1:0] sent_operation
);

  localparam int unsigned Most = (Payload > Longest) ? Payload : Longest;
  localparam int unsigned Dword = 2 ** DwordWidth;
  if (Beats != 2 ** PlaceWidth || Packets != 2 ** SlotWidth) begin : g_powers
    $error("packer: Beats and Packets are powers of two, and at least 2");
  end
  if (DwordWidth < 1 || DwordWidth > LaneWidth) begin : g_dword
    $error("packer: DwordWidth is at least 1, and at most LaneWidth");
  end
  // With a lead, a trail and a tail.
  if (Beats < 2 + (Most + 2 * Dword - 2 + Lanes - 1) / Lanes) begin : g_beats
    $error("packer: the longest packet has room in the buffer");
  end
  // A packet has 1,024 DWs at most, and a PUT begins anywhere in one.
  if (Payload < 1 || Longest < 1 || Payload > 4093 || Longest > 4096) begin : g_most
    $error("packer: Payload is 1 to 4093, and Longest 1 to 4096");
  end

  localparam int unsigned NeedWidth = $clog2(Most + 1);
  typedef logic [CountWidth-1:0] count_t;
  typedef logic [SlotWidth-1:0] slot_t;
  typedef logic [LaneWidth-1:0] lane_t;
  typedef logic [NeedWidth-1:0] need_t;
  typedef logic [BytesWidth-1:0] bytes_t;
  // Bytes in a beat, and in two of them.
  typedef logic [LaneWidth:0] fill_t;
  typedef logic [LaneWidth+1:0] sum_t;

  localparam logic [3:0] Put = 4'b0110;

  // ---- Whole packets in the order in which they leave. The report of an operation whose data
  // failed is among them, as a packet without beats.

  slot_t oldest, newest;
  // Beats that were written, and those of them that have left the buffer.
  count_t written, read;
  // The beat behind the last one, the lane of its last byte, and whether it ends its operation.
  count_t end_of[Packets];
  lane_t to_of[Packets];
  logic [RouteWidth-1:0] route_of[Packets];
  logic [OperationWidth-1:0] operation_of[Packets];
  logic [Packets-1:0] ends, failed;
  logic has_room;
  assign newest   = oldest + slot_t'(packets);
  assign room     = count_t'(Beats) - (written - read);
  assign has_room = room != '0;

  // ---- The move whose packets are made; address and bytes are those behind the last packet.

  logic has_move, is_last, wants_event;
  logic [3:0] packet_type;
  logic [2:0] traffic_class;
  logic [7:0] magic;
  logic [8:0] source, destination;
  fill_t tail_bytes;
  logic [Width-1:0] tail;
  logic [RouteWidth-1:0] route;
  logic [OperationWidth-1:0] operation;
  logic [AddressWidth-1:0] address;
  bytes_t left;

  // Its next packet, and whether that is the last one of the move and of the operation.
  need_t piece;
  logic piece_ends_move, piece_ends;
  bytes_t limit;
  assign limit = (packet_type == Put) ? bytes_t'(Payload) : bytes_t'(Longest);
  assign piece_ends_move = left <= limit;
  assign piece_ends = piece_ends_move && is_last;
  assign piece = need_t'(piece_ends_move ? left : limit);

  logic [Width-1:0] header;
  if (Width == 128) begin : g_header
    packer_header u_header (
        .packet_type,
        .traffic_class,
        .magic,
        .source,
        .destination,
        .wants_event(piece_ends && wants_event),
        .address,
        .bytes(13'(piece)),
        .header
    );
  end else begin : g_stand_in
    // In proofs, whose beats are shorter.
    assign header = Width'({piece, piece_ends && wants_event, address});
  end

  // ---- The packet whose data comes: bytes that it lacks, and those of the tail that follow. Bytes
  // of the beat that is not full.

  logic building, ends_move, ends_operation;
  need_t need;
  fill_t tail_left, fill;
  logic [Width-1:0] hold;
  // The first beat of it.
  count_t begun_at;
  // A part of the beat that comes was taken, up to this lane. Data and moves of an operation that
  // failed are still to come.
  logic mid, drains, swallows;
  lane_t lane;

  lane_t from;
  fill_t offered, taken;
  logic is_short, waits, begins, takes, breaks, closes;
  assign from = mid ? lane : in_from;
  assign offered = fill_t'(in_to) - fill_t'(from) + fill_t'(1);
  // The packet takes no more than it lacks.
  assign is_short = 32'(need) < 32'(offered);
  assign waits = building && need != '0 && has_room;
  assign begins = has_move && !building && has_room && packets != (SlotWidth + 1)'(Packets);
  assign takes = waits && in_valid && !in_failed;
  assign breaks = waits && in_valid && in_failed;
  assign closes = building && need == '0 && has_room;
  assign in_ready = drains || (waits && (in_failed || !is_short));

  // What is appended: bytes of the beat that comes, or the tail.
  lane_t shift;
  logic [Width-1:0] operand, turned;
  assign taken   = closes ? tail_left : is_short ? fill_t'(need) : offered;
  assign shift   = lane_t'(fill) - (closes ? '0 : from);
  assign operand = closes ? tail : in_data;

  // A byte of lane l goes to lane l + shift.
  always_comb begin
    turned = operand;
    for (int unsigned bit_of = 0; bit_of < LaneWidth; bit_of++) begin
      if (shift[bit_of]) begin
        turned = (turned << (ByteWidth << bit_of)) | (turned >> (Width - (ByteWidth << bit_of)));
      end
    end
  end

  // Behind them, and behind the DW that the data ends with.
  logic ends_data, is_full, is_over, is_whole, writes;
  sum_t sum, behind;
  assign ends_data = takes && 32'(need) <= 32'(offered);
  assign sum = sum_t'(fill) + sum_t'(taken);
  assign behind = ends_data ? (sum + sum_t'(Dword - 1)) & ~sum_t'(Dword - 1) : sum;
  assign is_full = behind >= sum_t'(Lanes);
  assign is_over = behind > sum_t'(Lanes);
  assign is_whole = (closes || (ends_data && tail_left == '0)) && !is_over;
  assign writes = begins || ((takes || closes) && (is_full || is_whole));

  // The beat that is not full, with what is appended, and what goes beyond it. Zeros are behind.
  logic [Width-1:0] merged, spill;
  for (genvar at = 0; at < Lanes; at++) begin : g_lane
    logic is_new, is_beyond;
    assign is_new = fill <= fill_t'(at) && sum > sum_t'(at);
    assign is_beyond = sum > sum_t'(at + Lanes);
    assign merged[ByteWidth*at+:ByteWidth] =
        is_new ? turned[ByteWidth*at+:ByteWidth] : hold[ByteWidth*at+:ByteWidth];
    assign spill[ByteWidth*at+:ByteWidth] = is_beyond ? turned[ByteWidth*at+:ByteWidth] : '0;
  end

  logic pushes, takes_move;
  assign pushes = is_whole || breaks;
  assign move_ready = swallows || (!has_move && !drains);
  assign takes_move = move_valid && move_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      has_move <= 1'b0;
      building <= 1'b0;
      mid <= 1'b0;
      drains <= 1'b0;
      swallows <= 1'b0;
      written <= '0;
    end else begin
      has_move <= (takes_move && !swallows) || (has_move && !breaks && !(is_whole && ends_move));
      building <= begins || (building && !pushes);
      if (takes) mid <= is_short;
      drains   <= drains ? !(in_valid && in_ends) : breaks && !in_ends;
      swallows <= swallows ? !(move_valid && move_last) : breaks && !is_last;
      written  <= breaks ? begun_at : written + count_t'(writes);
    end
    if (takes) lane <= from + lane_t'(taken);
    if (takes_move) begin
      is_last <= move_last;
      packet_type <= move_primitive;
      traffic_class <= move_traffic_class;
      magic <= move_magic;
      source <= move_source;
      destination <= move_destination;
      wants_event <= move_wants_event;
      tail_bytes <= move_tail_bytes;
      tail <= move_tail;
      route <= move_route;
      operation <= move_operation;
      address <= move_address;
      left <= move_bytes;
    end
    if (begins) begin
      address <= address + AddressWidth'(piece);
      left <= left - bytes_t'(piece);
      ends_move <= piece_ends_move;
      ends_operation <= piece_ends;
      need <= piece;
      tail_left <= piece_ends ? tail_bytes : '0;
      // A packet without bytes has a DW of zeros.
      fill <= (piece == '0) ? fill_t'(Dword) : fill_t'(address[DwordWidth-1:0]);
      hold <= '0;
      begun_at <= written;
    end
    if (takes || closes) begin
      fill <= fill_t'(is_full ? behind - sum_t'(Lanes) : behind);
      hold <= is_full ? spill : merged;
    end
    if (takes) need <= need - need_t'(taken);
    if (closes) tail_left <= '0;
    if (pushes) begin
      end_of[newest] <= written + count_t'(1);
      to_of[newest] <= lane_t'(behind - sum_t'(1));
      route_of[newest] <= route;
      operation_of[newest] <= operation;
      ends[newest] <= ends_operation || breaks;
      failed[newest] <= breaks;
    end
  end

  // ---- The oldest packet leaves. The last one of an operation begins if there is a place for the
  // report: then no packet stops on its way.

  logic begun, is_due, out_ends, accepts, may, moves, skips, is_end, gone, reported;
  logic [OperationWidth-1:0] out_operation;
  assign reported = sent_valid && sent_ready;
  assign accepts = !out_valid || out_ready;
  assign may = packets != '0 && accepts && (begun || !ends[oldest] || !is_due || reported);
  assign moves = may && !failed[oldest];
  assign skips = may && failed[oldest];
  assign is_end = read + count_t'(1) == end_of[oldest];
  assign gone = skips || (moves && is_end);

  always_ff @(posedge clk) begin
    if (rst) begin
      oldest <= '0;
      packets <= '0;
      read <= '0;
      begun <= 1'b0;
      is_due <= 1'b0;
      out_valid <= 1'b0;
      out_ends <= 1'b0;
      sent_valid <= 1'b0;
    end else begin
      oldest <= oldest + slot_t'(gone);
      packets <= packets + (SlotWidth + 1)'(pushes) - (SlotWidth + 1)'(gone);
      read <= read + count_t'(moves);
      if (moves) begun <= !is_end;
      is_due <= (may && ends[oldest]) || (is_due && !reported);
      out_valid <= moves || (out_valid && !out_ready);
      if (accepts) out_ends <= moves && is_end && ends[oldest];
      sent_valid <= skips || (out_ready && out_ends) || (sent_valid && !sent_ready);
    end
    if (moves) begin
      out_last <= is_end;
      out_to <= is_end ? to_of[oldest] : '1;
      out_route <= route_of[oldest];
      out_operation <= operation_of[oldest];
    end
    if (skips || (out_ready && out_ends)) begin
      sent_failed <= skips;
      sent_operation <= skips ? operation_of[oldest] : out_operation;
    end
  end

`ifdef FORMAL
  logic [Beats-1:0][Width-1:0] f_words;
`endif

  // Beats of whole packets are read, and others are written.
  ram_1w1r #(
      .Width(Width),
      .Depth(Beats)
  ) u_beats (
      .clk,
      .write(writes),
      .write_address(written[PlaceWidth-1:0]),
      .write_data(begins ? header : merged),
      .read(moves),
      .read_address(read[PlaceWidth-1:0]),
`ifdef FORMAL
      .probe_words(f_words),
`endif
      .read_data(out_data)
  );

`ifdef PROVE_PACKER
  `include "packer_formal.svh"
`endif

endmodule
