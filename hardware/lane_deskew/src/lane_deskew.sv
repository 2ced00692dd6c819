// Takes the skew out of the lanes of a link (S-19): each is delayed by as much as its mark came
// before the last one.
//
// The symbols of a beat are out one cycle after those of the latest lane have come. A mark that is
// hit on some lanes changes nothing.
module lane_deskew #(
    parameter int unsigned Lanes   = 8,
    // Cycles from the first lane to the last one, at most. Marks are more than twice as far apart.
    parameter int unsigned MaxSkew = 7
) (
    input logic clk,
    input logic rst,

    // By lane: two symbols, and which of them are special.
    input logic [Lanes-1:0][ 1:0] lane_k,
    input logic [Lanes-1:0][15:0] lane_data,

    // The delays of all lanes are known.
    output logic                aligned,
    // Symbols that are no mark.
    output logic                line_valid,
    output logic [ 2*Lanes-1:0] line_k,
    output logic [16*Lanes-1:0] line_data
);

  if (Lanes < 1 || MaxSkew < 1) begin : g_parameters
    $error("lane_deskew: Lanes and MaxSkew are at least 1");
  end

  localparam int unsigned AgeWidth = $clog2(MaxSkew + 2);
  typedef logic [AgeWidth-1:0] age_t;

  // By lane: cycles since a mark came, up to one more than the largest skew, and the delay.
  logic [Lanes-1:0][AgeWidth-1:0] age, age_now, delay;
  logic [Lanes-1:0] is_marked, is_timely, shows_mark;
  logic [Lanes-1:0][17:0] chosen;

  // The mark of the last lane has come, and no other is too late.
  logic is_whole;
  assign is_whole = is_marked != '0 && is_timely == '1;

`ifdef FORMAL
  logic [Lanes-1:0][18*MaxSkew+17:0] f_words;
`endif

  for (genvar at = 0; at < Lanes; at++) begin : g_lane
    // What has come, the latest first, as far as it can be chosen.
    logic [18*MaxSkew+17:0] words;
    logic [ 18*MaxSkew-1:0] past;
    assign words = {past, lane_k[at], lane_data[at]};
    always_ff @(posedge clk) past <= words[18*MaxSkew-1:0];
    always_comb begin
      chosen[at] = words[17:0];
      for (int unsigned late = 1; late <= MaxSkew; late++) begin
        if (delay[at] == age_t'(late)) chosen[at] = words[18*late+:18];
      end
    end
`ifdef FORMAL
    assign f_words[at] = words;
`endif

    assign is_marked[at] = lane_k[at][0] && lane_data[at][7:0] == link_pkg::Com;
    assign age_now[at] = is_marked[at] ? '0 : age[at];
    assign is_timely[at] = age_now[at] <= age_t'(MaxSkew);
    assign shows_mark[at] = chosen[at][16] && chosen[at][7:0] == link_pkg::Com;
    always_ff @(posedge clk) begin
      if (rst) begin
        age[at]   <= age_t'(MaxSkew + 1);
        delay[at] <= '0;
      end else begin
        if (is_timely[at]) age[at] <= age_now[at] + age_t'(1);
        if (is_whole) delay[at] <= age_now[at];
      end
      line_k[at] <= chosen[at][16];
      line_k[at+Lanes] <= chosen[at][17];
      line_data[8*at+:8] <= chosen[at][7:0];
      line_data[8*(at+Lanes)+:8] <= chosen[at][15:8];
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      aligned <= 1'b0;
      line_valid <= 1'b0;
    end else begin
      aligned <= aligned || is_whole;
      line_valid <= aligned && shows_mark == '0;
    end
  end

`ifdef PROVE_LANE_DESKEW
  `include "lane_deskew_formal.svh"
`endif

endmodule
