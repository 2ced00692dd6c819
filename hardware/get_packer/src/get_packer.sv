// Makes a network packet of each GET (C-25, C-27, C-34): a header, and the descriptor as payload.
//
// Moves come in the order of their operations, and the beats of descriptors as one stream. Both
// have room for `Gets` of the longest GETs. So one that waits for the crossbar stops nothing behind
// it. A packet leaves when it is whole: its header is offered in the cycle after its last beat has
// come. Then one beat leaves in every cycle, as far as the receiver takes it.
module get_packer #(
    // Places for GETs, and beats of a descriptor, at most.
    parameter int unsigned Gets = 2,
    parameter int unsigned GetBeats = 256,
    parameter int unsigned RouteWidth = 8,
    parameter int unsigned OperationWidth = 8,
    localparam int unsigned Width = 128
) (
    input logic clk,
    input logic rst,

    // The move of a GET: what its header says, its way and its operation.
    input  logic                      move_valid,
    output logic                      move_ready,
    input  logic [               2:0] move_traffic_class,
    input  logic [               7:0] move_magic,
    input  logic [               8:0] move_source,
    input  logic [               8:0] move_destination,
    input  logic [              12:0] move_bytes,
    input  logic [    RouteWidth-1:0] move_route,
    input  logic [OperationWidth-1:0] move_operation,

    // A beat of a descriptor. `in_ends`: the last one of it.
    input  logic             in_valid,
    output logic             in_ready,
    input  logic             in_ends,
    input  logic [Width-1:0] in_data,

    // The last beat of a packet left in the cycle before: its place is free.
    output logic credit,

    // The beats of packets.
    output logic                  out_valid,
    input  logic                  out_ready,
    output logic                  out_last,
    output logic [RouteWidth-1:0] out_route,
    output logic [     Width-1:0] out_data,

    // An operation has left: its packet has.
    output logic                      sent_valid,
    input  logic                      sent_ready,
    output logic [OperationWidth-1:0] sent_operation
);

  localparam int unsigned Beats = Gets * GetBeats;
  localparam int unsigned BeatWidth = Width + 1;
  localparam int unsigned CountWidth = ((Beats > 1) ? $clog2(Beats) : 1) + 1;
  localparam int unsigned MoveCountWidth = ((Gets > 1) ? $clog2(Gets) : 1) + 1;
  if (Gets < 1 || GetBeats < 1 || GetBeats > 256) begin : g_sizes
    $error("get_packer: Gets is at least 1, and GetBeats 1 to 256");
  end

  localparam logic [3:0] Get = 4'b0111;

  // What is kept of a move: the fields of its header, its way and its operation.
  localparam int unsigned MoveWidth = 42 + RouteWidth + OperationWidth;
  typedef logic [MoveWidth-1:0] move_t;

  // ---- Moves and beats that have not left. The oldest of each stands at its output.

  move_t coming, front;
  logic has_move, is_last, gone;
  logic [2:0] traffic_class;
  logic [7:0] magic;
  logic [8:0] source, destination;
  logic [12:0] bytes;
  logic [OperationWidth-1:0] operation;
  assign coming = {
    move_traffic_class,
    move_magic,
    move_source,
    move_destination,
    move_bytes,
    move_route,
    move_operation
  };
  assign {traffic_class, magic, source, destination, bytes, out_route, operation} = front;

`ifdef FORMAL
  localparam int unsigned MovePlaces = 2 ** (MoveCountWidth - 1);
  localparam int unsigned BeatPlaces = 2 ** (CountWidth - 1);
  logic [MovePlaces-1:0][MoveWidth-1:0] f_moves;
  logic [BeatPlaces-1:0][BeatWidth-1:0] f_beats;
  logic [MoveCountWidth-1:0] f_moves_written, f_moves_read;
  logic [CountWidth-1:0] f_beats_written, f_beats_read;
`endif

  logic [MoveCountWidth-1:0] moves;
  stream_fifo #(
      .Width(MoveWidth),
      .Depth(Gets)
  ) u_moves (
      .clk,
      .rst,
      .in_valid(move_valid),
      .in_ready(move_ready),
      .in_data(coming),
      .out_valid(has_move),
      .out_ready(gone),
      .out_data(front),
`ifdef FORMAL
      .probe_words(f_moves),
      .probe_written(f_moves_written),
      .probe_read(f_moves_read),
`endif
      .count(moves)
  );

  logic has_beat, begun, beat_leaves;
  logic [Width-1:0] beat;
  logic [CountWidth-1:0] beats;
  stream_fifo #(
      .Width(BeatWidth),
      .Depth(Beats)
  ) u_beats (
      .clk,
      .rst,
      .in_valid,
      .in_ready,
      .in_data({in_ends, in_data}),
      .out_valid(has_beat),
      .out_ready(beat_leaves),
      .out_data({is_last, beat}),
`ifdef FORMAL
      .probe_words(f_beats),
      .probe_written(f_beats_written),
      .probe_read(f_beats_read),
`endif
      .count(beats)
  );

  // ---- The oldest packet leaves: its header, and then its beats, all of which are there. It
  // begins if no report waits: then it does not stop on its way.

  logic [Width-1:0] header;
  packer_header u_header (
      .packet_type(Get),
      .traffic_class,
      .magic,
      .source,
      .destination,
      .wants_event(1'b0),
      .address('0),
      .bytes,
      .header
  );

  // Descriptors that have come whole, of packets that have not left.
  logic [CountWidth-1:0] whole;
  logic leaves;
  assign out_valid = begun || (has_move && whole != '0 && !sent_valid);
  assign out_last = begun && is_last;
  assign out_data = begun ? beat : header;
  assign leaves = out_valid && out_ready;
  assign beat_leaves = leaves && begun;
  assign gone = leaves && out_last;

  always_ff @(posedge clk) begin
    if (rst) begin
      whole <= '0;
      begun <= 1'b0;
      credit <= 1'b0;
      sent_valid <= 1'b0;
    end else begin
      whole <= whole + CountWidth'(in_valid && in_ready && in_ends) - CountWidth'(gone);
      if (leaves) begun <= !out_last;
      credit <= gone;
      sent_valid <= gone || (sent_valid && !sent_ready);
    end
    if (gone) sent_operation <= operation;
  end

  // A packet that has begun has all of its beats.
  logic unused;
  assign unused = ^{moves, beats, has_beat};

`ifdef PROVE_GET_PACKER
  `include "get_packer_formal.svh"
`endif

endmodule
