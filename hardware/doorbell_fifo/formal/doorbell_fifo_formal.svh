// What is proved of `doorbell_fifo`, without bound, by k-induction.
//
// A shadow sees the ports only. It counts the doorbells of each function, and follows one of them;
// the function and the doorbell are chosen freely. Nothing is assumed: any function may ring or be
// served in any cycle, also one that does not exist or has no doorbell.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *)function_t who;
(* anyseq *)logic f_pick;
always_comb assume (32'(who) < Functions);

// ---- The shadow.

// By function: doorbells that wait.
logic [Functions-1:0][CountWidth-1:0] g_count;
logic [DroppedWidth-1:0] g_dropped;

// The followed doorbell of `who`, those that are taken before it, and whether it was taken in the
// cycle before.
logic g_follows, g_taken;
logic [Width-1:0] g_word;
count_t g_before;

// What the block says of `who`; doorbells of `who`, of the function that rings, and of the one that
// is served.
count_t f_count, f_read, g_who_count, g_in_count, g_take_count;
logic f_waits;
always_comb begin
  {f_count, f_read, f_waits, g_who_count, g_in_count, g_take_count} = '0;
  for (int unsigned at = 0; at < Functions; at++) begin
    if (who == function_t'(at)) begin
      f_count = count[at];
      f_read = read[at];
      f_waits = waits[at];
      g_who_count = g_count[at];
    end
    if (in_function == function_t'(at)) g_in_count = g_count[at];
    if (take_function == function_t'(at)) g_take_count = g_count[at];
  end
end

wire f_enters = in_valid && 32'(in_function) < Functions && 32'(g_in_count) < Depth;
wire f_leaves = take && g_take_count != '0;
wire f_who_enters = f_enters && in_function == who;
wire f_who_leaves = f_leaves && take_function == who;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  for (int unsigned at = 0; at < Functions; at++) begin
    g_count[at] <= g_count[at] + count_t'(f_enters && in_function == function_t'(at))
        - count_t'(f_leaves && take_function == function_t'(at));
  end
  g_dropped <= g_dropped + DroppedWidth'(in_valid && !f_enters);
  g_taken   <= g_follows && f_who_leaves && g_before == '0;
  if (g_follows && f_who_leaves) begin
    if (g_before == '0) g_follows <= 1'b0;
    else g_before <= g_before - count_t'(1);
  end
  if (f_who_enters && f_pick && !g_follows) begin
    g_follows <= 1'b1;
    g_word <= in_word;
    g_before <= g_who_count - count_t'(f_who_leaves);
  end
  if (rst) begin
    g_count   <= '0;
    g_dropped <= '0;
    g_follows <= 1'b0;
    g_taken   <= 1'b0;
  end
end

// Where the followed doorbell lies.
wire address_t f_place = address_t'(f_read + g_before);

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A function has the doorbells that came and found a place, and were not taken.
    p_count : assert (f_count == g_who_count);
    p_bound : assert (32'(f_count) <= Depth);
    p_waits : assert (f_waits == (g_who_count != '0));
    // The followed doorbell stands at the output in its turn, and as it came.
    if (g_taken) p_same : assert (word == g_word);
    p_counted : assert (dropped == g_dropped);
    if (!$past(rst)) begin
      // What others ring and what is taken from them changes nothing.
      if (!$past(in_valid && in_function == who) && !$past(take && take_function == who)) begin
        // shows: C-32
        p_apart : assert (f_count == $past(f_count));
      end
      // What is taken stands at the output until the next one is taken.
      if (!$past(f_leaves)) p_stays : assert (word == $past(word));
      // A doorbell is told if it found no place, and no other one is.
      p_told : assert (dropped_valid == $past(in_valid && !f_enters));
      if (dropped_valid) p_named : assert (dropped_function == $past(in_function));
    end

    // So that induction needs no bound.
    for (int unsigned at = 0; at < Functions; at++) begin
      assert (written[at] - read[at] == g_count[at]);
      assert (32'(g_count[at]) <= Depth);
    end
    if (g_follows) begin
      i_before : assert (g_before < g_who_count);
      i_word : assert (f_words[{who, f_place}] == g_word);
    end
    if (g_taken) i_output : assert (word == g_word);
  end
end
