// What is proved of `get_packer`, without bound, by k-induction.
//
// A shadow sees the ports only. It counts moves, beats and whole descriptors that have not left,
// and follows one move and one beat, both chosen freely. Nothing is assumed: moves and beats may
// come at any time, of any number, and receivers may stall.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyseq *)logic pick_move, pick_beat;

wire f_moves_in = move_valid && move_ready;
wire f_beats_in = in_valid && in_ready;
wire f_leaves = out_valid && out_ready;
wire f_gone = f_leaves && out_last;

// ---- Moves and beats that have not left, descriptors among these that have come whole, and the
// packet that is leaving. A header waits for a cycle behind its move or its last beat.

logic [MoveCountWidth-1:0] g_moves;
logic [CountWidth-1:0] g_beats, g_whole;
// The header of the packet has left; all moves but the newest one have waited for a cycle.
logic g_begun, g_new_move, g_gone;
// A report waits.
logic g_waits;
logic [OperationWidth-1:0] g_operation;

// ---- The followed move, and moves before it; the followed beat, and beats before it.

logic g_follows_move, g_follows_beat;
move_t g_move;
logic [MoveCountWidth-1:0] g_moves_before;
logic [Width-1:0] g_beat;
logic g_ends;
logic [CountWidth-1:0] g_beats_before;

wire f_move_is_next = g_follows_move && g_moves_before == '0;
wire f_beat_is_next = g_follows_beat && g_beats_before == '0;

// What its header must be, and its way and its operation.
logic [Width-1:0] f_header;
logic [2:0] f_traffic_class;
logic [7:0] f_magic;
logic [8:0] f_source, f_destination;
logic [12:0] f_bytes;
logic [RouteWidth-1:0] f_route;
logic [OperationWidth-1:0] f_operation;
assign {f_traffic_class, f_magic, f_source, f_destination, f_bytes, f_route, f_operation} = g_move;
packer_header u_f_header (
    .packet_type(4'b0111),
    .traffic_class(f_traffic_class),
    .magic(f_magic),
    .source(f_source),
    .destination(f_destination),
    .wants_event(1'b0),
    .address('0),
    .bytes(f_bytes),
    .header(f_header)
);

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_moves <= g_moves + MoveCountWidth'(f_moves_in) - MoveCountWidth'(f_gone);
  g_beats <= g_beats + CountWidth'(f_beats_in) - CountWidth'(f_leaves && g_begun);
  g_whole <= g_whole + CountWidth'(f_beats_in && in_ends) - CountWidth'(f_gone);
  if (f_leaves) g_begun <= !out_last;
  g_new_move <= f_moves_in;
  g_gone <= f_gone;
  g_waits <= f_gone || (g_waits && !sent_ready);
  if (f_move_is_next && f_gone) begin
    g_operation <= f_operation;
    g_follows_move <= 1'b0;
  end else if (g_follows_move) begin
    g_moves_before <= g_moves_before - MoveCountWidth'(f_gone);
  end
  if (f_beat_is_next && f_leaves && g_begun) g_follows_beat <= 1'b0;
  else if (g_follows_beat) g_beats_before <= g_beats_before - CountWidth'(f_leaves && g_begun);
  if (f_moves_in && pick_move && !g_follows_move) begin
    g_follows_move <= 1'b1;
    g_move <= {
      move_traffic_class,
      move_magic,
      move_source,
      move_destination,
      move_bytes,
      move_route,
      move_operation
    };
    g_moves_before <= g_moves - MoveCountWidth'(f_gone);
  end
  if (f_beats_in && pick_beat && !g_follows_beat) begin
    g_follows_beat <= 1'b1;
    {g_ends, g_beat} <= {in_ends, in_data};
    g_beats_before <= g_beats - CountWidth'(f_leaves && g_begun);
  end
  if (rst) begin
    {g_moves, g_beats, g_whole} <= '0;
    {g_begun, g_new_move, g_gone, g_waits, g_follows_move, g_follows_beat} <= '0;
  end
end

// ---- For induction: how many beats in the memory end a descriptor.

logic [CountWidth-1:0] f_ends, f_number;
always_comb begin
  f_ends   = '0;
  f_number = '0;
  for (int unsigned at = 0; at < Beats; at++) begin
    f_number = f_beats_read + CountWidth'(at);
    if (at < 32'(beats) && f_beats[f_number[CountWidth-2:0]][Width]) f_ends = f_ends + 1'b1;
  end
end
wire [MoveCountWidth-1:0] f_move_number = f_moves_read + g_moves_before;
wire [CountWidth-1:0] f_beat_number = f_beats_read + g_beats_before;

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // Moves and beats are taken exactly as there are places: so `Gets` GETs never wait.
    p_move_ready : assert (move_ready == (32'(g_moves) < Gets));
    p_in_ready : assert (in_ready == (32'(g_beats) < Beats));

    // A header is offered exactly if its move and all beats of its descriptor are there, and no
    // report waits. Then beats are, until the descriptor's last one has left.
    if (!g_begun)
      p_offered :
      assert (out_valid == (g_moves != MoveCountWidth'(g_new_move) && g_whole != '0 && !g_waits));
    if (!g_begun && out_valid) p_first : assert (!out_last);
    if (g_begun) p_whole : assert (out_valid && g_beats != '0 && g_moves != '0);
    if (!$past(rst)) begin
      if ($past(out_valid && !out_ready)) begin
        p_stays :
        assert (out_valid && out_last == $past(out_last) && out_route == $past(out_route)
            && out_data == $past(out_data));
      end
    end

    // What leaves is what came, in order: a header for each move, by its way, and each beat.
    if (f_move_is_next && out_valid) begin
      if (!g_begun) p_header : assert (out_data == f_header);
      p_route : assert (out_route == f_route);
    end
    if (f_beat_is_next && g_begun) begin
      // shows: C-25
      p_same : assert (out_data == g_beat);
      p_last : assert (out_last == g_ends);
    end

    // A place is told free once, when its packet has left, and so is its operation.
    p_credit : assert (credit == g_gone);
    p_sent : assert (sent_valid == g_waits);
    if (!$past(rst)) begin
      if ($past(f_move_is_next && f_gone)) p_names : assert (sent_operation == g_operation);
      if ($past(sent_valid && !sent_ready))
        p_kept : assert (sent_operation == $past(sent_operation));
    end

    // So that induction needs no bound.
    i_counts : assert (g_moves == moves && g_beats == beats && g_whole == whole);
    i_bound : assert (32'(g_moves) <= Gets && 32'(g_beats) <= Beats);
    i_begun : assert (begun == g_begun);
    i_new :
    assert (has_move == (g_moves != MoveCountWidth'(g_new_move)) && (!g_new_move || g_moves != '0));
    i_ends : assert (f_ends == g_whole);
    if (g_begun) i_inside : assert (has_move && has_beat && g_whole != '0 && !g_waits);
    if (g_follows_move) begin
      i_move :
      assert (g_moves_before < moves && f_moves[f_move_number[MoveCountWidth-2:0]] == g_move);
    end
    if (g_follows_beat) begin
      i_beat :
      assert (g_beats_before < beats
          && f_beats[f_beat_number[CountWidth-2:0]] == {g_ends, g_beat});
    end
  end
end
