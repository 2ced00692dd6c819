// The replay buffer of a link. It numbers and sends frames, and keeps them until they are
// acknowledged. After a NAK or a timeout it sends again, from the oldest one on (S-16, S-17).
//
// A beat that enters in cycle t can leave from t + 2 on, also before the rest of its frame. An ACK
// or NAK takes two cycles. A frame whose first beat is offered is sent to its end, whatever comes
// meanwhile. What was ordered counts from the next frame on.
module replay_buf #(
    parameter int unsigned Width = 128,
    // Beats that it holds.
    parameter int unsigned Depth = 128,
    parameter int unsigned SequenceWidth = 12,
    // Cycles from the end of a frame to the timeout, if nothing is acknowledged.
    parameter int unsigned ReplayAfter = 206,
    localparam int unsigned AddressWidth = (Depth > 1) ? $clog2(Depth) : 1,
    localparam int unsigned CountWidth = AddressWidth + 1
) (
    input logic clk,
    input logic rst,

    // Beats of frames, and how many can enter.
    input  logic                  in_valid,
    output logic                  in_ready,
    input  logic                  in_last,
    input  logic [     Width-1:0] in_data,
    output logic [CountWidth-1:0] room,

    // Beats of frames with their numbers, and whether the frame was sent before.
    output logic                     out_valid,
    input  logic                     out_ready,
    output logic                     out_last,
    output logic                     out_again,
    output logic [SequenceWidth-1:0] out_sequence,
    output logic [        Width-1:0] out_data,

    // All frames up to this number have come; after a NAK the others are sent again.
    input  logic                     ack_valid,
    output logic                     ack_ready,
    input  logic                     ack_nak,
    input  logic [SequenceWidth-1:0] ack_sequence,
    // What was taken in the cycle before names a frame that was never sent.
    output logic                     refused,

    // The replay timer expires; for the fourth time without progress.
    output logic timed_out,
    output logic retrain
);

  // Late acknowledgements must differ from those of frames that are kept.
  if (Width < 1 || Depth < 1 || Depth >= 2 ** (SequenceWidth - 1)) begin : g_depth
    $error("replay_buf: Depth is at least 1, and below half of all sequence numbers");
  end
  if (ReplayAfter < 1) begin : g_timer
    $error("replay_buf: ReplayAfter is at least 1");
  end

  typedef logic [SequenceWidth-1:0] sequence_t;
  typedef logic [CountWidth-1:0] count_t;

  // Beats that have entered, and the place of the next whole frame in the table of ends.
  count_t written;
  logic [AddressWidth-1:0] filled;
  // The oldest frame that is not acknowledged, and the number of its first beat.
  sequence_t oldest;
  count_t base, base_found;
  // The frame and the beat at the output. `stale`: it has been acknowledged while it leaves.
  sequence_t current, current_next;
  count_t read, read_next;
  logic mid, stale;
  // Frames that have been sent whole.
  sequence_t sent, sent_next;
  // After the frame that leaves, the oldest one follows.
  logic jump;

  logic enters, leaves, ends, jumps;
  assign enters = in_valid && in_ready;
  assign leaves = out_valid && out_ready;
  assign ends = leaves && out_last;
  // Between two frames: none is offered, and none has begun.
  assign jumps = jump && (ends || !(out_valid || mid));

  // Until it has left, a frame is kept that was acknowledged while it was sent again.
  assign room = count_t'(Depth) - (written - (stale ? read : base));
  assign in_ready = room != '0;

  always_comb begin
    read_next = read + count_t'(leaves);
    current_next = current + sequence_t'(ends);
    sent_next = sent + sequence_t'(ends && current == sent);
    if (jumps) begin
      read_next = base;
      current_next = oldest;
    end
  end

`ifdef FORMAL
  logic [2**AddressWidth-1:0][Width:0] f_beats;
  logic [2**AddressWidth-1:0][CountWidth-1:0] f_ends;
`endif

  // The read of a cycle is for the next one, so it follows what leaves now. A beat that is being
  // written is not yet in the memory: hence `written` and not its next value.
  ram_1w1r #(
      .Width(Width + 1),
      .Depth(2 ** AddressWidth)
  ) u_beats (
      .clk,
      .write(enters),
      .write_address(written[AddressWidth-1:0]),
      .write_data({in_last, in_data}),
      .read(1'b1),
      .read_address(read_next[AddressWidth-1:0]),
`ifdef FORMAL
      .probe_words(f_beats),
`endif
      .read_data({out_last, out_data})
  );
  assign out_sequence = current;
  assign out_again = current != sent;

  // Of each frame, the number of the beat behind its last one.
  ram_1w1r #(
      .Width(CountWidth),
      .Depth(2 ** AddressWidth)
  ) u_ends (
      .clk,
      .write(enters && in_last),
      .write_address(filled),
      .write_data(written + count_t'(1)),
      .read(1'b1),
      .read_address(ack_sequence[AddressWidth-1:0]),
`ifdef FORMAL
      .probe_words(f_ends),
`endif
      .read_data(base_found)
  );

  // The first cycle of an ACK or NAK: how many frames it acknowledges. None, if it is late.
  sequence_t acks, acked;
  logic is_late, is_refused, takes;
  assign acked = ack_sequence + sequence_t'(1) - oldest;
  assign is_late = acked[SequenceWidth-1];
  assign is_refused = !is_late && acked > sent - oldest;
  assign takes = ack_valid && ack_ready;

  // The second cycle: they are forgotten.
  logic acking, naks, progress, is_behind, replays;
  assign ack_ready = !acking;
  assign progress  = acking && acks != '0;
  assign replays   = acking && naks;
  assign is_behind = progress && current_next - oldest < acks;

  // The timer is zero while it stands.
  localparam int unsigned TimerWidth = $clog2(ReplayAfter + 1);
  localparam logic [1:0] FruitlessReplays = 2'd3;
  logic [TimerWidth-1:0] timer;
  logic [1:0] fruitless;
  logic is_under_way, renews;
  // What an ACK or NAK does in the same cycle goes first.
  assign timed_out = timer == TimerWidth'(ReplayAfter) && !(progress || replays);
  assign retrain = timed_out && fruitless == FruitlessReplays;
  assign renews = timed_out || replays;
  assign is_under_way = sent_next - oldest != acks;

  always_ff @(posedge clk) begin
    if (rst) begin
      written <= '0;
      filled <= '0;
      oldest <= '0;
      base <= '0;
      current <= '0;
      read <= '0;
      sent <= '0;
      mid <= 1'b0;
      stale <= 1'b0;
      jump <= 1'b0;
      out_valid <= 1'b0;
    end else begin
      written <= written + count_t'(enters);
      filled  <= filled + AddressWidth'(enters && in_last);
      if (progress) begin
        oldest <= oldest + acks;
        base   <= base_found;
      end
      current <= current_next;
      read <= read_next;
      sent <= sent_next;
      mid <= (mid || leaves) && !ends;
      stale <= (stale && !jumps) || is_behind;
      jump <= (jump && !jumps) || is_behind || renews;
      out_valid <= read_next != written;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      acking  <= 1'b0;
      refused <= 1'b0;
    end else begin
      acking  <= takes && !is_refused;
      refused <= takes && is_refused;
    end
    acks <= is_late ? '0 : acked;
    naks <= ack_nak;
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      timer <= '0;
      fruitless <= '0;
    end else begin
      if (renews) timer <= '0;
      else if (progress) timer <= TimerWidth'(is_under_way);
      else if (timer != '0 || (ends && !jump)) timer <= timer + TimerWidth'(1);
      if (progress) fruitless <= '0;
      else if (timed_out) fruitless <= fruitless + 2'd1;
    end
  end

`ifdef PROVE_REPLAY_BUF
  `include "replay_buf_formal.svh"
`endif

endmodule
