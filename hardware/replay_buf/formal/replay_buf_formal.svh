// What is proved of `replay_buf`, without bound, by k-induction.
//
// A shadow remembers of each place which beat it has: its payload, whether it is the first or the
// last one of its frame, and the frame's number. What enters, leaves, is acknowledged or refused
// is free: nothing is assumed of the other layers or of the far side.

localparam int unsigned Slots = 2 ** AddressWidth;
localparam int unsigned Half = 2 ** (SequenceWidth - 1);

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// ---- The shadow.

logic [Slots-1:0][Width-1:0] g_data;
logic [Slots-1:0] g_first, g_last;
logic [Slots-1:0][SequenceWidth-1:0] g_sequence;
// A frame has begun to enter and has not ended. Frames that entered whole.
logic g_writes;
sequence_t g_filled;
// The frame that leaves for the first time next, and the oldest one that is not acknowledged.
sequence_t g_fresh, g_oldest;
// The beat that has just entered.
logic g_entered;

// Of an acknowledgement at the ports: how many frames it newly names.
wire sequence_t f_named = ack_sequence + sequence_t'(1) - g_oldest;
wire f_is_sound = f_named <= sequence_t'(g_fresh - g_oldest);

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_entered  <= enters && !rst;
  if (rst) begin
    g_writes <= 1'b0;
    g_filled <= '0;
    g_fresh  <= '0;
    g_oldest <= '0;
  end else begin
    if (enters) begin
      g_data[written[AddressWidth-1:0]] <= in_data;
      g_last[written[AddressWidth-1:0]] <= in_last;
      g_first[written[AddressWidth-1:0]] <= !g_writes;
      g_sequence[written[AddressWidth-1:0]] <= g_filled;
      g_writes <= !in_last;
      g_filled <= g_filled + sequence_t'(in_last);
    end
    if (ends && !out_again) g_fresh <= g_fresh + sequence_t'(1);
    if (takes && f_is_sound) g_oldest <= g_oldest + f_named;
  end
end

// ---- Places as distances from the oldest beat that is kept.

wire count_t f_kept = stale ? read : base;
wire count_t f_held = written - f_kept;
wire count_t f_base = base - f_kept;
wire count_t f_read = read - f_kept;
wire [AddressWidth-1:0] f_at_base = base[AddressWidth-1:0];
wire [AddressWidth-1:0] f_at_read = read[AddressWidth-1:0];
wire [AddressWidth-1:0] f_newest = written[AddressWidth-1:0] - AddressWidth'(1);
// The number of the oldest frame that is kept.
wire sequence_t f_sequence = stale ? current : oldest;

logic [Slots-1:0] f_is_held;
logic [Slots-1:0][AddressWidth-1:0] f_from_kept;
always_comb begin
  for (int unsigned s = 0; s < Slots; s++) begin
    f_from_kept[s] = AddressWidth'(s) - f_kept[AddressWidth-1:0];
    f_is_held[s]   = count_t'(f_from_kept[s]) < f_held;
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // It never holds more than it has places, and a free place can be used.
    // shows: S-17
    p_bound : assert (f_held <= count_t'(Depth) && room == count_t'(Depth) - f_held);
    // If all frames that entered are acknowledged, all places are free once none of them leaves.
    if (g_oldest == g_filled && !g_writes && !acking && !stale) begin
      p_room : assert (room == count_t'(Depth));
    end
    // The oldest frame that is not acknowledged is there, from its first beat on, and so are all
    // behind it.
    if (!acking) begin
      // shows: S-16
      p_kept : assert (oldest == g_oldest);
      if (f_base < f_held) begin
        p_oldest : assert (g_first[f_at_base] && g_sequence[f_at_base] == g_oldest);
      end else begin
        p_none : assert (g_oldest == g_filled && !g_writes);
      end
    end
    // A beat leaves as it came, with the number of its frame.
    if (out_valid) begin
      p_same : assert (out_data == g_data[f_at_read] && out_last == g_last[f_at_read]);
      p_number : assert (out_sequence == g_sequence[f_at_read]);
      // Frames leave whole.
      p_whole : assert (mid != g_first[f_at_read]);
      // A frame leaves for the first time once, in the order of entry.
      p_once : assert (out_again || out_sequence == g_fresh);
      // What leaves again has left before.
      p_again : assert (!out_again || sequence_t'(g_fresh - out_sequence - sequence_t'(1)) < Half);
    end
    // Beats of a frame follow each other.
    if ($past(leaves) && !$past(out_last) && !$past(rst)) begin
      p_follows : assert (read == $past(read) + count_t'(1));
    end
    if (!$past(rst)) begin
      // Behind a frame comes the next one, or what was the oldest one.
      if ($past(ends)) begin
        p_order :
        assert (current == ($past(jump) ? $past(oldest) : $past(current) + sequence_t'(1)));
      end
      // An acknowledged frame does not begin to leave.
      if (out_valid && !mid && ($past(ends) || !$past(out_valid)))
        p_acked : assert (sequence_t'(current - $past(oldest)) < Half);
      // A NAK or a timeout has the oldest frame sent again.
      if ($past(replays) || $past(timed_out)) p_replay : assert (jump);
      // A beat that waits is offered in the next cycle at the latest.
      if ($past(read) != $past(written) && !$past(leaves) && !$past(jumps)) begin
        p_offered : assert (out_valid);
      end
      if ($past(jumps) && $past(base) != $past(written)) p_restarts : assert (out_valid);
      // A number that was never sent is refused, and nothing else.
      if ($past(takes)) begin
        p_refused :
        assert (refused == (!$past(f_is_sound) && $past(f_named) < Half) && acking == !refused);
      end
      // Acknowledgements are taken in every second cycle at least.
      if (!$past(ack_ready)) p_taken : assert (ack_ready);
      // The timer runs on until something is acknowledged, or all is sent again.
      if ($past(timer) != '0 && !$past(renews) && !$past(progress)) begin
        p_timer : assert (timer == $past(timer) + TimerWidth'(1) && timer <= ReplayAfter);
      end
    end
    // If a frame that was sent is not acknowledged, the timer runs, or it is sent again.
    if (oldest != sent) begin
      p_remembered : assert (timer != '0 || jump || current != sent);
    end
    // The timer runs for such a frame only.
    if (timer != '0) p_idle : assert (oldest != sent);

    // So that induction needs no bound: registers, tables and memories follow the shadow.
    i_ghosts : assert (filled == AddressWidth'(g_filled) && sent == g_fresh);
    i_found : assert (g_oldest == oldest + (acking ? acks : '0));
    for (int unsigned s = 0; s < Slots; s++) begin
      if (f_is_held[s]) begin
        assert (f_beats[s] == {g_last[s], g_data[s]});
        assert (sequence_t'(g_sequence[s] - f_sequence) <= sequence_t'(f_from_kept[s]));
        if (count_t'(f_from_kept[s]) + count_t'(1) < f_held) begin
          assert (g_first[(s+1)%Slots] == g_last[s]);
          assert (g_sequence[(s+1)%Slots] == g_sequence[s] + sequence_t'(g_last[s]));
        end
        if (g_last[s]) begin
          assert (f_ends[g_sequence[s][AddressWidth-1:0]]
                  == f_kept + count_t'(f_from_kept[s]) + count_t'(1));
        end
      end
    end
    i_filled : assert (sequence_t'(g_filled - f_sequence) <= sequence_t'(f_held));
    if (f_held != '0) begin
      i_newest : assert (g_last[f_newest] == !g_writes);
      i_number : assert (g_filled == g_sequence[f_newest] + sequence_t'(g_last[f_newest]));
    end
    i_base : assert (f_base <= f_held);
    if (f_base < f_held) begin
      i_oldest : assert (g_first[f_at_base] && g_sequence[f_at_base] == oldest);
    end else begin
      i_none : assert (oldest == g_filled && !g_writes);
    end
    i_read : assert (f_read <= f_held);
    if (f_read < f_held) begin
      i_current : assert (g_sequence[f_at_read] == current && g_first[f_at_read] == !mid);
    end else begin
      i_waits : assert (current == g_filled && mid == g_writes);
    end
    i_valid : assert (out_valid == (written - read != count_t'(g_entered)));
    i_entered : assert (!g_entered || written != read);
    if (out_valid) i_output : assert ({out_last, out_data} == f_beats[f_at_read]);
    i_sent : assert (sequence_t'(sent - oldest) <= sequence_t'(g_filled - oldest));
    i_window : assert (sequence_t'(g_filled - oldest) <= Depth);
    if (stale) begin
      i_stale : assert (jump && (out_valid || mid) && f_base != '0);
      i_before : assert (sequence_t'(oldest - current - sequence_t'(1)) < sequence_t'(Depth));
    end else begin
      i_after : assert (sequence_t'(current - oldest) <= sequence_t'(sent - oldest));
    end
    if (acking) begin
      i_acks : assert (acks <= sequence_t'(sent - oldest));
      if (acks != '0) begin
        i_base_found :
        assert (base_found == f_ends[AddressWidth'(oldest + acks - sequence_t'(1))]);
      end
    end
    i_timer : assert (timer <= ReplayAfter);
  end
end
