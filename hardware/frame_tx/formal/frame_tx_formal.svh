// What is proved of `frame_tx`, without bound, by k-induction. TLPs of any length and content, link
// packets and stalls of the line come in any order.
//
// A shadow remembers the beat that entered last. Its CRC is computed by the same module, beside.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// ---- The shadow.

// A TLP has begun and has not ended; it has ended, and a part of its frame has not left.
logic g_mid, g_over;
logic [127:0] g_data;
logic [31:0] g_crc, g_crc_next;
// DWs of the TLP's last beat that are empty.
logic [1:0] g_empty;
// Of the cycle before: a beat entered, the first or the last one of its TLP; the rest of a frame
// left; a link packet was taken.
logic g_entered, g_was_first, g_was_last, g_overs, g_linked;
wire [1:0] f_empty = g_mid ? g_empty : 2'd3 - in_data[25:24];

crc32_beat g_beat (
    .state(g_mid ? g_crc : start),
    .data (in_data),
    .empty(in_last ? f_empty : 2'd0),
    .next (g_crc_next)
);

wire f_moves = line_ready || !line_valid;
wire f_enters = in_valid && in_ready;
wire f_links = dllp_valid && dllp_ready;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_entered <= f_enters && !rst;
  g_was_first <= !g_mid;
  g_was_last <= in_last;
  g_overs <= g_over && f_moves && !rst;
  g_linked <= f_links && !rst;
  if (rst) begin
    g_mid  <= 1'b0;
    g_over <= 1'b0;
  end else begin
    if (f_enters) g_mid <= !in_last;
    if (f_enters) g_over <= in_last && f_empty < 2'd2;
    else if (f_moves) g_over <= 1'b0;
  end
  if (f_enters) begin
    g_data  <= in_data;
    g_crc   <= g_crc_next;
    g_empty <= f_empty;
  end
end

// ---- What the line must have then.

// Special symbols of the frame in the beat.
wire [15:0] f_first_k = g_was_first ? 16'h0001 : 16'h0000;
wire [15:0] f_last_k = !(g_was_last && g_empty[1]) ? 16'h0000 : g_empty[0] ? 16'h0800 : 16'h8000;
wire [15:0] f_over_k = g_empty[0] ? 16'h0008 : 16'h0080;
wire [15:0] f_frame_k = g_overs ? f_over_k : g_entered ? f_first_k | f_last_k : 16'h0000;

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    if (g_entered) begin
      // It is on the line in the next cycle.
      p_leaves : assert (line_valid);
      // A frame begins with STP and its number.
      if (g_was_first) begin
        p_start : assert (line_data[7:0] == link_pkg::Stp
                          && {line_data[15:8], line_data[23:16]} == {4'b0, $past(in_sequence)});
      end else begin
        // The last bytes of a beat lead the next one.
        p_carry : assert (line_data[23:0] == $past(g_data[127:104]));
      end
      // All bytes of the TLP follow as they came.
      p_same : assert (line_data[55:24] == g_data[31:0]
                       && (g_was_last && g_empty > 2'd2 || line_data[87:56] == g_data[63:32])
                       && (g_was_last && g_empty > 2'd1 || line_data[119:88] == g_data[95:64])
                       && (g_was_last && g_empty > 2'd0 || line_data[127:120] == g_data[103:96]));
      // Behind them comes the CRC, and then END.
      if (g_was_last && g_empty == 2'd3) begin
        p_check : assert (line_data[95:56] == {link_pkg::End, ~g_crc});
      end
      if (g_was_last && g_empty == 2'd2) begin
        p_check_two : assert (line_data[127:88] == {link_pkg::End, ~g_crc});
      end
      if (g_was_last && g_empty == 2'd1) p_check_three : assert (line_data[127:120] == ~g_crc[7:0]);
    end
    if (g_overs) begin
      p_over : assert (line_valid && (g_empty[0] ? line_data[31:0] == {link_pkg::End, ~g_crc[31:8]}
                                 : line_data[63:0] == {link_pkg::End, ~g_crc, g_data[127:104]}));
    end
    // A link packet leaves as it came, in the upper half.
    if (g_linked) begin
      p_link : assert (line_valid && line_data[127:64] == $past(dllp_data));
    end
    // It does not come into a frame.
    if (f_links) p_between : assert (!g_mid);
    // While one waits, no frame begins.
    if (dllp_valid && !g_mid) p_first : assert (!f_enters);
    if ($past(f_moves) && !$past(rst)) begin
      // Special symbols are those of the packets.
      p_special : assert (!line_valid || line_k == (f_frame_k | (g_linked ? 16'h8100 : 16'h0000)));
      // Nothing leaves twice.
      p_once : assert (line_valid == (g_entered || g_overs || g_linked));
    end
    // What is offered stays until it is taken.
    if ($past(line_valid) && !$past(line_ready) && !$past(rst)) begin
      p_stays : assert (line_valid && $stable(line_data) && $stable(line_k));
    end
    // Within a frame each beat is taken that the line has room for.
    if (g_mid && f_moves) p_flows : assert (in_ready);
    // Between two frames the line has one beat at most that takes none of the next.
    if ($past(f_moves && !in_ready && !dllp_valid) && !$past(rst) && f_moves && !dllp_valid) begin
      p_next : assert (in_ready);
    end

    i_mid : assert (mid == g_mid && over == g_over && !(mid && over));
    if (mid || over) begin
      i_carry : assert (carry == g_data[127:104] && crc == g_crc && empty == g_empty);
    end
    if (over) i_over : assert (!empty[1]);
  end
end
