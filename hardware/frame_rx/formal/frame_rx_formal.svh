// What is proved of `frame_rx`, without bound, by k-induction. Nothing is assumed of the line: all
// symbols and marks come in any order.
//
// A shadow follows the line by itself: where frames begin and end, and which bytes their TLPs and
// CRCs are. Its CRC is computed by the same module, beside.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// ---- The shadow of the line.

// A frame has begun and has not ended; its number, how many beats it has, and the last one.
logic g_mid;
logic [15:0] g_number;
logic [CountWidth:0] g_beats;
logic [127:0] g_before;

// The first special symbol of the beat.
logic [3:0] f_first;
always_comb begin
  f_first = 4'd0;
  for (int s = 15; s >= 0; s--) if (line_k[s]) f_first = 4'(s);
end
wire [15:0] f_single = 16'h0001 << f_first;
// A frame ends properly: with one mark at the end of a DW, behind which only the upper half counts
// no more.
wire f_ends = line_k != '0 && f_first[1:0] == 2'd3
    && (f_first[3] ? line_k == f_single : line_k[7:0] == f_single[7:0]);
wire f_long = g_beats == MaxBeats - 1;
wire f_goes_on = line_k == '0 && !f_long;
wire f_starts = line_valid && line_k == 16'h0001 && line_data[7:0] == link_pkg::Stp;
wire f_comes = line_valid && g_mid;

// Of the cycle before: a beat of a frame came; it ended properly, in which DW; it did not; and the
// two beats. Of the cycle before that: it left a rest.
logic g_came, g_ended, g_broke, g_rest, g_was_first;
logic [1:0] g_dw, g_rest_dw;
logic [255:0] g_window, g_rest_window;
logic [15:0] g_of;
// Beats of that frame before this one and its first.
logic [CountWidth:0] g_index;

wire [255:0] f_window = {line_data, g_before};

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_came <= f_comes && !rst;
  g_ended <= f_comes && f_ends && !rst;
  g_broke <= f_comes && !f_ends && !f_goes_on && !rst;
  g_rest <= g_ended && g_dw[1] && !rst;
  g_rest_dw <= g_dw;
  g_rest_window <= g_window;
  if (rst) begin
    g_mid <= 1'b0;
  end else if (line_valid) begin
    g_mid <= f_starts || (g_mid && f_goes_on);
  end
  if (line_valid) begin
    g_before <= line_data;
    g_beats  <= f_starts ? 1 : g_beats + 1;
    if (f_starts) g_number <= {line_data[15:8], line_data[23:16]};
  end
  if (f_comes) begin
    g_dw <= f_first[3:2];
    g_window <= f_window;
    g_of <= g_number;
    g_index <= g_beats - 1;
    g_was_first <= g_beats == 1;
  end
end

// The END byte and the CRC in front of it, in the beats of the last cycle or of the one before.
wire [255:0] f_last_window = g_rest ? g_rest_window : g_window;
wire [1:0] f_last_dw = g_rest ? g_rest_dw : g_dw;
wire [7:0] f_end = f_last_window[8*(19+4*f_last_dw)+:8];
wire [31:0] f_check = f_last_window[8*(15+4*f_last_dw)+:32];

// The CRC of what passed.
logic [31:0] g_crc, g_crc_next;
crc32_beat g_beat (
    .state(g_came && g_was_first ? start : g_crc),
    .data (out_data),
    .empty(out_empty),
    .next (g_crc_next)
);

// Beats and verdicts of frames.
logic [CountWidth:0] g_passed;
logic [1:0] g_open;

always_ff @(posedge clk) begin
  if (out_valid) g_crc <= g_crc_next;
  if (rst) begin
    g_passed <= '0;
    g_open   <= '0;
  end else begin
    if (out_valid) g_passed <= out_last ? '0 : g_passed + 1;
    g_open <= g_open + 2'(f_starts) - 2'(frame_valid);
  end
end

// ---- What follows.

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // A frame begins with STP alone, and ends as the shadow says.
    p_begins : assert (mid == g_mid);
    // Each beat behind the first completes one of the TLP, which passes in the next cycle.
    if (g_came) begin
      p_passes : assert (out_valid);
      p_same : assert (out_data[95:0] == g_window[24+:96]
                       && out_data[127:96] == (g_ended && g_dw == 0 ? 32'b0 : g_window[120+:32]));
      p_last : assert (out_last == (g_broke || (g_ended && !g_dw[1])));
      p_empty : assert (out_empty == (g_ended && g_dw == 0 ? 2'd1 : 2'd0));
    end
    // The rest passes in the cycle behind that.
    if (g_rest) begin
      p_rest : assert (out_valid && out_last
                       && out_data[31:0] == g_rest_window[152+:32]
                       && out_data[63:32] == (g_rest_dw[0] ? g_rest_window[184+:32] : 32'b0)
                       && out_data[127:64] == '0);
      p_rest_empty : assert (out_empty == (g_rest_dw[0] ? 2'd2 : 2'd3));
    end
    // Nothing else passes.
    p_nothing : assert (out_valid == (g_came || g_rest));
    // Each frame that begins has one verdict, with its last beat.
    p_one : assert (frame_valid == (out_valid && out_last)
                    && g_open == 2'(g_mid) + 2'(g_ended || g_broke || g_rest));
    // The number is that of the frame.
    if (out_valid) p_number : assert (frame_sequence == g_of[11:0]);
    // No frame passes as good that has a wrong symbol, number or CRC.
    if (frame_valid && !frame_damaged) begin
      p_marks : assert (!g_broke);
      p_end : assert (f_end == link_pkg::End);
      p_range : assert (g_of[15:12] == '0);
      // shows: S-16
      p_crc : assert (f_check == ~g_crc_next);
    end
    // No other frame is refused.
    if (frame_valid && frame_damaged) begin
      p_sound : assert (g_broke || f_end != link_pkg::End || g_of[15:12] != '0
                        || f_check != ~g_crc_next);
    end
    // A frame has a bound, whatever comes.
    if (out_valid) p_bound : assert (g_passed < MaxBeats);
    // Whatever looks like a link packet is handed on.
    p_link : assert (dllp_valid == (line_valid && line_k[8] && line_k[15] && line_k[14:9] == '0)
                     && dllp_data == line_data[127:64]);

    if (g_mid) begin
      i_mid : assert (beats == g_beats && number == g_number && held == g_before[127:24]
                      && g_beats != '0 && g_beats < MaxBeats);
    end
    i_rest : assert (rest == (g_ended && g_dw[1]));
    if (rest) i_held : assert (held == g_window[255:152] && rest_two == g_dw[0]);
    i_ends : assert (!(g_ended && g_broke) && (!(g_ended || g_broke) || g_came));
    i_apart : assert (!(g_came && g_rest) && !(g_rest && rest));
    if (g_ended && g_dw[1]) i_free : assert (!g_rest);
    if (out_valid) i_passing : assert (passing == g_of[11:0] && is_first == (g_came && g_was_first));
    if (out_valid && !is_first || g_mid && g_beats != 1 && !out_valid) i_crc : assert (crc == g_crc);
    if (rest) i_next : assert (out_valid);
    if (g_came && (g_ended || g_broke)) begin
      i_bad : assert (is_bad == (g_broke || g_window[8*(19+4*g_dw)+:8] != link_pkg::End
                                 || g_of[15:12] != '0));
    end
    if (g_rest) begin
      i_rest_bad : assert (is_bad == (f_end != link_pkg::End || g_of[15:12] != '0));
    end
    if (frame_valid && !g_broke) i_check : assert (check == f_check);
    // Beats that passed follow those that came.
    if (g_came) i_index : assert (g_passed == g_index && g_index <= MaxBeats - 2);
    if (g_rest) i_rest_index : assert (g_passed == g_index + 1 && g_index <= MaxBeats - 2);
    if (!out_valid) i_passed : assert (g_passed == (g_mid ? g_beats - 1 : 0));
    if (g_came && !g_ended && !g_broke) i_on : assert (g_mid && g_beats == g_index + 2);
    if (g_ended) i_ended : assert (!g_mid);
    if ((g_broke || g_rest) && g_mid) i_begun : assert (g_beats == 1);
  end
end
