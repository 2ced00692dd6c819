// What is proved of `source_arb`, without bound, by k-induction.
//
// A shadow sees the ports only: it knows whether the doorbell was asked about, what the answer was,
// and for how long each one waits. Nothing is assumed: words, questions and doorbells may come and
// go at any time, and the fetch of descriptors may be busy for ever.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// ---- The shadow.

// Whose turn it is, as the rules in the README say.
logic g_second_turn, g_bell_turn;
// The doorbell was asked about and has not left; that was in the cycle before; the answer.
logic g_asked, g_now, g_outside;
// Cycles for which the words of each have waited, and the doorbell for its answer.
logic [1:0] g_held_first, g_held_second, g_bell_waits;

// Questions that count: a descriptor extract that may take no word asks nothing.
wire f_asks_first = !g_second_turn && !g_bell_turn && ask_valid[0];
wire [1:0] f_may = {!g_bell_turn && !f_asks_first, !g_second_turn && !g_bell_turn};
wire [1:0] f_asks = {f_may[1] && ask_valid[1], f_asks_first};
// A descriptor extract takes the word that comes, or would if it were not held back.
wire [1:0] f_takes = word_valid & word_ready;
wire [1:0] f_is_held = word_valid & to_ready & ~word_ready;
wire f_bell_asks = bell_valid && !g_asked && f_asks == '0;
wire f_outside = g_now ? !source_fits : g_outside;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_second_turn <= f_asks[0] && word_valid[1] && to_ready[1];
  g_bell_turn <= bell_valid && !g_asked && f_asks != '0
      && !(f_asks[0] && word_valid[1] && to_ready[1]);
  g_now <= f_bell_asks;
  g_outside <= f_outside;
  if (g_asked && out_ready) g_asked <= 1'b0;
  if (f_bell_asks) g_asked <= 1'b1;
  g_held_first  <= f_is_held[0] ? g_held_first + 2'd1 : 2'd0;
  g_held_second <= f_is_held[1] ? g_held_second + 2'd1 : 2'd0;
  g_bell_waits  <= (bell_valid && !out_valid) ? g_bell_waits + 2'd1 : 2'd0;
  if (rst) begin
    g_second_turn <= 1'b0;
    g_bell_turn <= 1'b0;
    g_asked <= 1'b0;
    g_now <= 1'b0;
    g_held_first <= 2'd0;
    g_held_second <= 2'd0;
    g_bell_waits <= 2'd0;
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A word goes on in the cycle in which it is taken: none is lost or doubled.
    p_words : assert ((to_valid & to_ready) == f_takes && (to_valid & ~word_valid) == '0);
    // Ready of a word looks at turns, and at the first one's question, but not at the word.
    p_may : assert (word_ready == (to_ready & f_may));
    // What a descriptor extract asks about with its word is asked in that cycle, and as it says.
    if (f_asks[0])
      p_first :
      assert (source_valid && source_function == ask_function[0]
          && source_address == ask_address[0] && source_length == ask_length[0]);
    if (f_asks[1])
      p_second :
      assert (source_valid && source_function == ask_function[1]
          && source_address == ask_address[1] && source_length == ask_length[1]);
    // While the first one asks, the second one gets no word: so no question is lost.
    if (to_valid[0] && ask_valid[0]) p_one : assert (!to_valid[1]);
    // Otherwise the doorbell that comes is asked about, once.
    if (f_asks == '0) p_asks : assert (source_valid == f_bell_asks);
    if (f_bell_asks)
      p_bell :
      assert (source_function == bell_function
          && source_address == bell_word[AddressWidth-1:0] && source_length == bell_word[63:48]);
    // A doorbell is offered once its answer is there, and leaves as it is taken.
    p_offers : assert (out_valid == g_asked && bell_ready == (g_asked && out_ready));
    // Its answer is that of the cycle behind its question, and stays.
    if (g_asked) p_answer : assert (out_outside == f_outside);
    // A word waits for two cycles at most, and so does the question of a doorbell, which is a cycle
    // more to its answer.
    if (f_is_held[0]) p_first_fair : assert (g_held_first < 2);
    if (f_is_held[1]) p_second_fair : assert (g_held_second < 2);
    if (bell_valid && !out_valid) p_bell_fair : assert (g_bell_waits < 3);
    // A word waits only for somebody who asks, or who was passed over.
    if (f_is_held[0]) p_first_work : assert (g_second_turn || g_bell_turn);
    if (f_is_held[1]) p_second_work : assert (g_bell_turn || f_asks[0]);
    // After reset the first one goes first.
    if ($past(rst)) p_starts : assert (word_ready[0] == to_ready[0] && !out_valid);

    // So that induction needs no bound.
    i_turn : assert (second_first == g_second_turn && bell_first == g_bell_turn);
    i_one_turn : assert (!(g_second_turn && g_bell_turn));
    i_asked : assert (asked == g_now && (asked || answered) == g_asked && (!g_now || g_asked));
    i_answer : assert (!answered || asked || answer == g_outside);
    i_bell : assert (!(g_bell_turn && g_asked));
    i_held_first :
    assert (g_held_first <= 2 && (g_held_first != 1 || !g_second_turn)
        && (g_held_first != 2 || !(g_second_turn || g_bell_turn)));
    i_held_second :
    assert (g_held_second <= 2 && (g_held_second != 1 || !g_bell_turn)
        && (g_held_second != 2 || g_second_turn));
    i_waits : assert (g_bell_waits != 1 || g_asked || g_second_turn || g_bell_turn);
    i_waits_more : assert (g_bell_waits != 2 || g_asked || g_bell_turn);
    i_waits_most : assert (g_bell_waits != 3 || g_asked);
  end
end
