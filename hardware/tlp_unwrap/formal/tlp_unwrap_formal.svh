// What is proved of `tlp_unwrap`, without bound, by k-induction. Whatever comes is a TLP or is not.
// The check is compared in lock-step.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// The cycle before: what a TLP that ended did, and where its beats began.
logic g_again, g_drops, g_right, g_waits;
logic g_runs = 1'b0;
at_t g_good, g_whole;
logic [132:0] g_word;

at_t f_last;
logic f_ends_packet, f_kept_ends;
assign f_last = written - at_t'(1);
assign f_ends_packet = f_words[f_last[AddressWidth-1:0]][132];
at_t f_before;
assign f_before = whole - at_t'(1);
assign f_kept_ends = f_words[f_before[AddressWidth-1:0]][132];

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_again <= ends && in_bad && !rst;
  g_drops <= ends && !in_bad && !(is_right && is_first != mid) && !rst;
  g_right <= ends && !in_bad && is_right && is_first != mid && is_last && !rst;
  g_runs <= !rst;
  g_good <= good;
  g_whole <= whole;
  g_waits <= out_valid && !out_ready && !rst;
  g_word <= out_word;

  if (past_reset && !rst) begin
    // A TLP that comes again leaves nothing behind. One that is wrong takes its packet with it,
    // and that is told.
    if (g_again) p_again : assert (written == g_good && good == g_good);
    if (g_drops) p_drops : assert (written == whole && good == whole && !mid);
    p_told : assert (dropped == g_drops);
    // Only what is right becomes a packet, with its last segment.
    if (g_runs && !g_right) p_right : assert (whole == g_whole);
    // What is offered stays, and ends with the end of a packet.
    if (g_waits) p_stays : assert (out_valid && out_word == g_word);
    if (out_valid && at_t'(read + at_t'(1)) == whole) p_ends : assert (out_last);
    // There is room for what is stored, and who waits for room waits for a packet that leaves.
    p_room : assert (32'(at_t'(written - read)) <= Beats);
    if (!in_ready) p_waits : assert (at_t'(whole - read) != '0);
    // Segments of a packet follow its first one.
    if (keeps && !is_first) p_follows : assert (mid);

    i_order : assert (32'(at_t'(whole - read)) <= 32'(at_t'(good - read))
        && 32'(at_t'(good - read)) <= 32'(at_t'(written - read)));
    if (!mid) i_mid : assert (good == whole);
    if (!started) i_started : assert (written == good && !spoilt);
    if (started && !spoilt && left == '0) i_stored : assert (written != good);
    if (started && !spoilt && left == '0 && is_last) i_last : assert (f_ends_packet);
    if (whole != read) i_ends : assert (f_kept_ends);
    i_valid : assert (!out_valid || whole != read);
    if (out_valid) i_data : assert (out_word == f_words[read[AddressWidth-1:0]]);
    if (started && !spoilt) i_left : assert (32'(left) <= Most);
  end
end
