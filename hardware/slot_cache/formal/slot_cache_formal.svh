// What is proved of `slot_cache`, without bound, by k-induction.
//
// A shadow sees the ports only. It follows the list and the refills of one queue pair, and the slot
// in one place of its cache, both chosen freely. Nothing is assumed: any count and any entry may
// come at any time, also one that nobody asked for.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *)pair_t one;
(* anyconst *)place_t chosen;

// ---- The list as software sees it: what it has reported last, entries that are listed and have
// not come, and where the next one stands.

logic g_open;
logic [PageWidth-1:0] g_page;
count_t g_entries, g_posted, g_left, g_index;

// ---- The cache: slots that came and left since the list was opened; the word that came for the
// chosen place last.

slots_t g_stored, g_taken;
logic [WordWidth-1:0] g_word;

// ---- The refill that is under way: entries that it lacks, none without one; whether its list was
// closed or opened anew.

batch_t g_lacks;
logic g_stale;

// ---- The outputs: the read stood there in the cycle before; what was due then; cycles that a due
// queue pair has waited; the slot at the output is that of the chosen place.

logic g_held, g_due, g_shows;
logic [AddressWidth-1:0] g_address;
logic [31:0] g_count;
logic [PairWidth:0] g_waits;
logic [WordWidth-1:0] g_slot;

wire f_opens = host_valid && host_opens;
wire f_begins = f_opens && host_pair == one;
wire count_t f_news = host_count - g_posted;
wire f_reports_one = host_valid && !host_opens && host_pair == one;
wire f_reports = f_reports_one && g_open && f_news <= g_entries - g_left;

wire f_takes = take_valid && take_ready;
wire f_takes_one = f_takes && take_pair == one;
wire slots_t f_cached = g_stored - g_taken;

// A read that stands at the output for the first time was asked for in the cycle before.
wire f_asked = read_valid && !g_held && read_pair == one;
wire batch_t f_lacks = f_asked ? read_count : g_lacks;
wire f_stale = g_stale && !f_asked;

wire f_comes = in_valid && in_ready && in_pair == one;
wire f_ours = f_comes && f_lacks != '0;
wire f_fresh = f_ours && !in_failed && !f_stale;
wire f_slot = (in_word >> AddressWidth) == '0 && (in_word & WordWidth'(2 ** SlotShift - 1)) == '0;
wire f_stores = f_fresh && f_slot;

wire f_due = g_open && f_lacks == '0 && g_left != '0 && 32'(f_cached) <= Slots / 2;
wire f_free = !f_opens && (!read_valid || read_ready);
wire count_t f_end = g_entries - g_index;
wire [31:0] f_most = (32'(f_end) < Batch) ? 32'(f_end) : Batch;
wire [31:0] f_count = (32'(g_left) < f_most) ? 32'(g_left) : f_most;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_held <= read_valid && !read_ready;
  g_due <= f_due && f_free;
  g_count <= f_count;
  g_address <= {g_page, PageShift'({g_index, 3'b0})};
  g_waits <= f_due ? g_waits + (PairWidth + 1)'(f_free) : '0;
  g_lacks <= f_lacks;
  g_stale <= f_stale;
  if (f_ours) g_lacks <= in_failed ? '0 : f_lacks - batch_t'(1);
  g_left <= g_left + (f_reports ? f_news : '0) - count_t'(f_fresh);
  if (f_reports) g_posted <= host_count;
  if (f_fresh) g_index <= (g_index + count_t'(1) == g_entries) ? '0 : g_index + count_t'(1);
  g_stored <= g_stored + slots_t'(f_stores);
  g_taken  <= g_taken + slots_t'(f_takes_one);
  if (f_stores && place_t'(g_stored) == chosen) g_word <= in_word;
  if (f_takes) begin
    g_shows <= f_takes_one && place_t'(g_taken) == chosen;
    g_slot  <= g_word;
  end
  // What is still to come of a refill is for the list that was there.
  if (f_begins) begin
    g_open <= host_count != '0;
    g_page <= host_page;
    g_entries <= host_count;
    {g_posted, g_left, g_index, g_stored, g_taken} <= '0;
    g_stale <= 1'b1;
  end
  if (rst) {g_open, g_held, g_lacks, g_shows} <= '0;
end

// ---- For induction: the chosen place has a slot.

wire place_t f_before = chosen - place_t'(g_taken);
wire f_filled = g_open && slots_t'(f_before) < f_cached;

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A slot leaves exactly if the cache has one and no list is opened. What lacks is named.
    if (take_pair == one) begin
      p_ready : assert (take_ready == (g_open && f_cached != '0 && !f_opens));
      p_lacks :
      assert (lacks_list == !g_open && lacks_slot == (g_open && f_cached == '0));
      p_cached : assert (cached == (g_open ? f_cached : '0));
    end
    p_enters : assert (in_ready == !f_opens);
    // Slots leave in their turn, and are the entries that came.
    if (g_shows) p_same : assert (WordWidth'(slot) == g_slot);
    // No slot is overwritten: all that is cached or on its way has a place.
    if (g_open) p_bound : assert (32'(f_cached) + (f_stale ? 0 : 32'(f_lacks)) <= Slots);

    if (f_asked) begin
      // A refill is due at half, if more is listed, and only one is under way.
      p_due : assert (g_due);
      // It reads the next entries, as many as are listed, up to the end of the list and a batch.
      p_address : assert (read_address == g_address);
      // shows: C-20
      p_count : assert (32'(read_count) == g_count);
    end
    // A refill that is due waits for the output and for each other queue pair once.
    if (f_due) p_waits : assert (32'(g_waits) < Pairs);

    if (!$past(rst)) begin
      if ($past(read_valid && !read_ready)) begin
        p_stays :
        assert (read_valid && read_pair == $past(read_pair) && read_address == $past(read_address)
            && read_count == $past(read_count));
      end
      if (!$past(f_takes)) p_kept : assert (slot == $past(slot));
      // A report of more entries than the list has is refused, and one to a closed list, and
      // nothing else.
      if ($past(host_valid && host_pair == one)) begin
        p_refused : assert (refused == !$past(f_begins || f_reports));
      end
      if (!$past(host_valid)) p_quiet : assert (!refused);
      // What nobody asked for, what fails and what is no slot is told, and nothing else.
      if ($past(f_comes)) begin
        p_unexpected : assert (unexpected == ($past(f_lacks) == '0));
        p_failed : assert (failed == $past(f_ours && in_failed));
        // shows: C-19
        p_misplaced : assert (misplaced == $past(f_fresh && !f_slot));
        p_named : assert (told_pair == one);
      end
      if (!$past(in_valid && in_ready)) begin
        p_silent : assert (!unexpected && !failed && !misplaced);
      end
    end

    // So that induction needs no bound.
    i_open : assert (is_open[one] == g_open);
    i_refills : assert (refills[one] == (f_lacks != '0));
    if (f_lacks != '0) begin
      i_goal : assert (batch_t'(goal_of[one] - come_of[one]) == f_lacks);
      i_batch : assert (32'(f_lacks) <= Batch);
      i_stale : assert (stale[one] == f_stale);
      if (!f_stale) begin
        i_listed : assert (g_open && 32'(f_lacks) <= 32'(g_left));
      end
    end
    if (g_open) begin
      i_list : assert (page_of[one] == g_page && entries_of[one] == g_entries);
      i_entries : assert (g_entries != '0 && g_index < g_entries && g_left <= g_entries);
      i_posted : assert (posted_of[one] == g_posted);
      i_left : assert (count_t'(g_posted - fetched_of[one]) == g_left);
      i_index : assert (index_of[one] == g_index);
      i_cache : assert (stored_of[one] == g_stored && taken_of[one] == g_taken);
    end
    if (f_filled) begin
      i_word :
      assert (WordWidth'({f_slots[{one, chosen}], SlotShift'(0)}) == g_word);
    end
    if (f_due) begin
      i_waits : assert (32'(g_waits) + 32'(pair_t'(one - probe)) < Pairs);
    end
  end
end
