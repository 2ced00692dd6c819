// Trains the lanes of a link, and trains them anew (S-18).
//
// In training all lanes carry sets: COM and an identifier, and idle symbols behind it. Both ends
// send TS1 until they hear sets on each lane, and then TS2 until they hear that. An end that is
// asked to, that hears TS1, or that misses a lane begins again. Nothing else is reset by that.
module lane_train #(
    parameter int unsigned Lanes     = 8,
    // Cycles of a set.
    parameter int unsigned Every     = 16,
    // Sets that must be heard on each lane. Twice as many TS2 go before the link is up, and eight
    // times as many at most.
    parameter int unsigned Sets      = 8,
    // Cycles in which each lane must bring a mark.
    parameter int unsigned LostAfter = 2048
) (
    input logic clk,
    input logic rst,

    // The link asks for it.
    input logic retrain,

    // The lanes carry the link's symbols. The training ends; a new one begins in the next cycle.
    output logic up,
    output logic trained,
    output logic recovers,

    // By lane: two symbols of the link, and which of them are special.
    input logic [Lanes-1:0][ 1:0] line_k,
    input logic [Lanes-1:0][15:0] line_data,

    // By lane: what goes, and what comes.
    output logic [Lanes-1:0][ 1:0] tx_k,
    output logic [Lanes-1:0][15:0] tx_data,
    input  logic [Lanes-1:0][ 1:0] rx_k,
    input  logic [Lanes-1:0][15:0] rx_data
);

  if (Lanes < 1 || Every < 2 || Sets < 2 || LostAfter < 2) begin : g_parameters
    $error("lane_train: Lanes is at least 1, and Every, Sets and LostAfter 2");
  end

  localparam int unsigned Longest = (Every > LostAfter) ? Every : LostAfter;
  localparam int unsigned AtWidth = $clog2(Longest);
  localparam int unsigned HeardWidth = $clog2(Sets + 1);
  localparam int unsigned SentWidth = $clog2(8 * Sets);
  typedef logic [AtWidth-1:0] at_t;
  typedef logic [HeardWidth-1:0] heard_t;
  typedef logic [SentWidth-1:0] sent_t;

  // The state: polling, if neither of both.
  logic configuring;
  // Cycles of the set that have gone; while the link is up, those in which lanes are looked at.
  at_t  at;
  logic ends;
  assign ends = at == (up ? at_t'(LostAfter - 1) : at_t'(Every - 1));

  // By lane: sets heard in this state, and that a mark has come.
  heard_t heard[Lanes];
  logic [Lanes-1:0] marked, is_some, is_enough, is_twice;
  // Sets sent since the state began, and those since all lanes were heard.
  sent_t sent, answered, answered_next;
  assign answered_next = answered + sent_t'(is_some == '1 && answered < sent_t'(2 * Sets));

  logic configures, gives_up, changes;
  assign configures = !up && !configuring && ends && is_enough == '1;
  assign trained = configuring && ends && is_enough == '1 && answered_next == sent_t'(2 * Sets);
  assign gives_up = configuring && ends && !trained && sent == sent_t'(8 * Sets - 1);
  // One set alone may be a symbol that was hit.
  assign recovers = up && (retrain || is_twice != '0 || (ends && marked != '1));
  assign changes = configures || trained || gives_up || recovers;

  for (genvar lane = 0; lane < Lanes; lane++) begin : g_lane
    logic is_mark, is_first, is_second, counts, stays;
    assign is_mark = rx_k[lane][0] && rx_data[lane][7:0] == link_pkg::Com;
    assign is_first = is_mark && !rx_k[lane][1] && rx_data[lane][15:8] == link_pkg::Ts1;
    assign is_second = is_mark && !rx_k[lane][1] && rx_data[lane][15:8] == link_pkg::Ts2;
    assign counts = (!up && is_second) || (!configuring && is_first);
    // The far end may have gone on, and sends no more sets then.
    assign stays = configuring && is_enough[lane] && !is_first;

    assign is_some[lane] = heard[lane] != '0;
    assign is_enough[lane] = heard[lane] == heard_t'(Sets);
    assign is_twice[lane] = heard[lane] == heard_t'(2);

    always_ff @(posedge clk) begin
      if (rst || changes) begin
        heard[lane]  <= '0;
        marked[lane] <= 1'b0;
      end else begin
        marked[lane] <= is_mark || (marked[lane] && !ends);
        if (is_mark && !counts && !stays) heard[lane] <= '0;
        else if (counts && !is_enough[lane]) heard[lane] <= heard[lane] + heard_t'(1);
      end
    end

    assign tx_k[lane] = up ? line_k[lane] : {1'b0, at == '0};
    assign tx_data[lane] = up ? line_data[lane]
        : (at == '0) ? {configuring ? link_pkg::Ts2 : link_pkg::Ts1, link_pkg::Com} : '0;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      up <= 1'b0;
      configuring <= 1'b0;
    end else if (changes) begin
      up <= trained;
      configuring <= configures;
    end
    if (rst || changes || ends) at <= '0;
    else at <= at + at_t'(1);
    if (rst || changes) begin
      sent <= '0;
      answered <= '0;
    end else if (ends && configuring) begin
      sent <= sent + sent_t'(1);
      answered <= answered_next;
    end
  end

`ifdef PROVE_LANE_TRAIN
  `include "lane_train_formal.svh"
`endif

endmodule
