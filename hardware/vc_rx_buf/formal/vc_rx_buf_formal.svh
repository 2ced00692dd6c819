// What is proved of `vc_rx_buf`, without bound, by k-induction. Of the link it is assumed that no
// packet is longer than `Longest`, and that a packet that is delivered is a TLP: it has two beats.
// Senders without credits, wrong packets and their verdicts come as they want.

localparam int unsigned Slots = 2 ** AddressWidth;

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// ---- The shadow.

// Of each place: the beat that came, whether it begins or ends a packet, and whether that is bad.
logic [Slots-1:0][Width-1:0] g_data;
logic [Slots-1:0][1:0] g_empty;
logic [Slots-1:0] g_first, g_last, g_bad;
// Beats of the packet that comes, that it may leave early, and the credits that were there when it
// began to.
count_t g_came;
logic g_early;
logic [HeaderWidth-1:0] g_headers;
data_t g_credits;
// Packets that were kept, and those of them that have left.
logic [HeaderWidth:0] g_kept, g_gone;
// Up to here beats could be offered in the cycle before.
count_t g_limit;

wire f_starts = in_valid && g_came == '0;
wire [HeaderWidth-1:0] f_headers = f_starts ? f_free_headers : g_headers;
wire data_t f_credits = f_starts ? f_free_data : g_credits;
// The packet's cost, by all of its beats.
wire data_t f_cost = data_t'(g_came) - data_t'(in_empty == 2'd3);

always_comb begin
  if (in_valid) assume (in_last || g_came + count_t'(1) < count_t'(Longest));
  if (in_valid && in_last && in_deliver) assume (g_came != '0);
end

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_limit <= rst ? '0 : limit;
  if (rst) begin
    g_came <= '0;
    g_kept <= '0;
    g_gone <= '0;
  end else begin
    if (in_valid) g_came <= in_last ? '0 : g_came + count_t'(1);
    if (f_starts) begin
      g_early   <= in_early;
      g_headers <= f_free_headers;
      g_credits <= f_free_data;
    end
    if (writes) begin
      g_data[written[AddressWidth-1:0]] <= in_data;
      g_empty[written[AddressWidth-1:0]] <= in_empty;
      g_first[written[AddressWidth-1:0]] <= f_starts;
      g_last[written[AddressWidth-1:0]] <= in_last;
      g_bad[written[AddressWidth-1:0]] <= in_last && !kept;
    end
    g_kept <= g_kept + (HeaderWidth + 1)'(kept);
    g_gone <= g_gone + (HeaderWidth + 1)'(leave_valid);
  end
end

// ---- What the places have, from the oldest one on: packets that are kept and their data credits,
// and bad ones.

wire count_t f_held = written - read;
// Beats of whole packets that have not left; none if the packet that comes has begun to leave.
wire count_t f_whole = begun ? '0 : whole - read;
count_t f_packets, f_bads, f_beats_of;
data_t f_data;
logic f_is_right;
logic [AddressWidth-1:0] f_at;
always_comb begin
  f_packets = '0;
  f_bads = '0;
  f_data = '0;
  f_is_right = 1'b1;
  f_at = read[AddressWidth-1:0];
  // Beats of the packet so far, with those that have left.
  f_beats_of = left;
  for (int unsigned k = 0; k < Slots; k++) begin
    if (count_t'(k) < f_held) begin
      f_is_right = f_is_right && g_first[f_at] == (f_beats_of == '0)
          && f_beats[f_at] == {g_bad[f_at], g_last[f_at], g_empty[f_at], g_data[f_at]};
      // What comes has begun and has not ended.
      if (count_t'(k) >= f_whole) f_is_right = f_is_right && !g_last[f_at];
      if (count_t'(k) == f_whole && !begun) f_is_right = f_is_right && g_first[f_at];
      // Nothing is in front of a bad packet.
      if (g_bad[f_at]) f_is_right = f_is_right && g_last[f_at] && f_packets == '0;
      f_beats_of = f_beats_of + count_t'(1);
      if (g_last[f_at]) begin
        if (g_bad[f_at]) begin
          f_bads = f_bads + count_t'(1);
          f_is_right = f_is_right && f_beats_of <= count_t'(Longest);
        end else begin
          f_packets = f_packets + count_t'(1);
          f_data = f_data + data_t'(f_beats_of) - data_t'(2) + data_t'(g_empty[f_at] != 2'd3);
          f_is_right = f_is_right && f_beats_of >= count_t'(2) && f_beats_of <= count_t'(Longest);
        end
        f_beats_of = '0;
      end
    end
    f_at = f_at + AddressWidth'(1);
  end
  if (written == whole) f_is_right = f_is_right && f_beats_of == '0;
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // It never holds more beats than it has places.
    p_bound : assert (f_held <= count_t'(Depth));
    // A packet that is delivered is kept if it had credits when it began to come.
    if (ends && in_deliver && f_headers != '0 && f_credits >= f_cost) p_keeps : assert (kept);
    // No other one is kept, and a delivered one that is not is told of.
    p_verdict : assert (!kept || (ends && in_deliver));
    p_refused : assert (refused == (ends && in_deliver && !kept));
    // Each that is kept leaves once, and not as a bad one.
    p_once : assert (g_kept - g_gone == (HeaderWidth + 1)'(f_packets));
    // A beat leaves as it came.
    if (out_valid) begin
      p_same :
      assert (out_data == g_data[read[AddressWidth-1:0]] && out_last == g_last[read[AddressWidth-1:0]]
              && (!out_last || out_empty == g_empty[read[AddressWidth-1:0]]));
      p_there : assert (f_held != '0);
      // Packets leave whole.
      p_whole : assert (g_first[read[AddressWidth-1:0]] == (left == '0));
      // Only the last beat is bad.
      p_bad : assert (!out_bad || out_last);
      // A packet that has not ended leaves only if it may.
      if (begun || f_whole == '0) p_early : assert (g_came != '0 && g_early);
    end
    // An offered beat stays.
    if ($past(out_valid) && !$past(out_ready) && !$past(rst)) begin
      p_stays : assert (out_valid && out_data == $past(out_data) && out_last == $past(out_last));
    end
    // Beats of whole packets are offered, and so are those of one that may leave early.
    if (!$past(rst)) begin
      if (!$past(begun) && read != $past(whole)) p_offered : assert (out_valid);
      if ($past(early && has_place && !drops) && read != $past(written)) p_flows : assert (out_valid);
    end
    // A wrong packet of which nothing was offered leaves no trace.
    if ($past(ends) && !$past(kept) && !$past(begun) && !$past(rst)) begin
      p_trace : assert (written == $past(whole) && whole == $past(whole));
    end
    // Credits: those of the packets that are there, and those that are free, are all.
    p_headers : assert (f_free_headers + HeaderWidth'(f_packets) == HeaderWidth'(Headers));
    // shows: S-26
    p_data : assert (f_free_data + f_data == data_t'(Data));

    i_places : assert (f_is_right);
    i_bads : assert (f_bads <= count_t'(1));
    i_packets : assert (f_packets <= count_t'(Headers) && f_data <= data_t'(Data));
    i_held : assert (f_whole <= f_held && (begun || f_held == f_whole + came));
    i_mid : assert (mid == (g_came != '0) && g_came < count_t'(Longest));
    if (mid) begin
      i_early : assert (early == (g_early && !lost));
      i_credits : assert (g_headers <= f_free_headers && g_credits <= f_free_data);
      i_lost :
      assert (lost ? data_t'(came) >= data_t'(2) * data_t'(g_headers) + g_credits && came < g_came
                   : came == g_came);
    end else begin
      i_quiet : assert (!early && !begun && !lost && written == whole);
    end
    // What has begun to leave before its end is all that is there, and so it finds places.
    if (begun) i_begun : assert (early && mid && !lost && f_held + left == came && left <= came);
    i_left : assert (left < count_t'(Longest));
    if (f_held == '0 && !begun) i_empty : assert (left == '0);
    if (out_valid) begin
      i_valid : assert (f_held != '0 && (begun || f_whole != '0));
      i_output :
      assert ({out_bad, out_last, out_empty, out_data} == f_beats[read[AddressWidth-1:0]]);
    end
    i_limit : assert (out_valid == (read != g_limit) && g_limit - read <= f_held);
  end
end
