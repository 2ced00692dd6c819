// What is proved of `desc_gate`, without bound, by k-induction.
//
// A shadow counts doorbells, descriptors and GETs by the ports. Of the neighbours it is assumed
// that they take only what is offered, that each doorbell has one descriptor, and each of these one
// place for its event, and that a function's room falls only when such a place is taken. Which
// descriptors are GETs, are refused, or wait is free, and for how long.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *) logic [FunctionWidth-1:0] who;
always_comb assume (32'(who) < Functions);

// ---- The shadow.

// By function: doorbells that were taken and whose event has no place yet.
logic [Functions-1:0][RoomWidth:0] g_claims;
// Descriptors that were let in and whose event has no place yet; GETs among them that may still
// reach their packer; those that have, and have not left.
logic [OpenWidth:0] g_open;
logic [GetWidth:0] g_open_gets, g_held;
logic g_mid;

wire f_is_get = !g_mid && !word_void && word_primitive == Get;
wire f_enters = word_valid && word_ready;
wire [OpenWidth:0] f_open_left =
    g_open - (OpenWidth + 1)'(move_valid) - (OpenWidth + 1)'(report_valid);
logic [Functions-1:0][1:0] f_ends;
logic [OpenWidth:0] f_all_claims;
always_comb begin
  f_all_claims = '0;
  for (int unsigned each = 0; each < Functions; each++) begin
    f_ends[each] = 2'(move_valid && 32'(move_function) == each)
        + 2'(report_valid && 32'(report_function) == each);
    f_all_claims += (OpenWidth + 1)'(g_claims[each]);
  end
end

logic [Functions-1:0][RoomWidth-1:0] past_room;
logic [Functions-1:0][1:0] past_ends;
always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  past_room  <= room;
  past_ends  <= f_ends;
  for (int unsigned each = 0; each < Functions; each++) begin
    g_claims[each] <= g_claims[each] - (RoomWidth + 1)'(f_ends[each])
        + (RoomWidth + 1)'(take && 32'(take_function) == each);
  end
  g_open <= f_open_left + (OpenWidth + 1)'(f_enters && !g_mid);
  g_open_gets <= ((f_open_left == '0) ? '0 : g_open_gets - (GetWidth + 1)'(move_valid && move_get))
      + (GetWidth + 1)'(f_enters && f_is_get);
  g_held <= g_held + (GetWidth + 1)'(move_valid && move_get) - (GetWidth + 1)'(credit);
  if (f_enters) g_mid <= !word_last;
  if (rst) begin
    g_claims <= '0;
    g_open <= '0;
    g_open_gets <= '0;
    g_held <= '0;
    g_mid <= 1'b0;
  end
end

// ---- The neighbours.

always_comb begin
  if (take) assume (32'(take_function) < Functions && may_ring[take_function]);
  if (move_valid) assume (32'(move_function) < Functions);
  if (report_valid) assume (32'(report_function) < Functions);
  assume ((OpenWidth + 1)'(move_valid) + (OpenWidth + 1)'(report_valid) <= g_open);
  if (move_valid && move_get) assume (g_open_gets != '0);
  if (credit) assume (g_held != '0);
  if (word_valid && !g_mid) assume (g_open < f_all_claims);
  for (int unsigned each = 0; each < Functions; each++) begin
    assume ((RoomWidth + 1)'(f_ends[each]) <= g_claims[each]);
    assume (32'(room[each]) <= Depth);
    if (past_reset && !rst)
      assume ((RoomWidth + 1)'(room[each]) + (RoomWidth + 1)'(past_ends[each])
          >= (RoomWidth + 1)'(past_room[each]));
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A function's doorbells go on by its own places and claims only.
    p_rings : assert (may_ring[who] == (waits[who] && room[who] > g_claims[who]));
    // So what becomes of them always finds a place.
    if (f_ends[who] != '0)
      p_place : assert ((RoomWidth + 1)'(room[who]) >= (RoomWidth + 1)'(f_ends[who]));
    // A word goes on in the cycle in which it is taken: none is lost or doubled.
    p_words : assert ((to_valid && to_ready) == f_enters && (!to_valid || word_valid));
    // Only the first word of a GET waits, and only while others may need all places of its packer.
    if (!f_is_get) p_others : assert (word_ready == to_ready && to_valid == word_valid);
    if (f_is_get)
      p_get : assert (word_ready == (to_ready && 32'(g_open_gets) + 32'(g_held) < Gets));
    // So a GET that was let in never waits for its packer.
    p_bound : assert (32'(g_open_gets) + 32'(g_held) <= Gets);
    // A GET does not wait if nothing is under way: no deadlock.
    if (f_is_get && g_open == '0 && g_held == '0) p_back : assert (word_ready == to_ready);
    // After reset nothing is claimed.
    if ($past(rst)) p_starts : assert (may_ring[who] == (waits[who] && room[who] != '0));

    // So that induction needs no bound.
    i_mid : assert (mid == g_mid);
    i_open : assert ((OpenWidth + 1)'(open) == g_open && g_open <= f_all_claims);
    i_gets :
    assert ((GetWidth + 1)'(open_gets) == g_open_gets && (GetWidth + 1)'(held_gets) == g_held);
    i_open_gets : assert ((g_open != '0) || (g_open_gets == '0));
    i_all : assert (32'(f_all_claims) <= Functions * Depth);
  end
end

// The same of all functions.
for (genvar each = 0; each < Functions; each++) begin : g_invariants
  always_ff @(posedge clk) begin
    if (past_reset && !rst) begin
      assert ((RoomWidth + 1)'(claims[each]) == g_claims[each]);
      assert (g_claims[each] <= (RoomWidth + 1)'(room[each]));
    end
  end
end
