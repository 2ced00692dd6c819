// What is proved of `slot_read`, without bound, by k-induction.
//
// A shadow sees the ports only: it knows the read that is under way, and what its completions have
// brought. It follows one entry of each read, whose number is chosen freely. Of a read it is
// assumed that it has 1 to `Batch` entries. Nothing else is: any completion may come at any time,
// and any tag may be lost.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);
always_comb if (read_valid) assume (read_count != '0 && 32'(read_count) <= Batch);

typedef logic [CountWidth:0] word_t;

(* anyconst *)
count_t which;
always_comb assume (32'(which) < Batch);

// ---- The shadow.

// A read: it is asked for, waits, is whole, or has failed.
logic g_asks, g_waits, g_whole, g_failed;
logic [PairWidth-1:0] g_pair;
logic [AddressWidth-1:0] g_address;
// Its entries: all, those that have come, and those that have left.
count_t g_count, g_came, g_left;
// The entry that is followed, as it came.
logic [WordWidth-1:0] g_word;
// The completion that comes: the read has waited for it all the time, what its first beat said, its
// beats until now, and the entry that is followed, if one of them had it.
logic g_mid, g_ours, g_says_failed;
logic [SizeWidth-1:0] g_bytes, g_remaining;
word_t g_number;
logic [WordWidth-1:0] g_seen;

wire f_high = g_address[3];
wire [SizeWidth-1:0] f_bytes = g_mid ? g_bytes : in_bytes;
wire [SizeWidth-1:0] f_remaining = g_mid ? g_remaining : in_remaining;
wire f_says_failed = g_mid ? g_says_failed : in_failed;
wire word_t f_number = g_mid ? g_number : '0;
wire f_loses = lost_valid && g_waits;
wire f_ours = (g_mid ? g_ours : g_waits) && !f_loses;
// Words of the read: where the completion begins, where it ends, and the one that is followed.
wire word_t f_first = word_t'(g_came) + word_t'(f_high);
wire word_t f_end = f_first + word_t'(f_bytes >> 3);
wire word_t f_word = word_t'(which) + word_t'(f_high);
// Its bytes are those that the read lacks next, and end with a beat or with the read.
wire f_fits = f_remaining == SizeWidth'(g_count - g_came) << 3 && f_bytes <= f_remaining
    && f_bytes[2:0] == '0 && (f_bytes == f_remaining || !f_end[0]);
wire word_t f_wanted = ((f_end + word_t'(1)) >> 1) - (f_first >> 1);
// This beat is one of these, and has the entry that is followed.
wire f_counts = f_fits && f_number < f_wanted;
wire f_has = f_counts && (f_first >> 1) + f_number == f_word >> 1;
wire [WordWidth-1:0] f_seen = f_has ? in_data[f_word[0]] : g_seen;
wire f_ends_piece = in_valid && in_last;
wire f_right = f_counts && f_number + word_t'(1) == f_wanted;
wire f_comes = f_ends_piece && f_ours && f_right;
wire word_t f_more = word_t'(g_came) + word_t'(f_bytes >> 3);
wire f_ends = f_ends_piece && f_ours && (f_says_failed || (f_right && f_more == word_t'(g_count)));
wire f_leaves = entry_valid && entry_ready;

logic g_freed, g_unexpected, g_mismatched;

always_ff @(posedge clk) begin
  past_reset   <= 1'b1;
  g_freed      <= f_ends;
  g_unexpected <= f_ends_piece && !f_ours;
  g_mismatched <= f_ends_piece && f_ours && !f_says_failed && !f_right;
  if (read_valid && read_ready) begin
    g_asks <= 1'b1;
    g_pair <= read_pair;
    g_address <= read_address;
    g_count <= read_count;
    g_came <= '0;
    g_left <= '0;
  end
  if (ask_valid && ask_ready) begin
    g_asks  <= 1'b0;
    g_waits <= 1'b1;
  end
  if (f_comes) begin
    g_came <= count_t'(f_more);
    if (which >= g_came && word_t'(which) < f_more) g_word <= f_seen;
  end
  if (f_loses || f_ends) begin
    g_waits  <= 1'b0;
    g_failed <= f_loses || f_says_failed;
    g_whole  <= !f_loses && !f_says_failed;
  end
  if (f_leaves) begin
    g_left <= g_left + count_t'(1);
    if (g_failed || g_left + count_t'(1) == g_count) begin
      g_failed <= 1'b0;
      g_whole  <= 1'b0;
    end
  end
  if (f_loses) g_ours <= 1'b0;
  if (in_valid) begin
    g_mid <= !in_last;
    g_ours <= f_ours;
    g_says_failed <= f_says_failed;
    g_bytes <= f_bytes;
    g_remaining <= f_remaining;
    g_seen <= f_seen;
    if (f_number != '1) g_number <= f_number + word_t'(1);
  end
  if (rst) begin
    g_asks <= 1'b0;
    g_waits <= 1'b0;
    g_whole <= 1'b0;
    g_failed <= 1'b0;
    g_mid <= 1'b0;
    g_freed <= 1'b0;
    g_unexpected <= 1'b0;
    g_mismatched <= 1'b0;
  end
end

wire f_idle = !g_asks && !g_waits && !g_whole && !g_failed;
wire [1:0][WordWidth-1:0] f_beat = beats[beat_t'(f_word>>1)];

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // One read at a time: the next one is taken when all of this one has left.
    p_ready : assert (read_ready == f_idle);
    // What was taken is asked for, until it is taken.
    p_asks : assert (ask_valid == g_asks);
    if (ask_valid)
      p_ask :
      assert (ask_pair == g_pair && ask_address == g_address
          && ask_bytes == SizeWidth'(g_count) << 3);
    // Entries are offered as soon as all have come, or one that says that the read has failed.
    p_offers : assert (entry_valid == (g_whole || g_failed));
    if (entry_valid) p_pair : assert (entry_pair == g_pair);
    if (entry_valid) p_failed : assert (entry_failed == g_failed);
    // Each in its turn, as it came.
    if (g_whole && g_left == which) p_same : assert (entry_word == g_word);
    // No more than were asked for.
    if (g_whole) p_all : assert (g_left < g_count && g_came == g_count);
    // A tag comes back with the last completion or a failed one, and not else.
    p_freed : assert (free_valid == g_freed);
    // What is not what the read lacks is told, and nothing else.
    p_unexpected : assert (unexpected == g_unexpected);
    p_mismatched : assert (mismatched == g_mismatched);

    // So that induction needs no bound.
    i_one : assert ($onehot0({g_asks, g_waits, g_whole, g_failed}));
    i_asks : assert ((state == Asks) == g_asks);
    i_waits : assert ((state == Waits) == g_waits);
    i_whole : assert ((state == Whole) == g_whole);
    i_failed : assert ((state == Failed) == g_failed);
    i_idle : assert ((state == Idle) == f_idle);
    i_mid : assert (mid == g_mid);
    if (!f_idle) begin
      i_read : assert (ask_address == g_address && count == g_count && entry_pair == g_pair);
      i_came : assert (came == g_came && left == g_left && g_came <= g_count);
      i_count : assert (g_count != '0 && 32'(g_count) <= Batch);
      i_left : assert (g_left == '0 || g_whole);
    end
    if (g_asks) i_none : assert (g_came == '0 && !(g_mid && g_ours));
    if (g_waits) i_lacks : assert (g_came < g_count);
    if (g_waits && g_came != '0) i_even : assert (!f_first[0]);
    if (g_mid) i_ours : assert (ours == g_ours && piece_failed == g_says_failed);
    if (g_mid && g_ours) begin
      i_piece : assert (g_waits);
      i_entries : assert (entries == (f_fits ? count_t'(f_bytes >> 3) : '0));
      i_number : assert (g_number != '0);
      if (!f_fits) i_misfits : assert (lacks == '0);
      if (f_fits) begin
        if (g_number >= f_wanted) i_over : assert (lacks == '0);
        if (g_number <= f_wanted)
          i_left_beats :
          assert (word_t'(lacks) == f_wanted - g_number
              && word_t'(at) == (f_first >> 1) + g_number);
        if (f_wanted != '0 && (f_first >> 1) + g_number > f_word >> 1 && f_first >> 1 <= f_word >> 1
            && f_word >> 1 < (f_first >> 1) + f_wanted)
          i_seen : assert (f_beat[f_word[0]] == g_seen);
      end
    end
    if (!f_idle && g_came > which) i_word : assert (f_beat[f_word[0]] == g_word);
  end
end
