// What is proved of `rx_dispatch`, without bound, by k-induction.
//
// A shadow reads each header by itself, and counts what comes behind it. It says what each buffer
// must be given: which beats, and which packets are kept. `rx_buf_formal.svh` says that a buffer
// gives just that, and what it assumes is proved here. Nothing is assumed: any beat may come at any
// time, with any answer.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// A count of bytes behind the header.
typedef logic [13:0] body_t;

// ---- The header that comes, if one does.

// A packet comes; it is right so far. Its class, its ends, its bytes of payload, those that came.
logic g_coming, g_right, g_class;
logic [EndWidth-1:0] g_source;
logic [PairWidth-1:0] g_pair;
body_t g_data, g_came;
// The answer about its key comes in this cycle.
logic q_asks;
// The first word of a beat has left.
logic g_upper;

wire f_takes = in_valid && in_ready;
wire f_head = f_takes && !g_coming;
wire [31:0] f_dw0 = {in_data[7:0], in_data[15:8], in_data[23:16], in_data[31:24]};
wire [31:0] f_dw1 = {in_data[39:32], in_data[47:40], in_data[55:48], in_data[63:56]};
wire [31:0] f_dw2 = {in_data[71:64], in_data[79:72], in_data[87:80], in_data[95:88]};
wire [31:0] f_dw3 = {in_data[103:96], in_data[111:104], in_data[119:112], in_data[127:120]};
wire f_nap = f_dw0[15:12] == 4'd5;
wire f_put = f_dw0[15:12] == 4'd6;
wire f_get = f_dw0[15:12] == 4'd7;
wire [10:0] f_dwords = (f_dw0[9:0] == '0) ? 11'd1024 : 11'(f_dw0[9:0]);
wire [3:0] f_first = f_dw1[3:0];
wire [3:0] f_last = f_dw1[7:4];
wire [2:0] f_ones = 3'(f_first[0]) + 3'(f_first[1]) + 3'(f_first[2]) + 3'(f_first[3]);
wire [2:0] f_last_ones = 3'(f_last[0]) + 3'(f_last[1]) + 3'(f_last[2]) + 3'(f_last[3]);
// Bytes before the first one.
wire [1:0] f_lead = (f_first == '0 || f_first[0]) ? 2'd0 : f_first[1] ? 2'd1
    : f_first[2] ? 2'd2 : 2'd3;
wire f_goes_on = f_first == 4'h8 || f_first == 4'hc || f_first == 4'he || f_first == 4'hf;
wire f_ends_run = f_last == 4'h1 || f_last == 4'h3 || f_last == 4'h7 || f_last == 4'hf;
wire f_inside = f_first != 4'h5 && f_first != 4'h9 && f_first != 4'ha && f_first != 4'hb
    && f_first != 4'hd;
wire f_run = (f_dwords == 11'd1) ? f_last == '0 && f_inside : f_goes_on && f_ends_run;
wire [12:0] f_bytes = (f_dwords == 11'd1) ? 13'(f_ones)
    : (13'(f_dwords) - 13'd2) * 13'd4 + 13'(f_ones) + 13'(f_last_ones);
wire [39:0] f_address = {f_dw2[7:0], f_dw3[31:2], f_lead};
wire f_below = 41'(f_address) + 41'(f_bytes) <= {1'b1, 40'b0};
// A descriptor has whole beats, and at least one.
wire f_descriptor = f_bytes != '0 && f_bytes % 13'd16 == '0;
wire f_form = f_dw0[31:23] == 9'h0c0 && f_dw0[19:16] == '0 && f_dw0[11:10] == '0
    && f_dw2[13:9] == '0 && f_dw3[1:0] == '0 && f_run
    && ((f_put && f_below) || (f_nap && f_address == '0 && f_bytes <= 13'd2048)
        || (f_get && f_address == '0 && f_descriptor));
wire body_t f_data = body_t'(f_dwords) * body_t'(4);
// Header, payload and the longest tail; or the payload of a GET.
wire f_fits = f_get ? 32'(f_data) <= 16 * GetBeats : 32'(f_data) + 32 <= 16 * DataBeats;
wire f_ours = !f_get || f_dw2[22:19] == cpu;
wire f_right = f_head && !in_last && f_form && f_get == in_class && f_fits && f_ours;

// ---- A beat behind it.

wire f_refuses = q_asks && !packet_fits;
wire f_body = f_takes && g_coming && g_right && !f_refuses;
wire body_t f_came = g_came + body_t'(in_to) + body_t'(1);
// The tail has up to 16 bytes.
wire f_length = in_last ? f_came >= g_data && f_came <= g_data + body_t'(16) : g_came < g_data;
wire f_whole = f_body && in_last && f_length;
wire f_drops = f_refuses || (f_body && !f_length);

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (f_takes) g_coming <= !in_last;
  if (f_head) begin
    g_right <= f_right;
    g_class <= in_class;
    g_source <= f_dw2[31:23];
    g_pair <= f_dw2[18:14];
    g_data <= f_data;
    g_came <= '0;
  end else begin
    if (f_drops) g_right <= 1'b0;
    if (f_body) g_came <= g_came + body_t'(16);
  end
  q_asks <= f_right && f_get;
  if (get_valid && get_ready) g_upper <= !g_upper;
  if (rst) {g_coming, q_asks, g_upper} <= '0;
end

// ---- What the buffer of one class, chosen freely, is given: a packet that is stored comes, its
// beats, and whether the last of these was the last.

(* anyconst *)logic one;
logic g_stored, g_ended;
logic [9:0] g_beats;
wire f_stores = buf_stores[one];
wire f_ends = buf_keeps[one] || buf_drops[one];
wire [9:0] f_room = one ? 10'(GetBeats) : 10'(DataBeats);

always_ff @(posedge clk) begin
  g_stored <= (g_stored || buf_begins[one]) && !f_ends;
  g_beats <= f_ends ? '0 : g_beats + 10'(f_stores);
  g_ended <= (g_ended || (f_stores && buf_lasts[one])) && !f_ends;
  if (rst) {g_stored, g_beats, g_ended} <= '0;
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // What a buffer assumes: packets of a class come one after the other, and with a place.
    if (buf_begins[one]) p_begins : assert (has_place[one] && !g_stored);
    if (f_stores || f_ends) begin
      p_one : assert ((g_stored || buf_begins[one]) && !(buf_keeps[one] && buf_drops[one]));
    end
    // They have room, and end with the last beat that is stored.
    if (f_stores) p_fits : assert (g_beats < f_room && !g_ended);
    if (buf_keeps[one]) p_ends : assert (g_ended || (f_stores && buf_lasts[one]));

    // A packet takes a place with its header, whatever it is. It is kept exactly if it is right to
    // its end, and otherwise dropped at once.
    p_takes : assert (buf_begins[one] == (f_head && in_class == one));
    p_keeps : assert (buf_keeps[one] == (f_whole && g_class == one));
    p_drops :
    assert (buf_drops[one] == ((f_head && !f_right && in_class == one)
        || (f_drops && g_class == one)));
    // Of a PUT or a NAP each beat is stored, and nothing else.
    p_data :
    assert (buf_stores[0] == ((f_head && !in_class) || (f_body && !g_class))
        && (!buf_stores[0] || buf_lasts[0] == in_last));
    // Of a GET the beats of its payload are, with its ends.
    p_payload : assert (buf_stores[1] == (f_body && g_class && g_came < g_data));
    if (buf_stores[1]) begin
      p_beat :
      assert (get_beat == {g_source, g_pair, in_data}
          && buf_lasts[1] == (g_came + body_t'(16) >= g_data));
    end
    // It leaves as two words.
    p_words :
    assert (takes_beat == (get_ready && g_upper) && get_last == (beat_last && g_upper)
        && get_word == (g_upper ? beat[127:64] : beat[63:0]));

    // A beat waits only if it is a header, and its class has no place.
    p_ready : assert (in_ready == (g_coming || has_place[in_class]));
    // A GET asks for its key with its header, if that is right.
    // shows: C-09
    p_asks :
    assert (packet_valid == (f_right && f_get)
        && (!packet_valid || (packet_pair == f_dw2[18:14] && packet_key == f_dw1[15:8])));

    if (!$past(rst)) begin
      if ($past(get_valid && !get_ready)) begin
        p_get_stays :
        assert (get_valid && get_last == $past(get_last) && get_word == $past(get_word)
            && get_source == $past(get_source) && get_pair == $past(get_pair));
      end
      // What is dropped is told with the first reason, and nothing else is told.
      // shows: C-37
      p_unknown : assert (unknown == $past(f_head && !in_last && !f_form));
      p_misrouted : assert (misrouted == $past(f_head && !in_last && f_form && f_get != in_class));
      p_oversized :
      assert (oversized == $past(f_head && !in_last && f_form && f_get == in_class && !f_fits));
      p_refused :
      assert (refused == $past(f_refuses
          || (f_head && !in_last && f_form && f_get == in_class && f_fits && !f_ours)));
      p_mismatched : assert (mismatched == $past((f_head && in_last) || (f_body && !f_length)));
    end

    // So that induction needs no bound.
    i_coming : assert (coming == g_coming && asks == q_asks && upper == g_upper);
    i_stored : assert (g_stored == (g_coming && g_right && g_class == one));
    if (!g_stored) i_none : assert (g_beats == '0 && !g_ended);
    if (q_asks) i_asks : assert (g_coming && g_right && g_class);
    if (g_coming) begin
      i_packet : assert (right == g_right && class_of == g_class);
      if (g_right) begin
        i_ends : assert (source == g_source && pair == g_pair);
        i_left : assert ({left, 2'b00} == g_data - g_came);
        i_sizes :
        assert (g_data[1:0] == '0 && g_came[3:0] == '0 && g_data != '0
            && g_came < g_data + body_t'(16)
            && 32'(g_data) <= (g_class ? 16 * GetBeats : 16 * (DataBeats - 2)));
        if (g_class) i_payload : assert (g_data[3:0] == '0);
      end
    end
    if (g_stored) begin
      i_beats : assert (g_beats == 10'(g_came >> 4) + 10'(!one));
      i_ended : assert (g_ended == (one && g_came >= g_data));
    end
  end
end
