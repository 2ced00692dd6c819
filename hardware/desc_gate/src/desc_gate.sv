// Lets doorbells and descriptors from here go on when there are places for what becomes of them
// (C-13, C-25, C-27, C-39).
//
// Each doorbell has one event: of its operation, or of its refusal. It claims a place for that
// before it is taken, and gives the claim back when the event has its place. A GET claims a place
// of its packer before its first word goes on. That one is free again when the GET has left, or
// when it is clear that it was refused: when all that was let in has a place for its event.
module desc_gate #(
    parameter  int unsigned       Functions     = 8,
    // Places for events of a function, at most.
    parameter  int unsigned       Depth         = 16,
    // Places of the packer of GETs, and the code of a GET.
    parameter  int unsigned       Gets          = 2,
    parameter  logic        [3:0] Get           = 4'd7,
    localparam int unsigned       FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1,
    localparam int unsigned       RoomWidth     = $clog2(Depth + 1)
) (
    input logic clk,
    input logic rst,

    // By function: doorbells wait, and wait and may go on. One is taken.
    input  logic [    Functions-1:0] waits,
    output logic [    Functions-1:0] may_ring,
    input  logic                     take,
    input  logic [FunctionWidth-1:0] take_function,

    // By function: free places for events.
    input logic [Functions-1:0][RoomWidth-1:0] room,

    // An operation gets such a place, and may be a GET; a report does; a GET has left its packer.
    input logic                     move_valid,
    input logic                     move_get,
    input logic [FunctionWidth-1:0] move_function,
    input logic                     report_valid,
    input logic [FunctionWidth-1:0] report_function,
    input logic                     credit,

    // A word of a descriptor comes, and goes on. It is the last one, or has no data; the first one
    // says the primitive.
    input  logic       word_valid,
    output logic       word_ready,
    input  logic       word_last,
    input  logic       word_void,
    input  logic [3:0] word_primitive,
    output logic       to_valid,
    input  logic       to_ready
);

  if (Functions < 1 || Depth < 1 || Gets < 1) begin : g_parameters
    $error("desc_gate: Functions, Depth and Gets are at least 1");
  end

  // By function: doorbells whose event has no place yet.
  logic [Functions-1:0][RoomWidth-1:0] claims;
  for (genvar each = 0; each < Functions; each++) begin : g_claims
    logic takes, moves, reports;
    assign takes = take && take_function == FunctionWidth'(each);
    assign moves = move_valid && move_function == FunctionWidth'(each);
    assign reports = report_valid && report_function == FunctionWidth'(each);
    assign may_ring[each] = waits[each] && room[each] > claims[each];
    always_ff @(posedge clk) begin
      if (rst) claims[each] <= '0;
      else
        claims[each] <= claims[each] + RoomWidth'(takes) - RoomWidth'(moves) - RoomWidth'(reports);
    end
  end

  // Descriptors that were let in and have no place for their event yet; GETs among them that may
  // still reach their packer, and those that have and have not left.
  localparam int unsigned OpenWidth = $clog2(Functions * Depth + 1);
  localparam int unsigned GetWidth = $clog2(Gets + 1);
  logic [OpenWidth-1:0] open, open_left;
  logic [GetWidth-1:0] open_gets, held_gets, open_gets_left;
  logic mid, is_get, may_go, enters;

  assign is_get = !mid && !word_void && word_primitive == Get;
  assign may_go = !is_get || 32'(open_gets) + 32'(held_gets) < Gets;
  assign word_ready = may_go && to_ready;
  assign to_valid = may_go && word_valid;
  assign enters = word_valid && word_ready;

  assign open_left = open - OpenWidth'(move_valid) - OpenWidth'(report_valid);
  assign open_gets_left = (open_left == '0) ? '0 : open_gets - GetWidth'(move_valid && move_get);

  always_ff @(posedge clk) begin
    if (rst) begin
      open <= '0;
      open_gets <= '0;
      held_gets <= '0;
      mid <= 1'b0;
    end else begin
      open <= open_left + OpenWidth'(enters && !mid);
      open_gets <= open_gets_left + GetWidth'(enters && is_get);
      held_gets <= held_gets + GetWidth'(move_valid && move_get) - GetWidth'(credit);
      if (enters) mid <= !word_last;
    end
  end

`ifdef PROVE_DESC_GATE
  `include "desc_gate_formal.svh"
`endif

endmodule
