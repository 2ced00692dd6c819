// The receiver of a link: it takes frames in order, once each, and says when to acknowledge them
// (S-16).
//
// A frame in order is acknowledged after `AcknowledgeAfter` cycles at most, together with those
// behind it. A gap or a damaged frame is told at once by a NAK. No other NAK goes before a
// frame in order comes. A frame that comes again is acknowledged at once: the ACK may be lost.
module rx_ack #(
    parameter int unsigned SequenceWidth = 12,
    parameter int unsigned AcknowledgeAfter = 69
) (
    input logic clk,
    input logic rst,

    // A frame has come; with a wrong CRC its number is unknown.
    input  logic                     frame_valid,
    input  logic                     frame_damaged,
    input  logic [SequenceWidth-1:0] frame_sequence,
    output logic                     deliver,
    output logic                     repeated,
    output logic                     discarded,

    // All frames up to this number have come. What is offered changes with what comes until it is
    // taken.
    output logic                     ack_valid,
    input  logic                     ack_ready,
    output logic                     ack_nak,
    output logic [SequenceWidth-1:0] ack_sequence
);

  if (SequenceWidth < 2 || AcknowledgeAfter < 1) begin : g_parameters
    $error("rx_ack: SequenceWidth is at least 2, AcknowledgeAfter at least 1");
  end

  localparam int unsigned TimerWidth = $clog2(AcknowledgeAfter + 1);
  typedef logic [SequenceWidth-1:0] sequence_t;

  // The next frame in order.
  sequence_t expected;
  // Cycles since the oldest frame came that is not acknowledged; zero if there is none.
  logic [TimerWidth-1:0] timer;
  logic is_over;
  // An acknowledgement must go at once; as a NAK.
  logic due, lose;
  // A NAK was ordered, and no frame in order has come since.
  logic asked;

  sequence_t ahead;
  logic is_next, is_old, gap, told;
  assign ahead = frame_sequence - expected;
  assign is_next = ahead == '0;
  assign is_old = ahead[SequenceWidth-1];
  assign deliver = frame_valid && !frame_damaged && is_next;
  assign repeated = frame_valid && !frame_damaged && is_old;
  assign discarded = frame_valid && (frame_damaged || !(is_next || is_old));
  assign gap = discarded && !asked;

  assign is_over = timer == TimerWidth'(AcknowledgeAfter);
  assign ack_valid = due || is_over;
  assign ack_nak = lose;
  assign ack_sequence = expected - sequence_t'(1);
  assign told = ack_valid && ack_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      expected <= '0;
      timer <= '0;
      due <= 1'b0;
      lose <= 1'b0;
      asked <= 1'b0;
    end else begin
      if (deliver) expected <= expected + sequence_t'(1);
      if (told || timer == '0) timer <= TimerWidth'(deliver);
      else if (!is_over) timer <= timer + TimerWidth'(1);
      due   <= (due && !told) || gap || repeated;
      lose  <= (lose && !told) || gap;
      asked <= (asked && !deliver) || gap;
    end
  end

`ifdef PROVE_RX_ACK
  `include "rx_ack_formal.svh"
`endif

endmodule
