// What is proved of `read_arb`, without bound, by k-induction.
//
// A shadow sees the ports only. It knows whose turn is next and what is offered, and follows one
// requester and one tag, both chosen freely. Nothing is assumed: any requester may ask and free
// anything, and any tag may be offered, come and be lost at any time.

typedef logic [OwnerWidth:0] steps_t;

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *)owner_t who;
(* anyconst *)tag_t   what;
always_comb assume (32'(who) < Requesters);

// ---- Reads: whose turn is next, what is offered, and how many others were served while `who`
// asked.

owner_t g_next;
logic g_offers;
logic [FunctionWidth-1:0] g_function;
logic [AddressWidth-1:0] g_address;
logic [SizeWidth-1:0] g_bytes;
tag_t g_tag;
steps_t g_passed;

wire bits_t f_served = ask_valid & ask_ready;
wire f_takes = f_served != '0;
owner_t f_server;
// How far those are behind the one whose turn is next, cyclically.
steps_t f_who_steps, f_server_steps;
// Another one asks, and goes before `who`.
logic f_other_first;
always_comb begin
  f_server = '0;
  for (int unsigned each = 0; each < Requesters; each++) begin
    if (f_served[each]) f_server = owner_t'(each);
  end
  f_who_steps = steps_t'(who) - steps_t'(g_next);
  f_server_steps = steps_t'(f_server) - steps_t'(g_next);
  if (who < g_next) f_who_steps += steps_t'(Requesters);
  if (f_server < g_next) f_server_steps += steps_t'(Requesters);
  f_other_first = 1'b0;
  for (int unsigned step = 0; step < Requesters; step++) begin
    if (step < 32'(f_who_steps) && ask_valid[(32'(g_next)+step)%Requesters]) f_other_first = 1'b1;
  end
end

wire f_is_free = !g_offers || read_ready;

// ---- The followed tag: it waits, and for whom. The completion that comes: it is the followed
// tag's, for whom it is, and whether the read has had the tag all the time.

logic g_waits;
owner_t g_owner;
logic g_mid, g_mine, g_own, g_held, g_ended, g_ended_held, g_ended_mine, g_ended_own;
owner_t g_piece_owner;

wire f_mine = g_mid ? g_mine : in_tag == what;
wire f_own = g_mid ? g_own : g_waits;
wire owner_t f_owner = g_mid ? g_piece_owner : g_owner;
wire f_lost = lost_valid && lost_tag == what;
// The read of the followed tag has ended: its requester says so of what ended before.
wire f_frees = g_ended && g_ended_mine && g_ended_held && free_valid[g_piece_owner];
wire f_held = (g_mid ? g_held : g_waits) && !f_lost && !f_frees;
wire f_takes_it = f_takes && tag == what;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_offers   <= f_takes || (g_offers && !read_ready);
  if (f_takes) begin
    g_function <= ask_function[f_server];
    g_address <= ask_address[f_server];
    g_bytes <= ask_bytes[f_server];
    g_tag <= tag;
    g_next <= (32'(f_server) == Requesters - 1) ? '0 : f_server + owner_t'(1);
    g_passed <= g_passed + steps_t'(1);
  end
  if (!ask_valid[who] || f_served[who]) g_passed <= '0;

  if (in_valid) begin
    g_mid  <= !in_last;
    g_mine <= f_mine;
    // What is not the followed tag's is another proof's.
    g_own  <= f_own;
    if (f_mine) g_piece_owner <= f_owner;
  end
  g_held <= f_held;
  g_ended <= in_valid && in_last;
  g_ended_mine <= f_mine;
  g_ended_own <= f_own;
  g_ended_held <= f_held;
  if (f_lost || f_frees) g_waits <= 1'b0;
  if (f_takes_it) begin
    g_waits <= 1'b1;
    g_owner <= f_server;
  end
  if (rst) begin
    g_next <= '0;
    g_offers <= 1'b0;
    g_passed <= '0;
    {g_waits, g_mid, g_ended} <= '0;
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // One read is taken at most, with a tag that does not wait, and nothing else takes a tag.
    p_one : assert ((f_served & (f_served - bits_t'(1))) == '0);
    p_tag : assert (f_takes == (tag_valid && tag_ready));
    // shows: C-36
    if (f_takes_it) p_unique : assert (!g_waits);
    // What is taken is offered once, as it was asked for, and stays until it leaves.
    if (f_takes) p_free : assert (f_is_free);
    p_offers : assert (read_valid == g_offers);
    if (g_offers)
      p_same :
      assert (read_function == g_function && read_address == g_address && read_bytes == g_bytes
          && read_tag == g_tag);
    // Nothing waits for an idle port.
    if (ask_valid != '0 && f_is_free && tag_valid && tag == what && !g_waits)
      p_work : assert (f_takes);
    // A requester is ready exactly if there is a tag and room, and no other one before it asks.
    if (tag == what)
      p_ready : assert (ask_ready[who] == (f_is_free && tag_valid && !g_waits && !f_other_first));
    // Requester 0 goes first. Then the next one that asks does, cyclically.
    if ($past(rst) && ask_valid[0] && f_takes) p_starts : assert (f_served[0]);
    if (f_takes && ask_valid[who]) p_turn : assert (f_server_steps <= f_who_steps);
    // So at most all others are served before a requester that asks.
    if (ask_valid[who]) p_fair : assert (32'(g_passed) < Requesters);

    // A beat goes to the requester whose read had the tag when its completion began, and only
    // there. Without one it goes to nobody, and that is told at the end.
    if (in_valid && f_mine) p_own : assert (own_valid == (f_own ? bits_t'(1) << f_owner : '0));
    if (!in_valid) p_silent : assert (own_valid == '0);
    if (g_ended && g_ended_mine) p_unexpected : assert (unexpected == !g_ended_own);
    if (!g_ended) p_expected : assert (!unexpected);
    // A tag comes back exactly if the read that had it all the time has ended, and once.
    p_back : assert ((release_valid && release_tag == what) == (f_frees && !f_lost));
    // A lost tag is told to the requester whose read has it, unless that has just ended.
    if (f_lost) p_lost : assert (own_lost == (g_waits && !f_frees ? bits_t'(1) << g_owner : '0));
    if (!lost_valid) p_quiet : assert (own_lost == '0);

    // So that induction needs no bound.
    i_next : assert (32'(g_next) < Requesters);
    for (int unsigned each = 0; each < Requesters; each++) begin
      assert (f_from_pointer[each] == {Requesters{1'b1}} << g_next);
    end
    i_passed : assert (32'(g_passed) + 32'(f_who_steps) < Requesters);
    i_waits : assert (waits[what] == g_waits);
    if (g_waits) i_owner : assert (owner_of[what] == g_owner && 32'(g_owner) < Requesters);
    i_mid : assert (mid == g_mid && ended_held == (g_ended && ended_held));
    if (g_mid) i_mine : assert (g_mine == (piece_tag == what));
    if (g_mid && g_mine) begin
      i_own : assert (piece_is_own == g_own && piece_held == g_held);
      if (g_own) i_piece : assert (piece_owner == g_piece_owner && 32'(g_piece_owner) < Requesters);
      if (g_held) i_held : assert (g_own && g_waits && g_owner == g_piece_owner);
    end
    if (g_ended) i_ended : assert (g_ended_mine == (piece_tag == what));
    if (g_ended && g_ended_mine) begin
      i_ended_held : assert (ended_held == g_ended_held && unexpected == !g_ended_own);
      if (g_ended_held)
        i_still :
        assert (g_waits && g_owner == g_piece_owner && piece_owner == g_piece_owner && g_ended_own);
    end
  end
end
