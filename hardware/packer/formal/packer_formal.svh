// What is proved of `packer`, without bound, by k-induction.
//
// A shadow sees the ports. Beside them it sees when a packet begins and when it is whole. It knows
// the move whose packets are made, and follows one packet, chosen freely, and in it one beat. The
// receivers are free, and so is what comes, but for three things: the lanes of a beat are in order,
// a beat that was taken in part stays, and a tail has no more bytes than a beat.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyseq *)logic f_pick;
(* anyconst *)count_t chosen;

// Bytes of a packet behind its header.
typedef logic [PlaceWidth+LaneWidth:0] body_t;
localparam body_t LanesLess = body_t'(Lanes - 1);
localparam body_t DwordLess = body_t'(Dword - 1);

// ---- The move whose packets are made: its address and bytes are those behind the last one.

logic m_has, m_last, m_put, m_wants, m_swallows;
logic [AddressWidth-1:0] m_address;
bytes_t m_bytes;
fill_t m_tail_bytes;
logic [Width-1:0] m_tail;
logic [RouteWidth-1:0] m_route;
logic [OperationWidth-1:0] m_operation;

wire bytes_t f_limit = m_put ? bytes_t'(Payload) : bytes_t'(Longest);
wire f_ends_move = m_bytes <= f_limit;
wire f_ends = f_ends_move && m_last;
wire bytes_t f_piece = f_ends_move ? m_bytes : f_limit;
wire [Width-1:0] f_header = Width'({need_t'(f_piece), f_ends && m_wants, m_address});
wire f_accepts = move_valid && move_ready;

// ---- The packet whose data comes, and the beat that comes.

logic c_builds, c_ends_move, c_ends;
need_t c_lacks;
fill_t c_tail;
logic d_mid, d_drains;
lane_t d_lane;

wire f_waits = c_builds && c_lacks != '0 && room != '0;
wire lane_t f_from = d_mid ? d_lane : in_from;
wire fill_t f_offered = fill_t'(in_to - f_from) + fill_t'(1);
wire f_fits = 32'(f_offered) <= 32'(c_lacks);
wire fill_t f_taken = f_fits ? f_offered : fill_t'(c_lacks);
wire f_takes = f_waits && in_valid && !in_failed;
wire f_breaks = f_waits && in_valid && in_failed;
wire f_closes = c_builds && c_lacks == '0 && room != '0;

always_comb begin
  assume (in_from <= in_to);
  if (d_mid) assume (d_lane <= in_to && !in_failed);
  assume (32'(move_tail_bytes) <= Lanes);
end

// ---- The followed packet.

// It is followed; its data comes; its data failed.
logic g_follows, g_builds, g_broken, g_ends;
// Bytes before its data in the first DW, bytes of its data, and those of them that have come; bytes
// up to the end of the data's last DW, and of the tail.
logic [DwordWidth-1:0] g_lead;
body_t g_piece, g_came, g_data, g_size;
logic [RouteWidth-1:0] g_route;
logic [OperationWidth-1:0] g_operation;
// Beats that have left. Packets before it that have not left, and reports before it.
count_t g_beat;
logic [SlotWidth+1:0] g_before, g_failed_before;
slot_t g_slot;
// The chosen beat, as far as its bytes are known.
logic [Width-1:0] g_want;
// All whole packets that have not left, and all reports of operations whose data failed.
logic [SlotWidth+1:0] g_packets, g_reports;
// A report was offered and not taken.
logic g_waits;

wire f_leaves = out_valid && out_ready;
wire f_gone = f_leaves && out_last;
wire f_at_port = g_follows && g_before == '0;
wire count_t f_beats = count_t'(1) + count_t'((g_size + LanesLess) >> LaneWidth);

// The lane of the last byte of its beat at the output.
wire lane_t f_to = out_last ? lane_t'(g_size - body_t'(1)) : '1;

// Those of a packet that begins.
wire [DwordWidth-1:0] f_lead = (f_piece == '0) ? '0 : m_address[DwordWidth-1:0];
wire body_t f_data = (f_piece == '0) ? body_t'(Dword)
    : (body_t'(f_lead) + body_t'(f_piece) + DwordLess) & ~DwordLess;
wire body_t f_size = f_data + (f_ends ? body_t'(m_tail_bytes) : '0);

// The chosen beat of a packet that begins, and of the followed one when bytes of its data come.
body_t f_at, f_index;
logic [Width-1:0] f_begun_want, f_came_want;
// What the chosen beat must have: in lanes behind the data of the followed packet, and there.
logic [Width-1:0] f_behind, f_is_behind;
always_comb begin
  f_begun_want = '0;
  f_came_want = g_want;
  f_behind = '0;
  f_is_behind = '0;
  f_at = '0;
  f_index = '0;
  for (int unsigned at = 0; at < Lanes; at++) begin
    f_at = (body_t'(chosen) << LaneWidth) - body_t'(Lanes) + body_t'(at);
    f_index = f_at - f_data;
    if (f_at >= f_data && f_at < f_size) begin
      f_begun_want[ByteWidth*at+:ByteWidth] = ByteWidth'(m_tail >> (ByteWidth * 32'(f_index)));
    end
    f_index = f_at - g_data;
    if (f_at >= g_data && f_at < g_size) begin
      f_behind[ByteWidth*at+:ByteWidth] = ByteWidth'(m_tail >> (ByteWidth * 32'(f_index)));
    end
    if (chosen != '0 && f_at >= body_t'(g_lead) + g_piece) begin
      f_is_behind[ByteWidth*at+:ByteWidth] = '1;
    end
    f_index = f_at - body_t'(g_lead) - g_came;
    if (chosen != '0 && f_at >= body_t'(g_lead) + g_came && f_index < body_t'(f_taken)) begin
      f_index = f_index + body_t'(f_from);
      f_came_want[ByteWidth*at+:ByteWidth] = ByteWidth'(in_data >> (ByteWidth * 32'(f_index)));
    end
  end
  if (chosen == '0) f_begun_want = f_header;
end

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (begins) begin
    c_builds <= 1'b1;
    c_ends_move <= f_ends_move;
    c_ends <= f_ends;
    c_lacks <= need_t'(f_piece);
    c_tail <= f_ends ? m_tail_bytes : '0;
    m_address <= m_address + AddressWidth'(f_piece);
    m_bytes <= m_bytes - f_piece;
  end
  if (f_takes) begin
    c_lacks <= c_lacks - need_t'(f_taken);
    d_mid   <= !f_fits;
    d_lane  <= f_from + lane_t'(f_taken);
  end
  if (f_closes) c_tail <= '0;
  if (is_whole) begin
    c_builds <= 1'b0;
    if (c_ends_move) m_has <= 1'b0;
  end
  if (d_drains && in_valid && in_ends) d_drains <= 1'b0;
  if (f_breaks) begin
    c_builds <= 1'b0;
    m_has <= 1'b0;
    d_drains <= !in_ends;
    m_swallows <= !m_last;
  end
  if (f_accepts) begin
    if (m_swallows) m_swallows <= !move_last;
    else m_has <= 1'b1;
    m_last <= move_last;
    m_put <= move_primitive == Put;
    m_wants <= move_wants_event;
    m_address <= move_address;
    m_bytes <= move_bytes;
    m_tail_bytes <= move_tail_bytes;
    m_tail <= move_tail;
    m_route <= move_route;
    m_operation <= move_operation;
  end

  g_waits   <= sent_valid && !sent_ready && !rst;
  g_packets <= g_packets + (SlotWidth + 2)'(is_whole) - (SlotWidth + 2)'(f_gone);
  g_reports <= g_reports + (SlotWidth + 2)'(f_breaks) - (SlotWidth + 2)'(skips);
  if (g_follows) begin
    if (f_takes && g_builds) begin
      g_came <= g_came + body_t'(f_taken);
      g_want <= f_came_want;
    end
    if (g_builds && (is_whole || f_breaks)) begin
      g_builds <= 1'b0;
      g_broken <= f_breaks;
      g_slot   <= newest;
    end
    if (f_at_port) g_beat <= g_beat + count_t'(f_leaves);
    if (f_gone) begin
      if (f_at_port) g_follows <= 1'b0;
      else g_before <= g_before - 1'b1;
    end
    if (skips) begin
      if (g_failed_before == '0) g_follows <= 1'b0;
      else g_failed_before <= g_failed_before - 1'b1;
    end
  end
  if (begins && f_pick && !g_follows) begin
    g_follows <= 1'b1;
    g_builds <= 1'b1;
    g_broken <= 1'b0;
    g_ends <= f_ends;
    g_lead <= f_lead;
    g_piece <= body_t'(f_piece);
    g_came <= '0;
    g_data <= f_data;
    g_size <= f_size;
    g_route <= m_route;
    g_operation <= m_operation;
    g_beat <= '0;
    g_before <= g_packets - (SlotWidth + 2)'(f_gone);
    g_failed_before <= g_reports - (SlotWidth + 2)'(skips);
    g_want <= f_begun_want;
  end
  if (rst) begin
    {m_has, m_swallows, c_builds, d_mid, d_drains, g_follows} <= '0;
    g_packets <= '0;
    g_reports <= '0;
  end
end

// ---- For induction. Places are distances from the next beat that leaves the buffer.

// Of each packet, in order: the place behind it. Those of them without a failed one, and failed
// ones, up to each.
logic [Packets-1:0][CountWidth-1:0] f_end;
logic [Packets-1:0][SlotWidth+1:0] f_whole_before, f_failed_before;
logic [SlotWidth+1:0] f_whole, f_failed;
count_t f_committed;
slot_t f_number;
always_comb begin
  f_committed = '0;
  f_whole = '0;
  f_failed = '0;
  for (int unsigned at = 0; at < Packets; at++) begin
    f_number = oldest + slot_t'(at);
    f_whole_before[at] = f_whole;
    f_failed_before[at] = f_failed;
    if (at < 32'(packets)) begin
      if (failed[f_number]) f_failed = f_failed + 1'b1;
      else begin
        f_whole = f_whole + 1'b1;
        f_committed = end_of[f_number] - read;
      end
    end
    f_end[at] = f_committed;
  end
end

// Beats in the buffer.
wire count_t f_held = written - read;
wire f_out_last = out_valid && out_last;
// The followed packet is in the list of packets.
wire f_is_in = g_follows && !g_builds && !(f_at_port && f_out_last);
wire slot_t f_position = g_slot - oldest;
wire count_t f_base = end_of[g_slot] - f_beats;
wire count_t f_moved = read - f_base;
wire count_t f_chosen_at = f_base + chosen;
wire count_t f_begun_chosen_at = begun_at + chosen;
// Beats of the packet whose data comes that are in the buffer, and its bytes behind the header.
wire count_t f_written = written - begun_at;
wire body_t f_body = (body_t'(f_written) << LaneWidth) - body_t'(Lanes) + body_t'(fill);
// A report that was not offered before.
wire f_is_new = sent_valid && !g_waits;

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A move is taken while there is none, or it is passed over.
    p_move_ready : assert (move_ready == (m_swallows || (!m_has && !d_drains)));
    // A beat is taken when the packet takes all of it, or with what is passed over.
    p_in_ready : assert (in_ready == (d_drains || (f_waits && (in_failed || f_fits))));
    if (begins) p_begins : assert (m_has && !c_builds);
    // It never holds more than it has places, and none leaks.
    p_bound : assert (32'(room) <= Beats && 32'(packets) <= Packets);
    if (packets == '0 && !c_builds) p_drained : assert (32'(room) == Beats);

    // What leaves is the next packet in its turn, once it is whole.
    if (f_at_port && out_valid) begin
      p_there : assert (!g_builds && !g_broken);
      if (g_beat == chosen) begin
        if (chosen == '0) p_header : assert (out_data == g_want);
        else p_same : assert (out_data == g_want);
      end
      p_last : assert (out_last == (g_beat + count_t'(1) == f_beats));
      p_to : assert (out_to == f_to);
      p_route : assert (out_route == g_route);
    end

    if (!$past(rst)) begin
      // A packet leaves without pauses, and each beat stays until it is taken.
      if ($past(f_leaves && !out_last)) p_whole : assert (out_valid);
      if ($past(out_valid && !out_ready)) begin
        p_stays :
        assert (out_valid && out_last == $past(out_last) && out_to == $past(out_to)
            && out_route == $past(out_route) && out_data == $past(out_data));
      end
      // A whole packet is offered in the next cycle, unless it needs a place for its report.
      if ($past(f_at_port && f_is_in && !g_broken && g_failed_before == '0 && !out_valid
                && (!g_ends || !sent_valid || sent_ready))
          || $past(g_follows && f_is_in && g_before == 1 && f_gone && !g_broken
                   && g_failed_before == '0 && !g_ends)) begin
        p_offered : assert (out_valid);
      end

      // An operation is reported in the cycle after its last packet has left, and no other one is.
      if ($past(f_at_port && f_gone && g_ends)) begin
        p_sent :
        assert (sent_valid && !sent_failed && sent_operation == $past(g_operation));
      end
      if (f_is_new && !sent_failed) begin
        p_only : assert ($past(f_gone && !(f_at_port && !g_ends)));
      end
      if ($past(sent_valid && !sent_ready)) begin
        p_kept :
        assert (sent_valid && sent_failed == $past(sent_failed)
            && sent_operation == $past(sent_operation));
      end
      // One whose data failed is reported in its turn, behind all packets before it.
      if (f_is_new && sent_failed) p_failed : assert ($past(skips));
      if ($past(g_follows && g_failed_before == '0 && skips)) begin
        p_turn :
        assert ($past(g_broken ? (g_before == '0 || (g_before == 1 && f_gone))
            : (f_at_port && f_gone)));
      end
      if ($past(g_follows && g_failed_before == '0 && g_broken && skips)) begin
        p_names : assert (sent_valid && sent_failed && sent_operation == $past(g_operation));
      end
      if ($past(f_at_port && g_broken && g_failed_before == '0 && !out_valid
                && (!sent_valid || sent_ready))) begin
        p_told : assert (sent_valid && sent_failed);
      end
    end

    // So that induction needs no bound.
    i_move : assert (has_move == m_has && swallows == m_swallows && drains == d_drains);
    if (m_has) begin
      i_no_rest : assert (!m_swallows && !d_drains);
      i_fields :
      assert (is_last == m_last && (packet_type == Put) == m_put && wants_event == m_wants
          && address == m_address && left == m_bytes && tail_bytes == m_tail_bytes
          && tail == m_tail && route == m_route && operation == m_operation
          && 32'(m_tail_bytes) <= Lanes);
    end
    i_mid : assert (mid == d_mid && (!d_mid || (lane == d_lane && !d_drains)));
    i_builds : assert (building == c_builds);
    if (c_builds) begin
      i_has : assert (m_has && 32'(packets) < Packets);
      i_need :
      assert (need == c_lacks && tail_left == c_tail && ends_move == c_ends_move
          && ends_operation == c_ends && 32'(c_lacks) <= Most && 32'(c_tail) <= Lanes);
      i_ends : assert (c_ends == (c_ends_move && m_last));
      i_fill : assert (32'(fill) <= Lanes && (c_lacks == '0 || 32'(fill) < Lanes));
      i_some : assert (c_lacks != '0 || c_tail != '0 || fill != '0);
      i_written : assert (f_written != '0 && 32'(f_written) <= 32'(f_held));
      for (int unsigned at = 0; at < Lanes; at++) begin
        assert (at < 32'(fill) || hold[ByteWidth*at+:ByteWidth] == '0);
      end
    end
    i_held : assert (32'(f_held) <= Beats);
    i_committed : assert (f_committed == (c_builds ? begun_at : written) - read);
    for (int unsigned at = 0; at < Packets; at++) begin
      if (at < 32'(packets)) begin
        if (failed[oldest+slot_t'(at)]) assert (ends[oldest+slot_t'(at)]);
        else begin
          assert (f_end[at] != '0 && 32'(f_end[at]) <= 32'(f_held));
          if (at > 0) assert (f_end[at] > f_end[at-1]);
        end
      end
    end
    i_packets : assert (g_packets == f_whole + (SlotWidth + 2)'(f_out_last));
    i_reports : assert (g_reports == f_failed);
    i_begun : assert (begun == (out_valid && !out_last));
    if (begun) i_front : assert (packets != '0 && !failed[oldest]);
    i_out_ends : assert (!out_ends || f_out_last);
    i_due : assert (is_due == ((begun && ends[oldest]) || out_ends || sent_valid));
    i_one_due :
    assert (!(out_ends && sent_valid) && !(begun && ends[oldest] && (out_ends || sent_valid)));

    if (g_follows) begin
      i_size :
      assert (32'(g_size) <= Beats * Lanes - Lanes && g_data <= g_size && g_data != '0
          && (g_data & DwordLess) == '0);
      i_piece : assert (32'(g_piece) <= Most && g_came <= g_piece);
      i_data :
      assert (g_data == ((g_piece == '0) ? body_t'(Dword)
              : (body_t'(g_lead) + g_piece + DwordLess) & ~DwordLess));
      i_tail : assert (32'(g_size - g_data) <= Lanes);
    end
    if (g_follows && g_builds) begin
      i_follows :
      assert (c_builds && body_t'(c_lacks) == g_piece - g_came && c_ends == g_ends
          && route == g_route && operation == g_operation && !g_broken && g_beat == '0);
      i_tail_left :
      assert (body_t'(c_tail) == g_size - g_data || (c_lacks == '0 && c_tail == '0));
      i_body :
      assert (f_body == ((c_lacks != '0) ? body_t'(g_lead) + g_came : g_size - body_t'(c_tail)));
      i_want : assert ((g_want & f_is_behind) == (f_behind & f_is_behind));
      i_before : assert (g_before == f_whole + (SlotWidth + 2)'(f_out_last));
      i_failed_before : assert (g_failed_before == f_failed);
      if (chosen < f_written) begin
        i_there : assert (f_words[f_begun_chosen_at[PlaceWidth-1:0]] == g_want);
      end
      if (chosen == f_written) begin
        for (int unsigned at = 0; at < Lanes; at++) begin
          assert (at >= 32'(fill)
              || hold[ByteWidth*at+:ByteWidth] == g_want[ByteWidth*at+:ByteWidth]);
        end
      end
    end
    if (f_is_in) begin
      i_position : assert (32'(f_position) < 32'(packets));
      i_in :
      assert (failed[g_slot] == g_broken && operation_of[g_slot] == g_operation
          && g_before == f_whole_before[f_position] + (SlotWidth + 2)'(f_out_last)
          && g_failed_before == f_failed_before[f_position]);
      if (!g_broken) begin
        i_entry :
        assert (to_of[g_slot] == lane_t'(g_size - body_t'(1)) && route_of[g_slot] == g_route
            && ends[g_slot] == g_ends);
        if (f_position == '0) begin
          i_moved : assert (f_moved == (begun ? g_beat + count_t'(1) : '0) && f_moved < f_beats);
          i_first : assert (begun || g_beat == '0);
        end else begin
          i_begins : assert (f_base - read == f_end[f_position-slot_t'(1)] && g_beat == '0);
        end
        if (chosen < f_beats && (f_position != '0 || f_moved <= chosen)) begin
          i_kept : assert (f_words[f_chosen_at[PlaceWidth-1:0]] == g_want);
        end
      end
    end
    if (f_at_port && out_valid) begin
      i_out : assert (out_operation == g_operation && out_ends == (out_last && g_ends));
    end
  end
end
