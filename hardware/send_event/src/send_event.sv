// The sender of events (C-13, C-16, C-39): each function has places for operations that it has
// begun. Their events leave in the order in which they began, when the packers say that they are
// done. They share the port of `event_ring` with events of the upload module.
//
// An operation whose packer reports in cycle t, and which is the oldest of its function, is offered
// from t + 2 on, if no other function goes before. One event leaves in two cycles at most. One
// whose ring is full lets the next function go: no function can hold another one up (C-39).
module send_event #(
    // Powers of two, and at least 2.
    parameter int unsigned Functions = 8,
    // Places of each function.
    parameter int unsigned Depth = 16,
    parameter int unsigned Packers = 2,
    // Bits of the number of dropped events.
    parameter int unsigned DroppedWidth = 32,
    parameter int unsigned AddressWidth = 40,
    parameter int unsigned TailWidth = 128,
    localparam int unsigned FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1,
    localparam int unsigned IndexWidth = (Depth > 1) ? $clog2(Depth) : 1,
    localparam int unsigned PlaceWidth = FunctionWidth + IndexWidth,
    localparam int unsigned RoomWidth = IndexWidth + 1,
    // Two rings for each of 4 queue pairs of a function.
    localparam int unsigned RingWidth = FunctionWidth + 3,
    localparam int unsigned EventWidth = TailWidth + 128
) (
    input logic clk,
    input logic rst,

    // An operation begins, and gets a place.
    input  logic                     move_valid,
    output logic                     move_ready,
    output logic [   PlaceWidth-1:0] move_place,
    input  logic [FunctionWidth-1:0] move_function,
    input  logic [              1:0] move_pair,
    input  logic [              8:0] move_peer,
    input  logic [              3:0] move_primitive,
    input  logic [              4:0] move_tail_bytes,
    input  logic [    TailWidth-1:0] move_tail,
    input  logic [ AddressWidth-1:0] move_total,
    input  logic [ AddressWidth-1:0] move_descriptor,

    // By packer: an operation has left, or its data failed.
    input logic [Packers-1:0]                 sent_valid,
    input logic [Packers-1:0]                 sent_failed,
    input logic [Packers-1:0][PlaceWidth-1:0] sent_place,

    // A descriptor was refused.
    input  logic                     report_valid,
    output logic                     report_ready,
    input  logic [              2:0] report_status,
    input  logic [FunctionWidth-1:0] report_function,
    input  logic [              1:0] report_pair,
    input  logic [              8:0] report_peer,
    input  logic [              3:0] report_primitive,
    input  logic [ AddressWidth-1:0] report_address,

    // By function: free places.
    output logic [Functions-1:0][RoomWidth-1:0] room,

    // An event of the upload module. What its ring lacks does not depend on `upload_valid`.
    input  logic                  upload_valid,
    output logic                  upload_ready,
    input  logic [ RingWidth-1:0] upload_ring,
    input  logic [EventWidth-2:0] upload_record,
    output logic                  upload_lacks_ring,
    output logic                  upload_lacks_place,

    // An event for `event_ring`, without its phase.
    output logic                  event_valid,
    input  logic                  event_ready,
    output logic [ RingWidth-1:0] event_ring,
    output logic [EventWidth-2:0] event_record,
    input  logic                  lacks_ring,
    input  logic                  lacks_place,

    // An event was dropped in the cycle before, because its ring is closed; how many were since
    // reset.
    output logic                     dropped_valid,
    output logic [FunctionWidth-1:0] dropped_function,
    output logic [ DroppedWidth-1:0] dropped
);

  if (Functions != 2 ** FunctionWidth || Depth != 2 ** IndexWidth) begin : g_places
    $error("send_event: Functions and Depth are powers of two, and at least 2");
  end
  if (Packers < 1 || DroppedWidth < 1 || TailWidth < 1) begin : g_widths
    $error("send_event: Packers, DroppedWidth and TailWidth are at least 1");
  end
  if (AddressWidth < 1 || AddressWidth > 40) begin : g_address
    $error("send_event: AddressWidth is at least 1, and at most 40");
  end

  typedef logic [FunctionWidth-1:0] function_t;
  typedef logic [RoomWidth-1:0] count_t;
  typedef logic [IndexWidth-1:0] index_t;

  // What is kept of an operation; its function is that of its place.
  localparam int unsigned WordWidth = 3 + 2 + 9 + 4 + 5 + TailWidth + 2 * AddressWidth;
  typedef logic [WordWidth-1:0] word_t;
  localparam logic [2:0] Success = 3'd0, SourceFault = 3'd3;

  // By function: operations that began and that left, with one bit more than an index has.
  logic [Functions-1:0][RoomWidth-1:0] began, left;
  // By place: what is there is done, and its data failed. They say nothing of a free place.
  logic [2**PlaceWidth-1:0] is_done, failed;

  // ---- Operations begin, and descriptors are refused. Both come in by one port of the memory.

  logic begins, refuses;
  function_t enters_function;
  index_t enters_index;
  word_t enters_word;
  assign move_ready = room[move_function] != '0;
  assign move_place = {move_function, index_t'(began[move_function])};
  assign begins = move_valid && move_ready;
  assign report_ready = room[report_function] != '0 && !begins;
  assign refuses = report_valid && report_ready;
  assign enters_function = begins ? move_function : report_function;
  assign enters_index = index_t'(began[enters_function]);
  always_comb begin
    if (begins) begin
      enters_word = {
        Success,
        move_pair,
        move_peer,
        move_primitive,
        move_tail_bytes,
        move_tail,
        move_total,
        move_descriptor
      };
    end else begin
      enters_word = {
        report_status,
        report_pair,
        report_peer,
        report_primitive,
        5'd0,
        TailWidth'(0),
        AddressWidth'(0),
        report_address
      };
    end
  end

  // ---- The next function whose oldest operation is done. It is offered in the next cycle.

  logic offers, chooses, some_done;
  function_t offered, chosen;
  logic [Functions-1:0] waits;
  for (genvar each = 0; each < Functions; each++) begin : g_waits
    logic [PlaceWidth-1:0] oldest;
    assign oldest = {function_t'(each), index_t'(left[each])};
    assign room[each] = count_t'(Depth) - (began[each] - left[each]);
    assign waits[each] = began[each] != left[each] && is_done[oldest];
  end

`ifdef FORMAL
  logic [Functions-1:0] f_from_pointer;
  logic [2**PlaceWidth-1:0][WordWidth-1:0] f_words;
`endif

  rr_arb #(
      .Requests(Functions)
  ) u_rr_arb (
      .clk,
      .rst,
      .request(waits),
      .advance(chooses),
      .behind(chosen),
`ifdef FORMAL
      .probe_from_pointer(f_from_pointer),
`endif
      .valid(some_done),
      .index(chosen)
  );
  assign chooses = some_done && !offers;

  word_t word;
  ram_1w1r #(
      .Width(WordWidth),
      .Depth(2 ** PlaceWidth)
  ) u_words (
      .clk,
      .write(begins || refuses),
      .write_address({enters_function, enters_index}),
      .write_data(enters_word),
      .read(chooses),
      .read_address({chosen, index_t'(left[chosen])}),
`ifdef FORMAL
      .probe_words(f_words),
`endif
      .read_data(word)
  );

  // ---- The port of `event_ring`. Own events and those of the upload module take turns.

  // An event of this block has entered since the last one of the upload module.
  logic yields;
  logic own, ends, leaves;
  assign own = offers && !(yields && upload_valid);
  assign ends = event_ready || lacks_ring || lacks_place;
  // It has entered, or it never will.
  assign leaves = own && (event_ready || lacks_ring);

  logic own_failed;
  logic [2:0] status;
  logic [1:0] pair;
  logic [8:0] peer;
  logic [3:0] kind;
  logic [4:0] tail_bytes;
  logic [TailWidth-1:0] tail;
  logic [AddressWidth-1:0] total, address, length;
  assign {status, pair, peer, kind, tail_bytes, tail, total, address} = word;
  assign own_failed = failed[{offered, index_t'(left[offered])}];
  // Nobody knows how far an operation came whose data failed.
  assign length = own_failed ? '0 : total;

  always_comb begin
    if (own) begin
      event_valid = 1'b1;
      event_ring = {offered, pair, 1'b0};
      event_record = {
        5'd0,
        pair,
        8'(own_failed ? SourceFault : status),
        4'd0,
        kind,
        40'(length),
        7'd0,
        peer,
        3'd0,
        tail_bytes,
        40'(address),
        tail
      };
    end else begin
      event_valid  = upload_valid;
      event_ring   = upload_ring;
      event_record = upload_record;
    end
  end
  assign upload_ready = !own && event_ready;
  assign upload_lacks_ring = !own && lacks_ring;
  // While an own event stands before it, an event of the upload module waits.
  assign upload_lacks_place = own || lacks_place;

  always_ff @(posedge clk) begin
    if (rst) begin
      began <= '0;
      left <= '0;
      offers <= 1'b0;
      yields <= 1'b0;
      dropped_valid <= 1'b0;
      dropped <= '0;
    end else begin
      if (begins || refuses) began[enters_function] <= began[enters_function] + count_t'(1);
      if (leaves) left[offered] <= left[offered] + count_t'(1);
      offers <= chooses || (offers && !(own && ends));
      if (own && event_ready) yields <= 1'b1;
      else if (!own && upload_valid && ends) yields <= 1'b0;
      dropped_valid <= leaves && !event_ready;
      if (leaves && !event_ready) dropped <= dropped + DroppedWidth'(1);
    end
    if (chooses) offered <= chosen;
    dropped_function <= offered;
    for (int unsigned packer = 0; packer < Packers; packer++) begin
      if (sent_valid[packer]) begin
        is_done[sent_place[packer]] <= 1'b1;
        failed[sent_place[packer]]  <= sent_failed[packer];
      end
    end
    // What is said of a free place counts for nothing.
    if (begins || refuses) begin
      is_done[{enters_function, enters_index}] <= refuses;
      failed[{enters_function, enters_index}]  <= 1'b0;
    end
  end

`ifdef PROVE_SEND_EVENT
  `include "send_event_formal.svh"
`endif

endmodule
