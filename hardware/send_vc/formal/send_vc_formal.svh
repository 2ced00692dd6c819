// What is proved of `send_vc`, without bound, by k-induction. Beats enter with any header; room and
// credits are as they want, but credits that are there stay until they are taken.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// ---- The shadow.

// Beats of the packet that leaves, by its header, and those that have left.
logic g_mid, g_channel;
beats_t g_beats, g_left;
// By channel: beats that have entered and left, as a place in its queue's memory, and what entered.
logic [Channels-1:0][AddressWidth:0] g_written, g_read;
logic [Channels-1:0][2**AddressWidth-1:0][Width:0] g_words;
// A beat entered in the cycle before.
logic [Channels-1:0] g_entered;
// A packet could begin, and did not yet; one of the other channel began since.
logic [Channels-1:0] g_could, g_passed;
wire [Channels-1:0] f_can = waits & allowed & {Channels{!mid}};
// All of the packet in front has room.
logic [Channels-1:0] f_fits;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_entered  <= rst ? '0 : in_valid & in_ready;
  if (rst) begin
    g_mid <= 1'b0;
    g_written <= '0;
    g_read <= '0;
    g_could <= '0;
    g_passed <= '0;
  end else begin
    if (out_valid) g_mid <= !out_last;
    if (starts) begin
      g_channel <= channel;
      g_beats <= beats_t'(length[channel] >> 2) + beats_t'(2);
    end
    if (out_valid) g_left <= g_mid ? g_left + beats_t'(1) : beats_t'(1);
    for (int unsigned at = 0; at < Channels; at++) begin
      if (in_valid[at] && in_ready[at]) begin
        g_words[at][g_written[at][AddressWidth-1:0]] <= {in_last[at], in_data[at]};
        g_written[at] <= g_written[at] + (AddressWidth + 1)'(1);
      end
      g_read[at]   <= g_read[at] + (AddressWidth + 1)'(takes[at]);
      g_could[at]  <= !begins[at] && (f_can[at] || g_could[at]);
      g_passed[at] <= !begins[at] && ((f_can[at] && starts) || g_passed[at]);
    end
  end
end

// A channel, whichever.
(* anyconst *) logic f_at;
wire [Width:0] f_front = g_words[f_at][g_read[f_at][AddressWidth-1:0]];
wire [LengthWidth-1:0] f_length = length[f_at];

always_comb begin
  for (int unsigned at = 0; at < Channels; at++) begin
    f_fits[at] = 32'(length[at] >> 2) + 2 <= 32'(room);
    // A packet that could begin can still begin.
    if (g_could[at]) assume (allowed[at]);
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // Beats leave as they entered, in their order, and each once.
    if (takes[f_at]) begin
      p_same : assert (out_data == f_front[Width-1:0] && g_read[f_at] != g_written[f_at]);
    end
    p_one : assert (out_valid == (takes != '0) && takes != '1);
    // A packet begins with its credits, and with room for all of it.
    if (begins[f_at]) begin
      // shows: S-15
      p_allowed : assert (allowed[f_at] && waits[f_at]);
      p_room : assert (f_fits[f_at]);
    end
    // The cost is that of its payload: a credit for 4 DWs.
    if (waits[f_at] && !mid) begin
      p_cost : assert (32'(cost[f_at]) == 32'(f_length >> 2) + 32'(f_length[1:0] != 2'd0));
    end
    // Between the beats of a packet comes none of the other channel.
    if (g_mid && takes[f_at]) p_whole : assert (g_channel == f_at && !begins[f_at]);
    // What a packet is not is told, and nothing else.
    p_malformed :
    assert (malformed[f_at] == (takes[f_at] && (f_front[Width] != out_last || (!g_mid
        && (f_front[7:0] != 8'h60 || f_front[15:8] != 8'({f_at, 4'b0}) || f_length > 128)))));
    // A packet that can begin lets one of the other channel begin before, at most.
    // shows: S-14
    if (g_passed[f_at]) p_fair : assert (!begins[!f_at]);
    // It has as many beats as its header says.
    if (out_valid && g_mid) p_length : assert (out_last == (g_left + beats_t'(1) == g_beats));
    if (out_valid && !g_mid) p_header : assert (!out_last && starts);
    // A beat that is there leaves; if what can begin has room, something begins.
    if (mid) p_flows : assert (out_valid == waits[current]);
    if (!mid && (f_can & f_fits) == f_can) p_begins : assert (out_valid == (f_can != '0));

    i_mid : assert (mid == g_mid);
    if (mid) begin
      i_current : assert (current == g_channel && left == g_beats - g_left);
      i_left : assert (g_left < g_beats && g_left != '0 && g_beats <= beats_t'(257));
    end
    i_pointer : assert (f_from_pointer[1]);
    if (g_passed[0]) i_first : assert (f_from_pointer == 2'b11);
    if (g_passed[1]) i_second : assert (f_from_pointer == 2'b10);
    for (int unsigned at = 0; at < Channels; at++) begin
      assert (g_written[at] == f_written[at] && g_read[at] == f_read[at]);
      assert (g_written[at] - g_read[at] <= (AddressWidth + 1)'(Depth));
      assert (!g_entered[at] || g_written[at] != g_read[at]);
      assert (waits[at] == (g_written[at] - g_read[at] != (AddressWidth + 1)'(g_entered[at])));
      for (int unsigned s = 0; s < 2 ** AddressWidth; s++) begin
        if ({1'b0, AddressWidth'(s) - g_read[at][AddressWidth-1:0]} < g_written[at] - g_read[at])
        begin
          assert (f_words[at][s] == g_words[at][s]);
        end
      end
      if (g_could[at]) assert (waits[at] && !(mid && current == 1'(at)));
      if (g_passed[at]) assert (g_could[at]);
    end
  end
end
