// What is proved of `rx_ack`, without bound, by k-induction. Frames come with any number, whenever
// they want.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// Frames that were delivered, and those of them that the sender was told.
sequence_t g_delivered, g_told;
// Cycles since one was delivered of which it was not told, up to `AcknowledgeAfter`.
logic [TimerWidth-1:0] g_waits;
// A NAK went or should go for the frame that is expected.
logic g_asked;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (rst) begin
    g_delivered <= '0;
    g_told <= '0;
    g_waits <= '0;
    g_asked <= 1'b0;
  end else begin
    if (deliver) g_delivered <= g_delivered + sequence_t'(1);
    if (told) g_told <= g_delivered;
    if (told || g_waits == '0) g_waits <= TimerWidth'(deliver);
    else if (g_waits != TimerWidth'(AcknowledgeAfter)) g_waits <= g_waits + TimerWidth'(1);
    g_asked <= (g_asked && !deliver) || discarded;
  end

  if (past_reset && !rst) begin
    // A frame is delivered exactly if it is sound and the next in order.
    // shows: S-16
    p_order : assert (deliver == (frame_valid && !frame_damaged && frame_sequence == g_delivered));
    // Each frame is one of the three.
    p_one : assert ({2'b0, deliver} + {2'b0, repeated} + {2'b0, discarded} == {2'b0, frame_valid});
    // Only frames that came before count as repeated, and none that is missing.
    if (repeated) begin
      p_repeated : assert (!frame_damaged && sequence_t'(frame_sequence - g_delivered)
                           >= sequence_t'(2 ** (SequenceWidth - 1)));
    end
    // What is told is what was delivered.
    p_told : assert (ack_sequence == sequence_t'(g_delivered - sequence_t'(1)));
    // A frame of which the sender was not told waits for `AcknowledgeAfter` cycles at most.
    if (g_waits == TimerWidth'(AcknowledgeAfter)) p_waits : assert (ack_valid);
    // A repeated frame, and the first one behind a gap, are told in the next cycle.
    if ($past(repeated) && !$past(rst)) p_again : assert (ack_valid);
    if ($past(discarded) && !$past(g_asked) && !$past(rst)) p_nak : assert (ack_valid && ack_nak);
    // No other NAK goes before a frame in order has come.
    if ($past(told) && $past(g_asked) && !$past(rst)) p_once : assert (!ack_nak);
    // Nothing is told for nothing, or taken back.
    p_quiet : assert (!ack_valid || due || g_waits != '0);
    if ($past(ack_valid) && !$past(ack_ready) && !$past(rst)) p_stays : assert (ack_valid);

    i_ghosts : assert (expected == g_delivered && timer == g_waits && asked == g_asked);
    i_lose : assert (!lose || due);
    i_timer : assert (timer <= TimerWidth'(AcknowledgeAfter));
  end
end
