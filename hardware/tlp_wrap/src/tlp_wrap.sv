// Makes TLPs of cHPP's packets of one class (S-10 to S-13): a header, up to 32 beats, and a check.
//
// A packet is cut into segments. A segment leaves when all of it has come, so its length is known
// and no gap is in it. The check is CRC-32C over header and beats, end to end.
module tlp_wrap #(
    parameter bit Channel = 1'b0,
    // Beats and segments that wait.
    parameter int unsigned Beats = 64,
    parameter int unsigned Segments = 4,
    // Beats of a segment, at most.
    parameter int unsigned Most = link_pkg::MaxPayload / 4
) (
    input logic clk,
    input logic rst,

    // A beat of a packet, with the lane of its last byte.
    input  logic         in_valid,
    output logic         in_ready,
    input  logic         in_last,
    input  logic [  3:0] in_to,
    input  logic [127:0] in_data,
    // A packet has left in the cycle before.
    output logic         credit,

    // A beat of a TLP.
    output logic         out_valid,
    input  logic         out_ready,
    output logic         out_last,
    output logic [127:0] out_data
);

  localparam int unsigned CountWidth = $clog2(Most + 1);
  typedef logic [CountWidth-1:0] count_t;

  // A segment that does not fit would never be whole.
  if (Most < 1 || Beats < Most || Segments < 1) begin : g_parameters
    $error("tlp_wrap: Segments is at least 1, and Beats at least Most, which is at least 1");
  end

  // ---- What comes: beats of the segment with this one, and whether it begins its packet.

  count_t count, beats;
  logic first, takes, ends;
  assign takes = in_valid && in_ready;
  assign beats = count + count_t'(1);
  assign ends  = in_last || beats == count_t'(Most);
  always_ff @(posedge clk) begin
    if (rst) begin
      count <= '0;
      first <= 1'b1;
    end else if (takes) begin
      count <= ends ? '0 : beats;
      if (ends) first <= in_last;
    end
  end

`ifdef FORMAL
  localparam int unsigned BeatAddress = (Beats > 1) ? $clog2(Beats) : 1;
  localparam int unsigned SegmentAddress = (Segments > 1) ? $clog2(Segments) : 1;
  logic [2**BeatAddress-1:0][127:0] f_words;
  logic [BeatAddress:0] f_written, f_read;
  logic [2**SegmentAddress-1:0][CountWidth+5:0] f_segments;
  logic [SegmentAddress:0] f_segments_written, f_segments_read;
`endif

  logic beat_room, segment_room;
  assign in_ready = beat_room && segment_room;

  logic has_beat, takes_beat;
  logic [127:0] beat;
  logic [(Beats > 1 ? $clog2(Beats) : 1):0] unused_beats;
  stream_fifo #(
      .Width(128),
      .Depth(Beats)
  ) u_beats (
      .clk,
      .rst,
      .in_valid     (takes),
      .in_ready     (beat_room),
      .in_data,
      .out_valid    (has_beat),
      .out_ready    (takes_beat),
      .out_data     (beat),
`ifdef FORMAL
      .probe_words  (f_words),
      .probe_written(f_written),
      .probe_read   (f_read),
`endif
      .count        (unused_beats)
  );

  logic has_segment, takes_segment;
  logic is_first, is_last;
  logic [3:0] to;
  count_t length;
  logic [(Segments > 1 ? $clog2(Segments) : 1):0] unused_segments;
  stream_fifo #(
      .Width(CountWidth + 6),
      .Depth(Segments)
  ) u_segments (
      .clk,
      .rst,
      .in_valid     (takes && ends),
      .in_ready     (segment_room),
      .in_data      ({first, in_last, in_last ? in_to : 4'd0, beats}),
      .out_valid    (has_segment),
      .out_ready    (takes_segment),
      .out_data     ({is_first, is_last, to, length}),
`ifdef FORMAL
      .probe_words  (f_segments),
      .probe_written(f_segments_written),
      .probe_read   (f_segments_read),
`endif
      .count        (unused_segments)
  );

  // ---- What leaves: a header if nothing of the TLP has left, and a check behind the last beat.

  logic   mid;
  count_t left;
  logic [31:0] state, state_next;
  logic leaves, is_check;
  assign leaves = out_valid && out_ready;
  assign is_check = mid && left == '0;
  assign takes_beat = leaves && mid && !is_check;
  assign takes_segment = leaves && is_check;
  assign out_valid = has_segment && (!mid || is_check || has_beat);
  assign out_last = is_check;

  // The first byte is the lowest one: type, class, a check follows, DWs; all bytes are enabled. The
  // last one of the address says what part of its packet this is.
  logic [127:0] header;
  logic [  9:0] dwords;
  assign dwords = 10'(length) << 2;
  always_comb begin
    header = '0;
    header[15:0] = link_pkg::PostedWrite | 16'(Channel) << link_pkg::ChannelBit;
    header[link_pkg::LengthBit-8+:8] = {6'b100000, dwords[9:8]};
    header[link_pkg::LengthBit+:8] = dwords[7:0];
    header[63:56] = 8'hff;
    header[127:120] = {2'b00, is_first, is_last, to};
    if (!mid) out_data = header;
    else out_data = is_check ? 128'(~state) & 128'hffff_ffff : beat;
  end

  crc32_beat u_crc (
      .state(mid ? state : 32'hffff_ffff),
      .data (out_data),
      .empty(2'd0),
      .next (state_next)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      mid <= 1'b0;
      credit <= 1'b0;
    end else begin
      if (leaves) mid <= !is_check;
      credit <= takes_segment && is_last;
    end
    if (leaves) begin
      left  <= mid ? left - count_t'(1) : length;
      state <= state_next;
    end
  end

`ifdef PROVE_TLP_WRAP
  `include "tlp_wrap_formal.svh"
`endif

endmodule
