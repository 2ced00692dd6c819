// What is proved of `lane_deskew`, without bound, by k-induction. The far end sends a beat in each
// cycle, some of which are marks. Each lane brings its part of it later by a skew of its own, which
// stays. Nothing is hit.

localparam int unsigned Past = 2 * MaxSkew + 2;

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// Whatever is sent, the latest first: a beat, or a mark.
(* anyseq *) logic [Lanes-1:0][17:0] f_sent;
(* anyseq *) logic f_sends_mark;
logic [Past:1][Lanes-1:0][17:0] g_past;
logic [Past:1] g_marks;
wire [Past:0][Lanes-1:0][17:0] f_beats = {g_past, f_sent};
wire [Past:0] f_marks = {g_marks, f_sends_mark};
// Cycles since reset, and since the beginning, before which registers have any value.
logic [7:0] g_up;
logic [7:0] g_time = '0;

// The skew of each lane, and the largest one.
(* anyconst *) logic [Lanes-1:0][AgeWidth-1:0] f_skew;
(* anyconst *) logic [AgeWidth-1:0] f_most;
// Marks are as far from each other as must be; some lane has the largest skew.
logic f_is_sparse, f_has_most;
always_comb begin
  f_is_sparse = 1'b1;
  for (int unsigned d = 0; d <= Past; d++) begin
    for (int unsigned e = 1; e <= 2 * MaxSkew + 1; e++) begin
      if (d + e <= Past) f_is_sparse = f_is_sparse && !(f_marks[d] && f_marks[d+e]);
    end
  end
  assume (f_is_sparse);
  f_has_most = 1'b0;
  for (int unsigned at = 0; at < Lanes; at++) begin
    assume (f_skew[at] <= f_most);
    if (f_skew[at] == f_most) f_has_most = 1'b1;
    // A mark, and no beat that looks like one.
    assume ((f_sent[at][16] && f_sent[at][7:0] == link_pkg::Com) == f_sends_mark);
    assume ({lane_k[at], lane_data[at]} == f_beats[f_skew[at]][at]);
    // So it was before, too.
    for (int unsigned d = 0; d <= Past; d++) begin
      if (!past_reset) begin
        assume ((f_beats[d][at][16] && f_beats[d][at][7:0] == link_pkg::Com) == f_marks[d]);
      end
    end
  end
  assume (f_has_most && 32'(f_most) <= MaxSkew);
end

wire [AgeWidth:0] f_out = {1'b0, f_most} + (AgeWidth + 1)'(1);
(* anyconst *) logic [$clog2(Lanes)-1:0] f_lane;
always_comb assume (32'(f_lane) < Lanes);

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_past  <= f_beats[Past-1:0];
  g_marks <= f_marks[Past-1:0];
  if (g_time != '1) g_time <= g_time + 8'd1;
  if (rst) g_up <= '0;
  else if (g_up != '1) g_up <= g_up + 8'd1;

  if (past_reset && !rst) begin
    // Once a mark that was sent behind reset has come on all lanes, the lanes are aligned.
    if (f_marks[f_out] && 32'(g_up) > 32'(f_most)) p_aligned : assert (aligned);
    if (!$past(rst) && $past(aligned)) p_stays : assert (aligned);
    // A beat comes whole, a cycle after its latest lane, and marks do not.
    if ($past(aligned) && !$past(rst)) p_comes : assert (line_valid == !f_marks[f_out]);
    if (line_valid) begin
      // shows: S-19
      p_data : assert ({line_data[8*(f_lane+Lanes)+:8], line_data[8*f_lane+:8]}
                       == f_beats[f_out][f_lane][15:0]);
      p_special :
      assert ({line_k[f_lane+Lanes], line_k[f_lane]} == f_beats[f_out][f_lane][17:16]);
    end
    // Before that nothing comes.
    if (!aligned) p_nothing : assert (!line_valid);

    for (int unsigned at = 0; at < Lanes; at++) begin
      for (int unsigned d = 0; d <= MaxSkew; d++) begin
        // The age is that of the mark, if it came behind reset.
        if (d > 0) begin
          if (age[at] == age_t'(d)) assert (f_marks[32'(f_skew[at])+d] && d <= 32'(g_up));
          if (f_marks[32'(f_skew[at])+d] && 32'(g_up) >= d) assert (age[at] == age_t'(d));
        end
      end
      assert (age[at] != '0 && 32'(age[at]) <= MaxSkew + 1);
      if (aligned) assert (delay[at] == f_most - f_skew[at] && 8'(delay[at]) <= g_up);
    end
  end

  i_begins : assert (past_reset == (g_time != '0));
  // Also during a reset.
  if (past_reset) begin
    i_time : assert (g_up <= g_time);
    for (int unsigned at = 0; at < Lanes; at++) begin
      for (int unsigned d = 0; d <= MaxSkew; d++) begin
        if (d <= 32'(g_time)) assert (f_words[at][18*d+:18] == f_beats[32'(f_skew[at])+d][at]);
      end
      for (int unsigned d = 0; d <= Past; d++) begin
        assert ((f_beats[d][at][16] && f_beats[d][at][7:0] == link_pkg::Com) == f_marks[d]);
      end
    end
  end
end
