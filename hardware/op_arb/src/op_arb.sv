// The arbiter of operations (C-13, C-27, C-34; Fig. 11): two blocks that take descriptors apart
// share a packer. The first one has descriptors from here, the second one GETs from elsewhere.
//
// An operation begins when its first move is offered, and then has a place for its event, if it is
// from here. Each extract has one operation under way at most. Moves leave in the order in which
// operations began, and so do reads and immediate data. So the packer gets both in one order. GETs
// from here go past that to a packer of their own.
module op_arb #(
    parameter int unsigned FunctionWidth = 3,
    parameter int unsigned AddressWidth = 40,
    // Bits of a count of bytes: of an operation, and of a read.
    parameter int unsigned BytesWidth = 40,
    parameter int unsigned SizeWidth = 13,
    // Bits of a beat, and of a lane.
    parameter int unsigned Width = 128,
    parameter int unsigned LaneWidth = 4,
    // Bits of a place for an event.
    parameter int unsigned PlaceWidth = 7,
    // Bits of what else a move says.
    parameter int unsigned SaysWidth = 256
) (
    input logic clk,
    input logic rst,

    // By descriptor extract: a move. That of the first one may be a GET's.
    input  logic [1:0]                 move_valid,
    output logic [1:0]                 move_ready,
    input  logic [1:0]                 move_last,
    input  logic                       move_get,
    input  logic [1:0][BytesWidth-1:0] move_total,
    input  logic [1:0][ SaysWidth-1:0] move_says,

    // By descriptor extract: a read, and its function.
    input  logic [1:0]                    read_valid,
    output logic [1:0]                    read_ready,
    input  logic [1:0]                    read_ends,
    input  logic [1:0][FunctionWidth-1:0] read_function,
    input  logic [1:0][ AddressWidth-1:0] read_address,
    input  logic [1:0][    SizeWidth-1:0] read_bytes,

    // By descriptor extract: a beat. That of the first one may be a GET's.
    input  logic [1:0]                data_valid,
    output logic [1:0]                data_ready,
    input  logic [1:0]                data_ends,
    input  logic                      data_get,
    input  logic [1:0][LaneWidth-1:0] data_to,
    input  logic [1:0][    Width-1:0] data,

    // The place for the event of the first one's operation.
    output logic                  place_valid,
    input  logic                  place_ready,
    input  logic [PlaceWidth-1:0] place,

    // A move for the packer.
    output logic                 pack_valid,
    input  logic                 pack_ready,
    output logic                 pack_last,
    output logic [ PlaceWidth:0] pack_operation,
    output logic [SaysWidth-1:0] pack_says,

    // A read, and its function.
    output logic                     ask_valid,
    input  logic                     ask_ready,
    output logic                     ask_ends,
    output logic [FunctionWidth-1:0] ask_function,
    output logic [ AddressWidth-1:0] ask_address,
    output logic [    SizeWidth-1:0] ask_bytes,

    // A beat of immediate data for the packer.
    output logic                 put_valid,
    input  logic                 put_ready,
    output logic                 put_ends,
    output logic [LaneWidth-1:0] put_to,
    output logic [    Width-1:0] put_data,

    // A move and a beat of the first one are offered to the packer of GETs.
    output logic get_valid,
    input  logic get_ready,
    output logic get_data_valid,
    input  logic get_data_ready
);

  if (AddressWidth < 1 || BytesWidth < 1 || SizeWidth < 1 || Width < 1) begin : g_parameters
    $error("op_arb: AddressWidth, BytesWidth, SizeWidth and Width are at least 1");
  end
  if (LaneWidth < 1 || PlaceWidth < 1 || SaysWidth < 1 || FunctionWidth < 1) begin : g_more
    $error("op_arb: LaneWidth, PlaceWidth, SaysWidth and FunctionWidth are at least 1");
  end

  // By descriptor extract: its operation has begun, all moves of it have left, and all its data.
  logic [1:0] begun, moved, fetched;
  // Whose operation began first. If none has begun, whose was the first one last.
  logic first;
  logic [PlaceWidth-1:0] held_place;

  // Whose moves leave now, and whose data.
  logic [1:0] moves, fetches, waits_move, waits_data;
  logic pack, from;
  function automatic logic [1:0] older(input logic [1:0] waits, input logic is_second);
    older[0] = waits[0] && !(is_second && waits[1]);
    older[1] = waits[1] && !(!is_second && waits[0]);
  endfunction
  assign waits_move = begun & ~moved;
  assign waits_data = begun & ~fetched;
  assign moves = older(waits_move, first);
  assign fetches = older(waits_data, first);
  assign pack = moves[1];
  assign from = fetches[1];

  logic [1:0] gets, get_beats, has_place, enters;
  logic get_moves;
  assign gets = {1'b0, move_get};
  assign get_beats = {1'b0, data_get};
  assign has_place = {1'b1, place_ready};
  assign enters = move_valid & ~gets & ~begun & has_place;
  assign get_moves = move_valid[0] && move_get;

  assign pack_valid = (moves & move_valid & ~gets) != '0;
  assign pack_last = move_last[pack];
  assign pack_operation = pack ? {1'b1, {PlaceWidth{1'b0}}} : {1'b0, held_place};
  assign pack_says = move_says[pack];
  assign ask_valid = (fetches & read_valid) != '0;
  assign ask_ends = read_ends[from];
  assign ask_function = read_function[from];
  assign ask_address = read_address[from];
  assign ask_bytes = read_bytes[from];
  assign put_valid = (fetches & data_valid & ~get_beats) != '0;
  assign put_ends = data_ends[from];
  assign put_to = data_to[from];
  assign put_data = data[from];
  assign get_valid = get_moves && place_ready;
  assign get_data_valid = data_valid[0] && data_get;
  assign place_valid = enters[0] || (get_moves && get_ready);

  always_comb begin
    for (int unsigned each = 0; each < 2; each++) begin
      move_ready[each] = gets[each] ? get_ready && place_ready : moves[each] && pack_ready;
      read_ready[each] = fetches[each] && ask_ready;
      data_ready[each] = get_beats[each] ? get_data_ready : fetches[each] && put_ready;
    end
  end

  // Which operation has all of its moves taken in this cycle, and all of its data. One that has
  // both leaves.
  logic [1:0] ends_moves, ends_data, all_moved, all_fetched, stays;
  assign ends_moves = (pack_valid && pack_ready && pack_last) ? moves : '0;
  assign ends_data = ((ask_valid && ask_ready && ask_ends) || (put_valid && put_ready && put_ends))
      ? fetches : '0;
  assign all_moved = moved | ends_moves;
  assign all_fetched = fetched | ends_data;
  assign stays = begun & ~(all_moved & all_fetched);

  always_ff @(posedge clk) begin
    if (rst) begin
      begun <= '0;
      first <= 1'b1;
    end else begin
      begun <= stays | enters;
      if (stays[0] != stays[1]) first <= stays[1];
      else if (stays == '0 && enters == 2'b11) first <= !first;
      else if (stays == '0 && enters != '0) first <= enters[1];
    end
    for (int unsigned each = 0; each < 2; each++) begin
      moved[each]   <= enters[each] ? 1'b0 : all_moved[each];
      fetched[each] <= enters[each] ? move_total[each] == '0 : all_fetched[each];
    end
    if (enters[0]) held_place <= place;
  end

`ifdef PROVE_OP_ARB
  `include "op_arb_formal.svh"
`endif

endmodule
