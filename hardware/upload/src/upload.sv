// Writes PUT and NAP packets to host memory, and asks for their events (C-09, C-14, C-21, C-22,
// C-39): one packet at a time. Its key, its target, its slot and its record are looked at before
// anything of it is written.
//
// A header comes in cycle t, and the answers about its key and its target in t + 1. So the first
// beat of a PUT's data is taken in t + 2 and offered from t + 3 on, and one follows in every cycle.
// A NAP needs two cycles more, for its slot. Bytes leave on the lanes of their addresses. The event
// is offered in the cycle after the last beat was taken.
module upload #(
    // Bytes of a write, at most: a power of two. Writes end at its multiples.
    parameter int unsigned MaxPayload = 128,
    localparam int unsigned Width = 128,
    localparam int unsigned Lanes = Width / 8,
    localparam int unsigned LaneWidth = $clog2(Lanes),
    localparam int unsigned AddressWidth = 40,
    localparam int unsigned SizeWidth = 13,
    localparam int unsigned CpuWidth = 4,
    localparam int unsigned FunctionWidth = 3,
    localparam int unsigned PairWidth = FunctionWidth + 2,
    localparam int unsigned KeyWidth = 8,
    localparam int unsigned EventWidth = 256
) (
    input logic clk,
    input logic rst,

    // The own processor.
    input logic [CpuWidth-1:0] cpu,

    // A beat of a packet, with the lane of the last byte of its last one.
    input  logic                 in_valid,
    output logic                 in_ready,
    input  logic                 in_last,
    input  logic [LaneWidth-1:0] in_to,
    input  logic [    Width-1:0] in_data,

    // Does its key fit, and does its target or its slot lie in the window? `key_window` answers in
    // the next cycle.
    output logic                     packet_valid,
    output logic [    PairWidth-1:0] packet_pair,
    output logic [     KeyWidth-1:0] packet_key,
    input  logic                     packet_fits,
    output logic                     target_valid,
    output logic [FunctionWidth-1:0] target_function,
    output logic [ AddressWidth-1:0] target_address,
    output logic [    SizeWidth-1:0] target_length,
    input  logic                     target_fits,

    // A NAP takes a slot of `slot_cache`, where it stands from the next cycle on. It is aligned.
    output logic                    take_valid,
    input  logic                    take_ready,
    output logic [   PairWidth-1:0] take_pair,
    input  logic                    lacks_list,
    input  logic [AddressWidth-1:0] slot,

    // An event for `event_ring`, without its phase. `lacks_` is of the ring, whether one is offered
    // or not.
    output logic                  event_valid,
    input  logic                  event_ready,
    output logic [   PairWidth:0] event_ring,
    output logic [EventWidth-2:0] event_record,
    input  logic                  lacks_ring,
    input  logic                  lacks_place,

    // A beat of a write, with its function, the address of its first byte and all of its bytes.
    output logic                     out_valid,
    input  logic                     out_ready,
    output logic                     out_last,
    output logic [FunctionWidth-1:0] out_function,
    output logic [ AddressWidth-1:0] out_address,
    output logic [    SizeWidth-1:0] out_bytes,
    output logic [        Width-1:0] out_data,

    // What happened in the cycle before. A packet was dropped: it is no PUT and no NAP or has a
    // wrong form; it has a wrong key or names another processor; its target lies outside of the
    // window. It was dropped, or its event, as its list or ring is closed. A slot was passed over
    // that lies outside of the window. A packet has another length than its header says.
    output logic unknown,
    output logic refused,
    output logic outside,
    output logic closed,
    output logic passed_over,
    output logic mismatched
);

  localparam int unsigned LimitWidth = $clog2(MaxPayload);
  localparam int unsigned SlotShift = 11;
  if (MaxPayload < Lanes || MaxPayload > 4096 || MaxPayload != 2 ** LimitWidth) begin : g_limit
    $error("upload: MaxPayload is a power of two from 16 to 4096");
  end

  typedef logic [SizeWidth-1:0] size_t;
  // Bytes of a beat.
  typedef logic [LaneWidth:0] fill_t;

  // ---- What is waited for: a header; slot and record; the slot that was taken; the answer about
  // it; beats of data, and the output; a beat of tail; the ring of the event; the end of a packet
  // that was dropped.

  typedef logic [2:0] state_t;
  localparam state_t Header = 3'd0;
  localparam state_t Room = 3'd1;
  localparam state_t Slot = 3'd2;
  localparam state_t Window = 3'd3;
  localparam state_t Data = 3'd4;
  localparam state_t Tail = 3'd5;
  localparam state_t Event = 3'd6;
  localparam state_t Drop = 3'd7;
  state_t state, next;

  // ---- The packet that is uploaded.

  // Key and target are answered for in this cycle; it names a target.
  logic is_new, names_target, is_nap, wants_event;
  logic [8:0] source;
  logic [PairWidth-1:0] pair;
  // Destination and bytes of its data, for the event. The next byte, and bytes from it on.
  logic [AddressWidth-1:0] target, place;
  size_t length, left;
  // Beats of data that lack; DWs in the last of them, and DWs by which they are turned.
  logic [8:0] beats;
  logic [1:0] rest, turn;
  // Its last beat has come; it has another length than its header says. A write begins.
  logic ended, wrong, begins;
  // The DWs of the beat before that may go on, turned. The tail, whose bytes behind the last one
  // say nothing.
  logic [2:0][31:0] hold;
  logic [Width-1:0] tail;
  fill_t tail_bytes;

  logic head_known, head_nap, head_wants_event;
  logic [7:0] head_magic;
  logic [8:0] head_source;
  logic [CpuWidth-1:0] head_cpu;
  logic [PairWidth-1:0] head_pair;
  logic [AddressWidth-1:0] head_address;
  size_t head_bytes;
  logic [10:0] head_dwords;
  upload_header u_header (
      .header(in_data),
      .is_known(head_known),
      .is_nap(head_nap),
      .wants_event(head_wants_event),
      .magic(head_magic),
      .source(head_source),
      .cpu(head_cpu),
      .pair(head_pair),
      .address(head_address),
      .bytes(head_bytes),
      .dwords(head_dwords)
  );

  // ---- The header, and what is asked about it. Every packet has a DW behind its header.

  logic is_ours, head_target;
  assign is_ours = state == Header && in_valid && head_known && !in_last && head_cpu == cpu;
  assign head_target = !head_nap && head_bytes != '0;
  assign packet_valid = is_ours;
  assign packet_pair = head_pair;
  assign packet_key = head_magic;

  logic asks_slot;
  logic [AddressWidth-1:0] slot_address;
  assign asks_slot = state == Slot;
  assign slot_address = {slot[AddressWidth-1:SlotShift], SlotShift'(0)};
  assign target_valid = asks_slot || (is_ours && head_target);
  assign target_function = asks_slot ? pair[PairWidth-1:2] : head_pair[PairWidth-1:2];
  assign target_address = asks_slot ? slot_address : head_address;
  assign target_length = asks_slot ? size_t'(2 ** SlotShift) : head_bytes;

  // ---- Slot and record: both at once, or the packet waits (C-21).

  logic is_refused, is_outside, is_closed, has_record;
  assign is_refused = is_new && !packet_fits;
  assign is_outside = is_new && names_target && !target_fits;
  assign has_record = !lacks_ring && !lacks_place;
  assign take_valid = state == Room && !is_refused && is_nap && has_record;
  assign take_pair = pair;
  assign is_closed = wants_event
      && (lacks_ring || (is_nap && !lacks_place && !take_ready && lacks_list));

  // ---- Data: a beat comes, unless it is the last one that goes on, and bytes of it leave.

  logic accepts, lacks, steps, takes, ends_data, is_end, is_done;
  fill_t room, piece;
  size_t write_room;
  assign accepts = !out_valid || out_ready;
  assign lacks = beats != '0;
  assign steps = state == Data && accepts && (!lacks || ended || in_valid);
  assign takes = steps && lacks && !ended;
  assign room = fill_t'(Lanes) - fill_t'(place[LaneWidth-1:0]);
  assign ends_data = left <= size_t'(room);
  assign piece = ends_data ? fill_t'(left) : room;
  assign write_room = size_t'(MaxPayload) - size_t'(place[LimitWidth-1:0]);
  // The write ends with this beat.
  assign is_end = ends_data || write_room == size_t'(room);
  assign is_done = ends_data && beats <= 9'd1;

  always_comb begin
    in_ready = state == Header || state == Tail || state == Drop;
    if (state == Data) in_ready = accepts && lacks && !ended;
  end

  // DW `at` goes to lane `at + turn` of its beat or of the next one; that of the tail, which is
  // behind `rest` DWs, to `at - rest`.
  logic [3:0][31:0] operand, turned, merged, tailed, held;
  assign operand = ended ? '0 : in_data;
  assign held = {32'b0, hold};
  always_comb begin
    // Numbers of DWs wrap, which an index that is a sum does not do everywhere.
    logic [1:0] from, tail_from;
    for (int unsigned at = 0; at < 4; at++) begin
      from = 2'(at) - turn;
      tail_from = 2'(at) + rest;
      turned[at] = operand[from];
      merged[at] = (at < 32'(turn)) ? held[at] : turned[at];
      tailed[at] = operand[tail_from];
    end
  end

  // Only bytes that are meant leave.
  logic [Width-1:0] masked;
  for (genvar at = 0; at < Lanes; at++) begin : g_lane
    logic is_meant;
    // Lanes before the first byte are far behind it.
    assign is_meant = fill_t'(at) - fill_t'(place[LaneWidth-1:0]) < piece;
    assign masked[8*at+:8] = is_meant ? merged[at/4][8*(at%4)+:8] : '0;
  end

  // ---- The end of the packet. Bytes of data in the last beat that has some, and bytes up to the
  // one that came last: both from the first lane on.

  fill_t data_fill, fill, all_bytes;
  logic is_short, is_long, is_wrong;
  assign data_fill = {rest == '0, rest, 2'b00};
  assign fill = fill_t'(in_to) + fill_t'(1);
  assign is_short = beats != 9'd1 || fill < data_fill;
  // In the beat behind the data.
  assign all_bytes = {1'b0, ~rest + 2'd1, 2'b00} + fill;
  assign is_long = all_bytes > fill_t'(Lanes);

  logic finishes;
  assign finishes = (steps && is_done && (ended || (takes && in_last)))
      || (state == Tail && in_valid && in_last);
  assign is_wrong = (state == Tail) ? is_long : wrong || (takes && is_short);

  // ---- The event.

  logic [Width-1:0] event_tail;
  for (genvar at = 0; at < Lanes; at++) begin : g_tail
    assign event_tail[8*at+:8] = (at < 32'(tail_bytes)) ? tail[8*at+:8] : '0;
  end
  assign event_valid = state == Event && !out_valid;
  assign event_ring = {pair, 1'b1};
  // Types are those of the packets, and the status is that of success.
  assign event_record = {
    5'b0,
    pair[1:0],
    8'b0,
    4'b0,
    is_nap ? 4'b0101 : 4'b0110,
    27'b0,
    length,
    7'b0,
    source,
    3'b0,
    tail_bytes,
    target,
    event_tail
  };

  // ---- What follows.

  always_comb begin
    next = state;
    case (state)
      Header:
      if (in_valid) begin
        if (is_ours) next = Room;
        else if (!in_last) next = Drop;
      end
      Room: begin
        if (is_refused || is_outside || is_closed) next = Drop;
        else if (!wants_event || (!is_nap && has_record)) next = Data;
        else if (take_valid && take_ready) next = Slot;
      end
      Slot: next = Window;
      Window: next = target_fits ? Data : Room;
      Data:
      if (steps && is_done) begin
        if (!finishes) next = Tail;
        else next = (wants_event && !is_wrong) ? Event : Header;
      end
      Tail:
      if (in_valid) begin
        if (!in_last) next = Drop;
        else next = (wants_event && !is_wrong) ? Event : Header;
      end
      Event: if (event_valid && (event_ready || lacks_ring)) next = Header;
      default: if (in_valid && in_last) next = Header;
    endcase
  end

  logic drops_header;
  assign drops_header = state == Header && in_valid && !is_ours;

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= Header;
      pair <= '0;
      out_valid <= 1'b0;
      unknown <= 1'b0;
      refused <= 1'b0;
      outside <= 1'b0;
      closed <= 1'b0;
      passed_over <= 1'b0;
      mismatched <= 1'b0;
    end else begin
      state <= next;
      if (state == Header && in_valid) pair <= head_pair;
      out_valid <= (steps && left != '0) || (out_valid && !out_ready);
      unknown <= drops_header && (in_last || !head_known);
      refused <= (drops_header && !in_last && head_known) || (state == Room && is_refused);
      outside <= state == Room && !is_refused && is_outside;
      closed <= (state == Room && !is_refused && !is_outside && is_closed)
          || (event_valid && !event_ready && lacks_ring);
      passed_over <= state == Window && !target_fits;
      mismatched <= (finishes && is_wrong) || (state == Tail && in_valid && !in_last);
    end

    is_new <= state == Header;
    if (state == Header) begin
      names_target <= head_target;
      is_nap <= head_nap;
      wants_event <= head_nap || head_wants_event;
      source <= head_source;
      target <= head_address;
      place <= head_address;
      length <= head_bytes;
      left <= head_bytes;
      beats <= 9'((head_dwords + 11'd3) >> 2);
      rest <= head_dwords[1:0];
      turn <= head_address[3:2];
      ended <= 1'b0;
      wrong <= 1'b0;
      begins <= 1'b1;
      tail_bytes <= '0;
    end
    if (state == Slot) begin
      target <= slot_address;
      place  <= slot_address;
    end

    if (steps) begin
      place <= {place[AddressWidth-1:LaneWidth] + (AddressWidth - LaneWidth)'(1), LaneWidth'(0)};
      left <= left - size_t'(piece);
      beats <= beats - 9'(lacks);
      hold <= turned[2:0];
      begins <= is_end;
      out_last <= is_end;
      out_data <= masked;
      if (begins) begin
        out_function <= pair[PairWidth-1:2];
        out_address <= place;
        out_bytes <= (left < write_room) ? left : write_room;
      end
    end
    if (takes) begin
      ended <= in_last;
      wrong <= in_last && is_short;
      // Of the last beat with data.
      tail <= tailed;
      tail_bytes <= (in_last ? fill : fill_t'(Lanes)) - data_fill;
    end
    if (state == Tail && in_valid) begin
      for (int unsigned at = 0; at < 4; at++) begin
        if (32'(tail_bytes) <= 4 * at) tail[32*at+:32] <= tailed[at];
      end
      tail_bytes <= all_bytes;
    end
  end

  // Slots are aligned.
  logic unused;
  assign unused = ^slot[SlotShift-1:0];

`ifdef PROVE_UPLOAD
  `include "upload_formal.svh"
`endif

endmodule
