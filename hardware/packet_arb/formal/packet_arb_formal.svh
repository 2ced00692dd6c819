// What is proved of `packet_arb`, without bound, by k-induction.
//
// A shadow sees the ports only. It knows whose turn is next and which packet has begun, and follows
// one sender, chosen freely. Nothing is assumed: senders may offer anything at any time, and
// channels may take beats or not.

typedef logic [SenderWidth:0] steps_t;

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *)sender_t who;
always_comb assume (32'(who) < Inputs);

// ---- Whose turn is next; the packet that has begun; how many packets of others began while the
// next one of `who` could.

sender_t g_next, g_owner;
logic g_mid;
channel_t g_channel;
steps_t g_passed;

wire bits_t f_served = in_valid & in_ready;
sender_t f_server;
// How far those are behind the one whose turn is next, cyclically.
steps_t f_who_steps, f_server_steps;
// Senders whose packet can begin; another one of them goes before `who`.
bits_t f_can;
logic f_other_first;
logic f_who_room;
always_comb begin
  f_server = '0;
  for (int unsigned each = 0; each < Inputs; each++) begin
    if (f_served[each]) f_server = sender_t'(each);
    f_can[each] = 1'b0;
    for (int unsigned at = 0; at < Channels; at++) begin
      if (in_channel[each] == channel_t'(at)) f_can[each] = in_valid[each] && out_ready[at];
    end
  end
  f_who_room = 1'b0;
  for (int unsigned at = 0; at < Channels; at++) begin
    if ((g_mid ? g_channel : in_channel[who]) == channel_t'(at)) f_who_room = out_ready[at];
  end
  f_who_steps = steps_t'(who) - steps_t'(g_next);
  f_server_steps = steps_t'(f_server) - steps_t'(g_next);
  if (who < g_next) f_who_steps += steps_t'(Inputs);
  if (f_server < g_next) f_server_steps += steps_t'(Inputs);
  f_other_first = 1'b0;
  for (int unsigned step = 0; step < Inputs; step++) begin
    if (step < 32'(f_who_steps) && f_can[(32'(g_next)+step)%Inputs]) f_other_first = 1'b1;
  end
end
wire f_begins = !g_mid && f_served != '0;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (f_served != '0) g_mid <= !in_last[f_server];
  if (f_begins) begin
    g_owner <= f_server;
    g_channel <= in_channel[f_server];
    g_next <= (32'(f_server) == Inputs - 1) ? '0 : f_server + sender_t'(1);
    g_passed <= g_passed + steps_t'(1);
  end
  if (!g_mid && (!f_can[who] || f_served[who])) g_passed <= '0;
  if (rst) begin
    g_mid <= 1'b0;
    g_next <= '0;
    g_passed <= '0;
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // One beat goes at most, and it is what its sender offers: nothing is lost or doubled.
    p_one : assert ((f_served & (f_served - bits_t'(1))) == '0);
    p_goes : assert (out_valid == (f_served != '0));
    if (f_served != '0)
      p_same :
      assert (out_last == in_last[f_server] && out_to == in_to[f_server]
          && out_route == in_route[f_server] && out_data == in_data[f_server]);
    // Only beats of the packet that has begun go until its last one has, into the channel of the
    // first one.
    if (g_mid && f_served != '0) p_unmixed : assert (f_server == g_owner);
    if (f_served != '0)
      p_channel : assert (out_channel == (g_mid ? g_channel : in_channel[f_server]));
    // What goes is taken.
    if (out_valid) p_room : assert (32'(out_channel) < Channels && out_ready[out_channel]);

    // A sender is ready exactly if its channel is, and its packet has begun or no other one that
    // can begin goes before it.
    p_ready :
    assert (in_ready[who] == (f_who_room && (g_mid ? g_owner == who : !f_other_first)));
    // No packet that can begin waits for an idle crossbar: none blocks the others.
    // shows: C-27
    if (!g_mid && f_can != '0) p_work : assert (f_served != '0);
    if (g_mid && g_owner == who && in_valid[who] && f_who_room) p_goes_on : assert (f_served[who]);

    // Sender 0 goes first. Then the next one that can does, cyclically.
    if ($past(rst) && f_can[0]) p_starts : assert (f_served[0]);
    if (f_begins && f_can[who]) p_turn : assert (f_server_steps <= f_who_steps);
    // So at most a packet of each other sender begins before one that can.
    if (!g_mid && f_can[who]) p_fair : assert (32'(g_passed) < Inputs);

    // So that induction needs no bound.
    i_next : assert (32'(g_next) < Inputs);
    for (int unsigned each = 0; each < Inputs; each++) begin
      assert (f_from_pointer[each] == {Inputs{1'b1}} << g_next);
    end
    i_passed : assert (32'(g_passed) + 32'(f_who_steps) < Inputs);
    i_mid : assert (mid == g_mid);
    if (g_mid)
      i_packet : assert (owner == g_owner && channel == g_channel && 32'(g_owner) < Inputs);
  end
end
