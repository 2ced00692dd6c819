// What is proved of `tag_alloc`, without bound, by k-induction.
//
// A shadow sees the ports only: which tags are in use, which of two freely chosen tags has been
// free for longer, and for how long the first of them has been in use. Any tag may come back at
// any time, also one that is not in use.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *)tag_t one, other;
always_comb assume (one != other && count_t'(one) < Tags && count_t'(other) < Tags);

localparam int unsigned AgeWidth = $clog2(2 * Timeout + 1);
localparam logic [AgeWidth-1:0] Late = AgeWidth'(2 * Timeout);

// ---- The shadow. What is reported as lost was free since the cycle before.

logic [Places-1:0] g_used, f_used;
logic g_before, f_before;
logic [AgeWidth-1:0] g_age;
// Cycles in which none came back, since it is late.
count_t g_waits;

wire f_one_lost = lost_valid && lost_tag == one;
wire f_other_lost = lost_valid && lost_tag == other;
wire f_returns = release_valid && f_used[release_tag];
wire f_one_returns = f_returns && release_tag == one;
wire f_other_returns = f_returns && release_tag == other;

// `one` has been free for longer than `other`; says something only if both are free.
always_comb begin
  f_used = g_used;
  if (lost_valid) f_used[lost_tag] = 1'b0;
  f_before = g_before;
  if (f_one_lost) f_before = 1'b0;
  if (f_other_lost) f_before = 1'b1;
end

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (rst) begin
    g_used   <= '0;
    g_before <= one < other;
    g_age    <= '0;
    g_waits  <= '0;
  end else begin
    g_used <= f_used;
    if (f_returns) g_used[release_tag] <= 1'b0;
    if (takes) g_used[tag] <= 1'b1;
    g_before <= (f_before && !f_one_returns) || f_other_returns;
    if (g_age != Late) g_age <= g_age + AgeWidth'(1);
    if (g_age == Late && !release_valid) g_waits <= g_waits + count_t'(1);
    if (takes && tag == one) begin
      g_age   <= '0;
      g_waits <= '0;
    end
  end
end

// ---- What is free: the tags in the FIFO, by their distance from the oldest.

wire count_t f_count = f_written - f_read;
wire count_t f_fresh = all_taken ? count_t'(Tags) : count_t'(fresh);
logic [Places-1:0] f_is_free;
logic [Places-1:0] f_twice;
count_t f_one_at, f_other_at, f_uses;
always_comb begin
  f_is_free = '0;
  f_twice = '0;
  f_one_at = '0;
  f_other_at = '0;
  f_uses = '0;
  for (int unsigned at = 0; at < Places; at++) begin
    f_uses += count_t'(f_used[at]);
    if (count_t'(at) < f_count) begin
      for (int unsigned number = 0; number < Places; number++) begin
        if (f_free[tag_t'(f_read+count_t'(at))] == tag_t'(number)) begin
          f_twice[number]   = f_is_free[number];
          f_is_free[number] = 1'b1;
          if (tag_t'(number) == one) f_one_at = count_t'(at);
          if (tag_t'(number) == other) f_other_at = count_t'(at);
        end
      end
    end
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A tag that is offered exists, and is not in use.
    if (tag_valid) begin
      p_exists : assert (count_t'(tag) < Tags);
      // shows: C-36
      p_unique : assert (!f_used[tag]);
    end
    // First in, first out.
    if (tag_valid && tag == other && !f_used[one]) p_order : assert (!f_before);
    // All tags that are not in use are offered, one after the other.
    p_count : assert (in_use == f_uses);
    if (!$past(rst)) begin
      if ($past(in_use) + count_t'($past(takes)) < Tags) p_offered : assert (tag_valid);
      if ($past(tag_valid && !tag_ready)) p_stays : assert (tag_valid && tag == $past(tag));
      // What is not in use is refused, and nothing else.
      p_refused : assert (refused == ($past(release_valid) && !$past(f_returns)));
    end else begin
      p_starts : assert (tag_valid && tag == '0);
    end
    // Only a tag in use is lost, and not before its time is over.
    if (lost_valid) p_lost : assert (g_used[lost_tag]);
    if (f_one_lost) p_early : assert (32'(g_age) > Timeout);
    // Behind two timeouts it is lost, once every tag has been looked at.
    if (f_used[one]) p_late : assert (32'(g_waits) < Places);

    // So that induction needs no bound.
    i_used : assert (used == f_used);
    i_fresh : assert (all_taken || count_t'(fresh) < Tags);
    i_twice : assert (f_twice == '0);
    i_count : assert (f_count + in_use == f_fresh);
    for (int unsigned at = 0; at < Places; at++) begin
      assert (f_is_free[at] == (count_t'(at) < f_fresh && !f_used[at]));
      assert (!f_used[at] || count_t'(at) < f_fresh);
    end
    if (!f_used[one] && !f_used[other]) begin
      if (f_is_free[one] && f_is_free[other]) begin
        i_before : assert (f_before == (f_one_at < f_other_at));
      end else if (!f_is_free[one] && !f_is_free[other]) begin
        i_numbers : assert (f_before == (one < other));
      end else begin
        i_fresh_first : assert (f_before == f_is_free[other]);
      end
    end
    i_timer : assert (32'(timer) < Timeout);
    i_age : assert (g_age <= Late);
    if (f_used[one]) begin
      i_aged : assert (aged[one] == (32'(g_age) > 32'(timer)));
      i_late : assert (late[one] == (32'(g_age) > 32'(timer) + Timeout));
      i_waits : assert (g_waits + count_t'(tag_t'(one - probe)) < count_t'(Places));
      i_begins : assert (g_age == Late || g_waits == '0);
    end
  end
end
