// What is proved of `op_arb`, without bound, by k-induction.
//
// A shadow sees the ports only: it knows how far the operation of each descriptor extract has come,
// and whose moves began first. It follows one of them, chosen freely, beside the other one. Of a
// move that is offered it is assumed that it stays until it is taken, as `desc_extract` proves.
// Nothing else is: reads, beats and places may come and go at any time.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *) logic who;
wire other = !who;

// What is taken in this cycle: moves for the packer, reads and beats for it.
wire [1:0] f_is_get = {1'b0, move_get};
wire [1:0] f_is_get_beat = {1'b0, data_get};
wire [1:0] f_offers = move_valid & ~f_is_get;
wire [1:0] f_moves = f_offers & move_ready;
wire [1:0] f_reads = read_valid & read_ready;
wire [1:0] f_beats = data_valid & ~f_is_get_beat & data_ready;
wire [1:0] f_data = f_reads | f_beats;
wire [1:0] f_moves_end = f_moves & move_last;
wire [1:0] f_data_ends = (f_reads & read_ends) | (f_beats & data_ends);
wire f_place = place_valid && place_ready;

// ---- The shadow.

// By descriptor extract, of its operation: moves have begun to leave, all have left; the same of
// its data; it has bytes.
logic [1:0] g_began, g_moved, g_fetching, g_fetched, g_has_bytes;
// If moves of both have begun, whose did first, and the same of data.
logic g_older, g_data_older;
// The operation from here has a place, and which.
logic g_has_place;
logic [PlaceWidth-1:0] g_place;
// A move of each has waited for a cycle, and how many operations of the other one began meanwhile.
logic [1:0] g_waits;
logic [1:0] g_passed;

logic [1:0] f_has_bytes, f_all_moved, f_all_fetched, f_ends;
always_comb begin
  for (int unsigned each = 0; each < 2; each++) begin
    f_has_bytes[each] = g_began[each] ? g_has_bytes[each] : move_total[each] != '0;
    f_all_moved[each] = g_moved[each] || f_moves_end[each];
    f_all_fetched[each] = g_fetched[each] || f_data_ends[each];
    f_ends[each] = f_all_moved[each] && (f_all_fetched[each] || !f_has_bytes[each]);
  end
end
// Moves that can go on by what their own extract says, and those that begin an operation.
wire [1:0] f_can = f_offers & ~g_moved & {1'b1, place_ready || g_has_place};
wire [1:0] f_begin = f_moves & ~g_began;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  for (int unsigned each = 0; each < 2; each++) begin
    g_began[each] <= (g_began[each] || f_moves[each]) && !f_ends[each];
    g_moved[each] <= f_all_moved[each] && !f_ends[each];
    g_fetching[each] <= (g_fetching[each] || f_data[each]) && !f_ends[each];
    g_fetched[each] <= f_all_fetched[each] && !f_ends[each];
    g_has_bytes[each] <= f_has_bytes[each];
  end
  if (f_begin[0]) g_older <= g_began[1] && !f_ends[1];
  if (f_begin[1]) g_older <= !(g_began[0] && !f_ends[0]);
  if (f_data[0] && !g_fetching[0]) g_data_older <= g_fetching[1] && !f_ends[1];
  if (f_data[1] && !g_fetching[1]) g_data_older <= !(g_fetching[0] && !f_ends[0]);
  if (f_ends[0]) g_data_older <= 1'b1;
  if (f_ends[1]) g_data_older <= 1'b0;
  if (f_ends[0]) g_older <= 1'b1;
  if (f_ends[1]) g_older <= 1'b0;
  if (f_place && !(move_valid[0] && move_get)) begin
    g_has_place <= 1'b1;
    g_place <= place;
  end
  if (f_moves_end[0]) g_has_place <= 1'b0;
  g_waits <= f_can & ~f_moves;
  if (f_begin[other]) g_passed <= g_passed + 2'd1;
  if (!f_can[who] || f_moves[who]) g_passed <= '0;
  if (rst) begin
    g_began <= '0;
    g_moved <= '0;
    g_fetching <= '0;
    g_fetched <= '0;
    g_has_place <= 1'b0;
    g_waits <= '0;
    g_passed <= '0;
  end
end

// A move that is offered stays.
logic [1:0] past_stays;
always_ff @(posedge clk) past_stays <= rst ? '0 : move_valid & ~move_ready;
always_comb begin
  for (int unsigned each = 0; each < 2; each++) begin
    if (past_stays[each]) assume (move_valid[each]);
  end
end
logic past_get;
logic [1:0] past_last;
logic [1:0][BytesWidth-1:0] past_total;
always_ff @(posedge clk) begin
  past_get   <= move_get;
  past_last  <= move_last;
  past_total <= move_total;
end
always_comb begin
  if (past_stays[0]) assume (move_get == past_get);
  for (int unsigned each = 0; each < 2; each++) begin
    if (past_stays[each])
      assume (move_last[each] == past_last[each] && move_total[each] == past_total[each]);
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // Exactly what is taken goes on, from one at a time: nothing is lost or doubled.
    p_moves : assert ((pack_valid && pack_ready) == (f_moves != '0) && f_moves != 2'b11);
    p_reads : assert ((ask_valid && ask_ready) == (f_reads != '0) && f_reads != 2'b11);
    p_beats : assert ((put_valid && put_ready) == (f_beats != '0) && f_beats != 2'b11);
    if (f_moves[who]) p_says : assert (pack_last == move_last[who] && pack_says == move_says[who]);
    if (f_reads[who])
      p_asks :
      assert (ask_ends == read_ends[who] && ask_address == read_address[who]
          && ask_function == read_function[who] && ask_bytes == read_bytes[who]);
    if (f_beats[who])
      p_puts :
      assert (put_ends == data_ends[who] && put_to == data_to[who] && put_data == data[who]);
    // A GET from here goes to its packer, whatever others wait for. So does its descriptor.
    if (move_valid[0] && move_get)
      p_get :
      assert (get_valid == place_ready && move_ready[0] == (get_ready && place_ready));
      else p_no_get : assert (!get_valid);
    if (data_valid[0] && data_get)
      p_descriptor :
      assert (get_data_valid && data_ready[0] == get_data_ready);
      else p_no_descriptor : assert (!get_data_valid);

    // Between the first and the last move of an operation stands no other one's, and so with data.
    if (f_moves[who]) p_whole : assert (!g_began[other] || g_moved[other]);
    if (f_data[who]) p_whole_data : assert (!g_fetching[other] || g_fetched[other]);
    // Data leaves in the order of the moves.
    if (f_data[who] && !g_fetching[who])
      p_order :
      assert (!(g_began[other] && g_has_bytes[other] && !g_fetching[other])
          || (g_began[who] && g_older == who));
    if (f_begin[who] && move_total[who] != '0)
      p_order_moves :
      assert (!(g_fetching[other] && !g_began[other]) || (g_fetching[who] && g_data_older == who));

    // An operation from here has one place, which it takes before its first move, and a GET takes
    // one with its move.
    if (f_moves[0]) p_placed : assert (g_has_place);
    if (f_place && !move_get) p_once : assert (!g_has_place);
    if (move_valid[0] && move_get) p_get_place : assert (place_valid == get_ready);
    if (place_valid) p_no_place : assert (move_valid[0]);
    // The number says whose it is.
    if (f_moves[0]) p_number : assert (pack_operation == {1'b0, g_place});
    if (f_moves[1]) p_mark : assert (pack_operation == {1'b1, {PlaceWidth{1'b0}}});

    // A move that has waited for a cycle is offered to the packer, or one of an operation before
    // it is, or that one is in the middle of its moves: no deadlock.
    if (g_waits[who] && f_can[who])
      p_work : assert (pack_valid || (g_began[other] && !g_moved[other]));
    // Data whose operation is the next one is offered.
    if (g_began[who] && g_has_bytes[who] && !g_fetched[who]
        && !(g_began[other] && g_older == other && g_has_bytes[other] && !g_fetched[other])
        && !(g_fetching[other] && !g_fetched[other])) begin
      p_work_data : assert (ask_valid == read_valid[who]);
      p_work_beats : assert (put_valid == (data_valid[who] && !f_is_get_beat[who]));
    end
    // At most one operation of the other one begins before one that waits.
    if (f_can[who] && f_begin[other]) p_fair : assert (g_passed == '0);
    if ($past(rst)) p_starts : assert (!pack_valid && !ask_valid && !put_valid);

    // So that induction needs no bound.
    if (begun == 2'b01 || begun == 2'b10) i_first : assert (first == begun[1]);
    if (begun == 2'b11) begin
      if (g_began[!first]) i_behind : assert (g_moved[first]);
      if (g_fetching[!first]) i_data_behind : assert (fetched[first]);
      if (g_began == 2'b11) i_older : assert (g_older == first);
      if (g_fetching == 2'b11) i_data_older : assert (g_data_older == first);
    end
    if (g_began == 2'b01 || g_began == 2'b10) i_only : assert (g_older == g_began[1]);
    if (g_fetching == 2'b01 || g_fetching == 2'b10)
      i_data_only : assert (g_data_older == g_fetching[1]);
    i_place : assert (g_has_place == (begun[0] && !moved[0]));
    if (g_has_place) i_number : assert (g_place == held_place);
    i_passed : assert (g_passed <= 1);
    if (g_passed != '0)
      i_next : assert (begun[who] && (first == who || (begun[other] && g_began[other])));
    if (g_waits[who]) i_waiting : assert (begun[who] && !moved[who]);
  end
end

// The same of both descriptor extracts.
for (genvar each = 0; each < 2; each++) begin : g_invariants
  always_ff @(posedge clk) begin
    if (past_reset && !rst) begin
      if (!begun[each])
        assert (!g_began[each] && !g_moved[each] && !g_fetching[each] && !g_fetched[each]);
      if (begun[each]) assert (moved[each] == g_moved[each]);
      if (begun[each] && g_began[each])
        assert (fetched[each] == (g_fetched[each] || !g_has_bytes[each]));
      if (begun[each] && !g_began[each]) begin
        assert (f_offers[each] && !g_moved[each]);
        assert (past_stays[each]);
        assert (fetched[each] == (g_fetched[each] || past_total[each] == '0));
        assert (each == 1 || !past_get);
      end
      assert (!(moved[each] && fetched[each] && begun[each]));
      if (g_moved[each]) assert (g_began[each]);
      if (g_fetched[each]) assert (g_fetching[each]);
      if (g_fetching[each] && g_began[each]) assert (g_has_bytes[each]);
      if (g_fetching[each] && !g_began[each]) assert (past_total[each] != '0);
    end
  end
end
