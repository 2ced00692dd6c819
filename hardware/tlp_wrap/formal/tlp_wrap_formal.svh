// What is proved of `tlp_wrap`, without bound, by k-induction. That beats leave in their order is
// what `stream_fifo` is proved to do. The check is compared in lock-step.

localparam int unsigned F_BITS = 16;
typedef logic [F_BITS-1:0] f_t;

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// The cycle before: nothing was taken of what was offered, a packet left, and what came entered.
logic g_waits, g_left, g_entered, g_ended;
logic [127:0] g_data;
// Beats of the TLP that have left.
f_t g_gone;

// Beats that segments in the queue have, of which those of the TLP that leaves may have left.
f_t f_sum;
logic [SegmentAddress:0] f_held;
logic [BeatAddress:0] f_count;
logic f_are_sized;
assign f_held = f_segments_written - f_segments_read;
assign f_count = f_written - f_read;
always_comb begin
  f_sum = '0;
  f_are_sized = 1'b1;
  for (int unsigned at = 0; at < 2**SegmentAddress; at++) begin
    logic [SegmentAddress-1:0] place;
    logic [CountWidth-1:0] size;
    place = f_segments_read[SegmentAddress-1:0] + SegmentAddress'(at);
    size = f_segments[place][CountWidth-1:0];
    if (at < 32'(f_held)) begin
      f_sum = f_sum + f_t'(size);
      f_are_sized = f_are_sized && size != '0 && 32'(size) <= Most;
    end
  end
end

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_waits <= out_valid && !out_ready && !rst;
  g_data <= out_data;
  g_left <= takes_segment && is_last && !rst;
  g_entered <= takes && !rst;
  g_ended <= takes && ends && !rst;
  if (rst) g_gone <= '0;
  else if (leaves) g_gone <= out_last ? '0 : g_gone + f_t'(1);

  if (past_reset && !rst) begin
    // A TLP begins with a header: a write of the channel, with as many DWs as follow.
    if (out_valid && g_gone == '0) begin
      p_header : assert (out_data[15:0] == (16'h0060 | 16'(Channel) << 12)
          && {out_data[17:16], out_data[31:24]} == 10'(4 * length) && out_data[23:18] == 6'h20
          && out_data[127:120] == {2'b00, is_first, is_last, to});
    end
    // It ends with a beat behind these.
    if (out_valid) p_length : assert (out_last == (g_gone == f_t'(length) + f_t'(1)));
    // No gap is in it, and what is offered stays.
    if (g_gone != '0) p_gapless : assert (out_valid);
    if (g_waits) p_stays : assert (out_valid && out_data == g_data);
    // A place is free when its packet has left.
    p_credit : assert (credit == g_left);

    i_mid : assert (mid == (g_gone != '0));
    if (mid) i_left : assert (has_segment && left <= length && f_t'(left) + g_gone == f_t'(length) + f_t'(1));
    i_count : assert (32'(count) < Most);
    i_sized : assert (f_are_sized && 32'(f_held) <= Segments);
    i_sum : assert (f_t'(f_count) + (mid ? g_gone - f_t'(1) : f_t'(0))
        == f_sum + f_t'(count));
    i_room : assert (32'(f_count) <= Beats);
    if (g_entered && !g_ended) i_entered : assert (count != '0);
    if (g_ended) i_ended : assert (g_entered && count == '0 && f_held != '0);
    i_segment : assert (has_segment == (32'(f_held) != 32'(g_ended)));
    i_beat : assert (has_beat == (32'(f_count) != 32'(g_entered)));
    if (has_segment) begin
      i_front : assert ({is_first, is_last, to, length}
          == f_segments[f_segments_read[SegmentAddress-1:0]]);
    end
    if (has_beat) i_data : assert (beat == f_words[f_read[BeatAddress-1:0]]);
  end
end
