// What is proved of `upload`, without bound, by k-induction.
//
// A shadow sees the ports only. It reads each header by itself, and follows one byte of the data,
// one of the tail and one lane, all chosen freely. Nothing is assumed: any beat may come at any
// time, with any answer.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *)size_t chosen;
(* anyconst *)logic [LaneWidth-1:0] chosen_tail, chosen_lane;

// A count of bytes behind the header.
typedef logic [SizeWidth:0] body_t;
typedef logic [AddressWidth:0] end_t;

// ---- The header that comes, if one does.

logic m_first;
wire f_takes = in_valid && in_ready;
wire f_head = f_takes && m_first;

wire [31:0] f_dw0 = {in_data[7:0], in_data[15:8], in_data[23:16], in_data[31:24]};
wire [31:0] f_dw1 = {in_data[39:32], in_data[47:40], in_data[55:48], in_data[63:56]};
wire [31:0] f_dw2 = {in_data[71:64], in_data[79:72], in_data[87:80], in_data[95:88]};
wire [31:0] f_dw3 = {in_data[103:96], in_data[111:104], in_data[119:112], in_data[127:120]};
wire f_put = f_dw0[15:12] == 4'd6;
wire f_nap = f_dw0[15:12] == 4'd5;
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
wire size_t f_bytes = (f_dwords == 11'd1) ? size_t'(f_ones)
    : (size_t'(f_dwords) - size_t'(2)) * size_t'(4) + size_t'(f_ones) + size_t'(f_last_ones);
wire [AddressWidth-1:0] f_address = {f_dw2[7:0], f_dw3[31:2], f_lead};
wire f_below = end_t'(f_address) + end_t'(f_bytes) <= {1'b1, AddressWidth'(0)};
wire f_form = f_dw0[31:23] == 9'h0c0 && f_dw0[19:16] == '0 && f_dw0[11:10] == '0
    && f_dw2[13:9] == '0 && f_dw3[1:0] == '0 && f_run
    && ((f_put && f_below) || (f_nap && f_address == '0 && f_bytes <= size_t'(2048)));
wire f_right = f_form && !in_last;
wire f_ours = f_right && f_dw2[22:19] == cpu;
wire f_asks = f_put && f_bytes != '0;

// ---- The packet that came last.

logic g_nap, g_wants;
logic [8:0] g_source;
logic [PairWidth-1:0] g_pair;
logic [1:0] g_lead;
size_t g_bytes;
body_t g_data;
// Where its data goes; the next byte that leaves, and bytes from it on. A write begins.
logic [AddressWidth-1:0] g_base, g_place;
size_t g_left;
logic g_begins;
// Bytes of it that came; the last one has; the tail has so many. The followed bytes.
body_t g_came;
logic g_ended, g_is_right;
fill_t g_tail_bytes;
logic [7:0] g_byte, g_tail;

// ---- What it asked for in the cycle before, and what was answered. It has a key that fits; bytes
// may be written, and which ones; there was a record; a slot was taken.

logic q_packet, q_target, g_fits, g_may, g_record, g_slot;
logic [AddressWidth-1:0] q_address, g_from;
size_t q_length, g_length;
// It waits for slot and record; it is written; its event is due.
logic g_waits, g_writes, g_due;
// Its slot stands at the input.
logic g_takes;

wire f_passes = q_packet && packet_fits && (!q_target || target_fits);
wire f_waits = f_passes || (g_waits && !q_packet);
wire f_has_record = !lacks_ring && !lacks_place;
wire f_closes = f_waits && g_wants
    && (lacks_ring || (g_nap && !lacks_place && lacks_list && !take_ready));
wire f_gets_slot = take_valid && take_ready;
wire f_answers_slot = q_target && !q_packet;
wire f_provides = (f_waits && (!g_wants || (!g_nap && f_has_record)))
    || (f_answers_slot && target_fits);

// ---- A beat of a write that stands at the output for the first time.

logic g_held;
wire f_new = out_valid && !g_held;
wire fill_t f_room = fill_t'(Lanes) - fill_t'(g_place[LaneWidth-1:0]);
wire f_ends = g_left <= size_t'(f_room);
wire fill_t f_piece = f_ends ? fill_t'(g_left) : f_room;
wire [AddressWidth-1:0] f_next = {g_place[AddressWidth-1:LaneWidth] + 1'b1, LaneWidth'(0)};
wire f_write_ends = f_ends || f_next[LimitWidth-1:0] == '0;
wire size_t f_write_room = size_t'(MaxPayload) - size_t'(g_place[LimitWidth-1:0]);
wire fill_t f_lane = fill_t'(chosen_lane) - fill_t'(g_place[LaneWidth-1:0]);
wire f_is_meant = chosen_lane >= g_place[LaneWidth-1:0] && f_lane < f_piece;
// The followed byte is in it, and where.
wire size_t f_left_before = g_bytes - g_left;
wire size_t f_ahead = chosen - f_left_before;
wire f_has_byte = chosen >= f_left_before && f_ahead < size_t'(f_piece);
wire [LaneWidth-1:0] f_byte_lane = g_place[LaneWidth-1:0] + f_ahead[LaneWidth-1:0];

// ---- A beat behind the header. The followed bytes come with it.

wire f_body = f_takes && !m_first;
wire body_t f_came = g_came + body_t'(in_to) + body_t'(1);
wire body_t f_byte_at = body_t'(g_lead) + body_t'(chosen) - g_came;
wire body_t f_tail_at = g_data + body_t'(chosen_tail) - g_came;
wire f_byte_comes = f_body && body_t'(g_lead) + body_t'(chosen) >= g_came
    && f_byte_at < body_t'(Lanes);
wire f_tail_comes = f_body && g_data + body_t'(chosen_tail) >= g_came
    && f_tail_at < body_t'(Lanes);
wire f_last_comes = f_body && in_last;
wire f_is_right = f_came >= g_data && f_came <= g_data + body_t'(Lanes);

// A beat behind the data is not the last one, or ends too late or, without data, too soon.
wire f_overruns = f_body && !in_last && g_writes && g_came >= g_data;
wire f_misses = f_last_comes && g_writes && !f_is_right && (g_came >= g_data || g_bytes == '0);

wire f_event_ends = event_valid && (event_ready || lacks_ring);

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (f_takes) m_first <= in_last;
  q_packet <= packet_valid;
  q_target <= target_valid;
  q_address <= target_address;
  q_length <= target_length;
  g_held <= out_valid && !out_ready;
  g_waits <= (f_waits && g_wants && !f_closes && !f_gets_slot && !f_provides)
      || (f_answers_slot && !target_fits);
  g_takes <= f_gets_slot;
  if (f_gets_slot) g_slot <= 1'b1;
  if (q_packet && packet_fits) g_fits <= 1'b1;
  if (q_target && target_fits) begin
    g_may <= 1'b1;
    g_from <= q_address;
    g_length <= q_length;
  end
  if (f_has_record) g_record <= 1'b1;
  if (f_provides) g_writes <= 1'b1;
  if (g_takes) {g_base, g_place} <= {2{slot_address}};
  if (f_new) begin
    g_place <= f_next;
    g_left <= g_left - size_t'(f_piece);
    g_begins <= f_write_ends;
  end
  if (f_byte_comes) g_byte <= 8'(in_data >> {f_byte_at[LaneWidth-1:0], 3'b0});
  if (f_tail_comes) g_tail <= 8'(in_data >> {f_tail_at[LaneWidth-1:0], 3'b0});
  if (f_body) begin
    g_came <= g_came + body_t'(Lanes);
    if (in_last) begin
      g_ended <= 1'b1;
      g_is_right <= f_is_right;
      g_tail_bytes <= fill_t'(f_came - g_data);
    end
  end
  if (f_last_comes && g_writes && g_wants && f_is_right) g_due <= 1'b1;
  if (f_event_ends) g_due <= 1'b0;
  if (f_overruns) g_writes <= 1'b0;
  if (f_head) begin
    g_nap <= f_nap;
    g_wants <= f_nap || f_dw2[8];
    g_source <= f_dw2[31:23];
    g_pair <= f_dw2[18:14];
    g_lead <= f_lead;
    g_bytes <= f_bytes;
    g_data <= body_t'(f_dwords) * body_t'(4);
    g_base <= f_address;
    g_place <= f_address;
    g_left <= f_bytes;
    g_begins <= 1'b1;
    {g_fits, g_may, g_record, g_slot, g_writes, g_ended, g_is_right} <= '0;
    g_came <= '0;
    g_byte <= '0;
    g_tail <= '0;
    g_tail_bytes <= '0;
  end
  if (rst) begin
    m_first <= 1'b1;
    {q_packet, q_target, g_waits, g_takes, g_writes, g_due, g_held} <= '0;
    {g_fits, g_may, g_record, g_slot} <= '0;
    g_pair <= '0;
  end
end

// ---- For induction.

wire f_is_up = state != Header && state != Drop;
// What is left when the beat at the output is counted.
wire [AddressWidth-1:0] f_place = f_new ? f_next : g_place;
wire size_t f_left = f_new ? g_left - size_t'(f_piece) : g_left;
wire f_begins = f_new ? f_write_ends : g_begins;
wire [8:0] f_all_beats = 9'((g_data + body_t'(Lanes - 1)) >> LaneWidth);
wire [8:0] f_done_beats = f_all_beats - beats;
wire [AddressWidth-LaneWidth-1:0] f_blocks =
    place[AddressWidth-1:LaneWidth] - g_base[AddressWidth-1:LaneWidth];
// The beat of the followed byte, and whether it is the last one that came and goes on.
wire body_t f_offset = body_t'(g_lead) + body_t'(chosen);
wire [8:0] f_beat_of = 9'(f_offset >> LaneWidth);
wire [LaneWidth:0] f_turned = {1'b0, f_offset[LaneWidth-1:0]} + {1'b0, turn, 2'b00};
wire f_in_hold = f_beat_of + 9'd1 == f_done_beats && f_turned[LaneWidth];
wire f_tail_came = g_data + body_t'(chosen_tail) < g_came;

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A packet asks for its key and its target with its header, if that is right.
    p_asks :
    assert (packet_valid == (f_head && f_ours)
        && (!packet_valid || (packet_pair == f_dw2[18:14] && packet_key == f_dw1[15:8])));
    if (!g_takes) begin
      p_target :
      assert (target_valid == (packet_valid && f_asks)
          && (!target_valid || (target_function == f_dw2[18:16] && target_address == f_address
              && target_length == f_bytes)));
    end else begin
      // A slot that was taken is asked for as a whole.
      p_slot :
      assert (target_valid && target_function == g_pair[PairWidth-1:2]
          && target_length == size_t'(2048)
          && target_address == {slot[AddressWidth-1:11], 11'b0});
    end
    // A NAP takes a slot only with a record, and only if it may.
    p_take : assert (take_valid == (f_waits && g_nap && f_has_record) && take_pair == g_pair);
    p_ring : assert (event_ring == {g_pair, 1'b1});

    if (f_new) begin
      // Nothing is written without key and window, and only there.
      // shows: C-09
      p_guard :
      assert (g_fits && g_may && out_address >= g_from
          && end_t'(out_address) + end_t'(out_bytes) <= end_t'(g_from) + end_t'(g_length));
      // Slot and record were there before.
      // shows: C-21
      p_before : assert (g_writes && (!g_wants || g_record) && (!g_nap || g_slot));
      // Each byte leaves once, in order, in writes that end at multiples of the limit.
      // shows: C-22
      p_place : assert (g_left != '0 && out_last == f_write_ends);
      if (g_begins) begin
        p_write :
        assert (out_address == g_place
            && out_bytes == ((g_left < f_write_room) ? g_left : f_write_room));
      end else begin
        p_goes_on : assert (out_address == $past(out_address) && out_bytes == $past(out_bytes));
      end
      // Each write is for the packet's function.
      p_function : assert (out_function == g_pair[PairWidth-1:2]);
      // As it came, on the lane of its address; zeros are beside.
      if (f_has_byte) begin
        // shows: C-08
        p_data : assert (8'(out_data >> {f_byte_lane, 3'b0}) == g_byte);
      end
      if (!f_is_meant) p_beside : assert (8'(out_data >> {chosen_lane, 3'b0}) == '0);
    end

    // An event is offered once, when all has left, and says what the packet does.
    if (event_valid) begin
      // shows: C-14
      p_due : assert (g_due && !out_valid && g_left == '0 && g_ended && g_is_right);
      p_record :
      assert (event_record[254:128] == {
            5'b0, g_pair[1:0], 12'b0, (g_nap ? 4'd5 : 4'd6), 27'b0, g_bytes,
            7'b0, g_source, 3'b0, g_tail_bytes, g_base});
      // shows: C-10
      p_tail :
      assert (8'(event_record >> {chosen_tail, 3'b0})
          == ((fill_t'(chosen_tail) < g_tail_bytes) ? g_tail : '0));
    end
    // The next packet does not come before it is taken.
    if (f_head) p_sent : assert (!g_due);

    // It takes no beat only while it waits for an answer, for slot or record, for the ring of an
    // event, or for the output.
    p_waits :
    assert (in_ready || q_packet || g_takes || f_answers_slot || (f_waits && g_wants)
        || (g_writes && (g_due || (out_valid && !out_ready)
            || (g_left != '0 && (g_ended || g_came >= g_data)))));

    if (!$past(rst)) begin
      if ($past(out_valid && !out_ready)) begin
        p_stays :
        assert (out_valid && out_function == $past(out_function) && out_last == $past(out_last)
            && out_address == $past(out_address)
            && out_bytes == $past(out_bytes) && out_data == $past(out_data));
      end
      if ($past(event_valid && !event_ready && !lacks_ring)) begin
        p_kept : assert (event_valid && event_record == $past(event_record));
      end
      // What is dropped is told, and nothing else.
      p_unknown : assert (unknown == $past(f_head && !f_right));
      p_refused :
      assert (refused == $past((f_head && f_right && !f_ours) || (q_packet && !packet_fits)));
      p_outside : assert (outside == $past(q_packet && packet_fits && q_target && !target_fits));
      p_closed :
      assert (closed == $past(f_closes || (event_valid && !event_ready && lacks_ring)));
      p_passed_over : assert (passed_over == $past(f_answers_slot && !target_fits));
      // A packet of another length is told when it is written, and its end is known.
      p_mismatched :
      assert (mismatched == ($past(f_overruns || f_misses)
          || (f_new && f_ends && g_ended && !g_is_right)));
    end

    // So that induction needs no bound.
    i_first :
    assert (m_first == (state == Header || state == Event || (state == Data && ended)));
    i_pair : assert (pair == g_pair);
    i_asked :
    assert (q_packet == (state == Room && is_new)
        && q_target == (state == Window || (q_packet && names_target)));
    i_takes : assert (g_takes == (state == Slot));
    i_waits : assert ((g_waits && !q_packet) == (state == Room && !is_new));
    i_writes : assert (!(state == Data || state == Tail || state == Event) || g_writes);
    i_not_yet :
    assert (!(state == Room || state == Slot || state == Window || state == Drop) || !g_writes);
    i_due : assert (g_due == (state == Event || (state == Data && ended && !wrong && g_wants)));
    if (f_is_up) begin
      i_packet :
      assert (is_nap == g_nap && wants_event == g_wants && source == g_source && length == g_bytes
          && names_target == (!g_nap && g_bytes != '0) && (!g_nap || g_wants));
      i_lead : assert (g_lead == ((g_bytes == '0) ? 2'd0 : g_base[1:0]) || g_nap);
      i_sizes :
      assert (g_data != '0 && g_data <= body_t'(4096) && g_data[1:0] == '0
          && body_t'(g_lead) + body_t'(g_bytes) <= g_data && rest == g_data[3:2]
          && (g_bytes == '0 ? g_data == body_t'(4)
              : body_t'(g_lead) + body_t'(g_bytes) + body_t'(3) >= g_data)
          && (!g_nap || (g_lead == '0 && g_bytes <= size_t'(2048))));
      i_place : assert (left == f_left && begins == f_begins);
      if (!g_nap || !(state == Room || state == Slot)) i_base : assert (target == g_base);
      if (state == Window || state == Data || (state == Room && !g_nap)) begin
        i_next : assert (place == f_place);
      end
      i_turn : assert (turn == (g_nap ? 2'd0 : g_base[3:2]));
      if (!g_nap) i_below : assert (end_t'(g_base) + end_t'(g_bytes) <= {1'b1, AddressWidth'(0)});
    end
    if (state == Room || state == Slot || state == Window) begin
      i_fresh :
      assert (beats == f_all_beats && g_came == '0 && !ended && !wrong && g_left == g_bytes
          && g_place == g_base && g_begins && !f_new && !g_ended && g_byte == '0);
      if (!q_packet) i_key : assert (g_fits && g_wants);
      if (!g_nap && g_bytes != '0) begin
        if (q_packet) i_target : assert (q_address == g_base && q_length == g_bytes);
        else i_may : assert (g_may && g_from == g_base && g_length == g_bytes);
      end
      if (state == Window || state == Slot) i_slot : assert (g_nap && g_slot && g_record);
      if (state == Window) begin
        i_slot_base :
        assert (g_base[10:0] == '0 && q_address == g_base && q_length == size_t'(2048));
      end
    end
    if (state == Data || state == Tail || state == Event) begin
      i_allowed :
      assert (g_fits && (!g_wants || g_record) && (!g_nap || (g_slot && g_base[10:0] == '0))
          && (g_bytes == '0 || (g_may && g_from == g_base
              && g_length == (g_nap ? size_t'(2048) : g_bytes))));
      i_ended : assert (ended == g_ended || state != Data);
    end
    if (state == Data) begin
      i_left : assert ((left == '0) == (g_bytes == '0) && left <= g_bytes);
      i_beats : assert (beats <= f_all_beats && (beats != '0 || left != '0));
      if (!begins) i_function : assert (out_function == pair[PairWidth-1:2]);
      if (beats == f_all_beats) i_begins : assert (begins && !f_new && left == g_bytes);
      i_blocks : assert (f_blocks == (AddressWidth - LaneWidth)'(f_done_beats));
      if (g_bytes != '0) begin
        i_end : assert (end_t'(place) + end_t'(left) == end_t'(g_base) + end_t'(g_bytes));
        if (!begins) begin
          i_write :
          assert (out_address >= g_base
              && end_t'(out_address) + end_t'(out_bytes) <= end_t'(g_base) + end_t'(g_bytes));
        end
        if (beats != f_all_beats) i_aligned : assert (place[LaneWidth-1:0] == '0);
        else i_starts : assert (place == g_base);
      end
      if (!ended) begin
        i_came : assert (g_came == body_t'({f_done_beats, LaneWidth'(0)}) && !wrong);
      end else begin
        i_came_less :
        assert (g_came <= body_t'({f_done_beats, LaneWidth'(0)}) && g_came != '0
            && wrong == !g_is_right && (wrong || beats == '0));
        if (f_beat_of >= f_done_beats) i_zero : assert (g_byte == '0);
      end
      if (!ended && f_offset >= g_came) i_no_byte : assert (g_byte == '0);
      if (f_in_hold && chosen < g_bytes) begin
        i_hold : assert (8'(hold >> {f_turned[LaneWidth-1:0], 3'b0}) == g_byte);
      end
    end
    if (state == Tail) begin
      i_tail :
      assert (g_came == body_t'({f_all_beats, LaneWidth'(0)}) && beats == '0 && left == '0
          && body_t'(tail_bytes) == g_came - g_data && !g_ended && !ended);
    end
    if (state == Event) begin
      i_event :
      assert (left == '0 && g_ended && g_is_right && tail_bytes == g_tail_bytes
          && g_tail_bytes <= fill_t'(Lanes) && g_data + body_t'(g_tail_bytes) <= g_came);
    end
    if ((state == Data && beats == '0 && !wrong) || state == Tail || state == Event) begin
      if (f_tail_came) i_tail_byte : assert (8'(tail >> {chosen_tail, 3'b0}) == g_tail);
    end
    if (state == Data && beats == '0 && ended && !wrong) begin
      i_tail_bytes :
      assert (tail_bytes == g_tail_bytes && g_tail_bytes <= fill_t'(Lanes)
          && g_data + body_t'(g_tail_bytes) <= g_came
          && g_came == body_t'({f_all_beats, LaneWidth'(0)}));
    end
    if (state == Data && beats == '0 && !ended) begin
      i_tail_part : assert (body_t'(tail_bytes) == g_came - g_data);
    end
  end
end
