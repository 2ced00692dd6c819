// What is proved of `doorbell_arb`, without bound, by k-induction.
//
// A shadow sees the ports only: it knows whose turn is next, and what is offered. Nothing is
// assumed: any functions may have doorbells in any cycle, and the engines may be busy for ever.

typedef logic [FunctionWidth-1:0] function_t;
typedef logic [FunctionWidth:0] steps_t;

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *)function_t who;
always_comb assume (32'(who) < Functions);

// ---- The shadow.

function_t g_next;
logic g_offers;
function_t g_function;
// How many others were taken while `who` waited.
steps_t g_passed;

// How far `who` and the function that is taken are behind the one whose turn is next, cyclically.
steps_t f_who_steps, f_taken_steps;
always_comb begin
  f_who_steps = steps_t'(who) - steps_t'(g_next);
  f_taken_steps = steps_t'(take_function) - steps_t'(g_next);
  if (who < g_next) f_who_steps += steps_t'(Functions);
  if (take_function < g_next) f_taken_steps += steps_t'(Functions);
end

wire f_is_free = !g_offers || out_ready;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_offers   <= take || (g_offers && !out_ready);
  if (take) begin
    g_function <= take_function;
    g_next <= (32'(take_function) == Functions - 1) ? '0 : take_function + function_t'(1);
    g_passed <= g_passed + steps_t'(1);
  end
  if (!waits[who] || (take && take_function == who)) g_passed <= '0;
  if (rst) begin
    g_next   <= '0;
    g_offers <= 1'b0;
    g_passed <= '0;
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // Only what waits is taken, and only if what was taken before leaves or has left.
    if (take) p_waits : assert (32'(take_function) < Functions && waits[take_function]);
    if (take) p_free : assert (f_is_free);
    // Nothing waits for an idle engine.
    if (waits != '0 && f_is_free) p_work : assert (take);
    // What was taken is offered, and stays until it leaves.
    p_offers : assert (out_valid == g_offers);
    if (g_offers) p_function : assert (out_function == g_function);
    // Function 0 goes first. Then the next one with a doorbell does, cyclically.
    if ($past(rst) && waits[0]) p_starts : assert (take && take_function == '0);
    if (take && waits[who]) p_turn : assert (f_taken_steps <= f_who_steps);
    // So at most all others are taken before a function that waits.
    // shows: C-41
    if (waits[who]) p_fair : assert (32'(g_passed) < Functions);

    // So that induction needs no bound.
    i_next : assert (32'(g_next) < Functions);
    i_pointer : assert (f_from_pointer == {Functions{1'b1}} << g_next);
    i_passed : assert (32'(g_passed) + 32'(f_who_steps) < Functions);
  end
end
