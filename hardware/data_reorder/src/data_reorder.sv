// Puts the data of reads back into the order of the requests (C-35).
//
// A read has its place in the memory from its request on, so a completion never waits. Completions
// come in pieces, in any order between tags. What comes with the last beat of a piece in cycle t
// can leave from t + 2 on. A piece counts when its last beat is there, and only if it has what its
// read lacks next. Any other one is dropped and reported.
//
// A read waits for completions under its tag, and has its data under the number of its place in
// the order. So its tag can be used again before its data has left.
module data_reorder #(
    // Bits of a beat, and of the number of a byte in it.
    parameter int unsigned Width = 128,
    parameter int unsigned LaneWidth = 4,
    // Beats of the memory, and reads in it: powers of two.
    parameter int unsigned Beats = 512,
    parameter int unsigned Reads = 32,
    parameter int unsigned Tags = 32,
    // Bits of a count of bytes.
    parameter int unsigned SizeWidth = 13,
    localparam int unsigned AddressWidth = (Beats > 1) ? $clog2(Beats) : 1,
    localparam int unsigned CountWidth = AddressWidth + 1,
    localparam int unsigned SlotWidth = (Reads > 1) ? $clog2(Reads) : 1,
    localparam int unsigned TagWidth = (Tags > 1) ? $clog2(Tags) : 1
) (
    input logic clk,
    input logic rst,

    // A read is requested; the lane of its first byte is its address modulo the bytes of a beat.
    input  logic                  read_valid,
    output logic                  read_ready,
    input  logic [  TagWidth-1:0] read_tag,
    input  logic [ LaneWidth-1:0] read_lane,
    input  logic [ SizeWidth-1:0] read_bytes,
    // Beats that reads can still ask for, and reads that have not left.
    output logic [CountWidth-1:0] room,
    output logic [   SlotWidth:0] reads,

    // A beat of a completion; a byte has the lane of its address. What is said of the completion
    // counts with its first beat: `in_remaining` is PCIe's byte count.
    input  logic                 in_valid,
    input  logic                 in_last,
    input  logic [ TagWidth-1:0] in_tag,
    input  logic                 in_failed,
    input  logic [SizeWidth-1:0] in_bytes,
    input  logic [SizeWidth-1:0] in_remaining,
    input  logic [    Width-1:0] in_data,
    // What ended in the cycle before was dropped: its tag does not wait for completions, or its
    // bytes are not those that the read lacks next.
    output logic                 unexpected,
    output logic                 mismatched,

    // The allocator has freed this tag, because its completions did not come in time.
    input  logic                lost_valid,
    input  logic [TagWidth-1:0] lost_tag,
    // A read has got its last completion in the cycle before: its tag comes back.
    output logic                free_valid,
    output logic [TagWidth-1:0] free_tag,

    // The beats of all reads in the order of the requests. A read that failed ends with a beat
    // without bytes.
    output logic                 out_valid,
    input  logic                 out_ready,
    output logic                 out_last,
    output logic                 out_failed,
    output logic [LaneWidth-1:0] out_from,
    output logic [LaneWidth-1:0] out_to,
    output logic [    Width-1:0] out_data
);

  if (Width < 1 || LaneWidth < 1 || Tags < 1) begin : g_parameters
    $error("data_reorder: Width, LaneWidth and Tags are at least 1");
  end
  if (Beats != 2 ** AddressWidth || Reads != 2 ** SlotWidth) begin : g_powers
    $error("data_reorder: Beats and Reads are powers of two");
  end
  if (SizeWidth <= LaneWidth) begin : g_size
    $error("data_reorder: SizeWidth is more than LaneWidth");
  end

  typedef logic [CountWidth-1:0] count_t;
  typedef logic [SlotWidth-1:0] slot_t;
  typedef logic [TagWidth-1:0] tag_t;
  typedef logic [LaneWidth-1:0] lane_t;
  // Bytes up to the end of a read's last beat.
  typedef logic [SizeWidth:0] left_t;

  // Beats that hold the last `left` bytes.
  function automatic count_t beats_of(input left_t left);
    beats_of = count_t'((left + left_t'(2 ** LaneWidth - 1)) >> LaneWidth);
  endfunction

  // ---- Reads in the order of the requests.

  slot_t oldest, newest;
  // Beats that were reserved, and those of them that have left the memory.
  count_t reserved, read;
  // Of each read: the beat behind its last one, bytes behind its last one in that beat, and the
  // lane of its first byte.
  count_t tail_of[Reads];
  lane_t pad_of[Reads], lane_of[Reads];
  // Bytes that it lacks, with those behind its last one; zero if it lacks none.
  left_t left_of[Reads];
  logic [Reads-1:0] failed;
  // Tags that wait for completions, and their reads.
  logic [2**TagWidth-1:0] waits;
  slot_t slot_of[2**TagWidth];

  // ---- A request.

  logic accepts;
  left_t read_end, read_beats;
  lane_t read_pad;
  assign newest = oldest + slot_t'(reads);
  assign room = count_t'(Beats) - (reserved - read);
  assign read_end = left_t'(read_lane) + left_t'(read_bytes);
  assign read_pad = -lane_t'(read_end);
  assign read_beats = (read_end + left_t'(2 ** LaneWidth - 1)) >> LaneWidth;
  assign read_ready = read_bytes != '0 && 32'(read_beats) <= 32'(room)
      && reads != (SlotWidth + 1)'(Reads) && !waits[read_tag];
  assign accepts = read_valid && read_ready;

  // ---- A completion: what its first beat says is kept until its last one.

  logic mid, piece_is_ours, piece_fits, piece_failed;
  tag_t  piece_tag;
  slot_t piece_slot;
  left_t piece_left;
  count_t piece_at, piece_end;

  // What its first beat says: bytes that the read lacks afterwards, and the beats it is for.
  slot_t first_slot;
  left_t first_lacks, first_left;
  logic first_ends, first_fits;
  assign first_slot = slot_of[in_tag];
  assign first_lacks = left_of[first_slot];
  assign first_ends = in_bytes == in_remaining;
  assign first_left = first_ends ? '0 : first_lacks - left_t'(in_bytes);
  // A piece that is not the last one ends between beats: at a multiple of 64 bytes, says PCIe.
  assign first_fits = in_bytes != '0 && in_bytes <= in_remaining
      && left_t'(in_remaining) + left_t'(pad_of[first_slot]) == first_lacks
      && lane_t'(first_left) == '0;

  // The piece whose beat comes.
  logic is_ours, fits, fails;
  tag_t  tag;
  slot_t slot;
  left_t left;
  count_t at, behind;
  always_comb begin
    tag = mid ? piece_tag : in_tag;
    slot = mid ? piece_slot : first_slot;
    left = mid ? piece_left : first_left;
    fails = mid ? piece_failed : in_failed;
    fits = mid ? piece_fits : first_fits;
    at = mid ? piece_at : tail_of[first_slot] - beats_of(first_lacks);
    behind = mid ? piece_end : tail_of[first_slot] - beats_of(first_left);
    // A tag that is lost is lost, also if its last beat comes in this cycle.
    is_ours = (mid ? piece_is_ours : waits[in_tag]) && !(lost_valid && lost_tag == tag);
  end

  logic writes, ends, comes, breaks, frees, loses;
  assign writes = in_valid && is_ours && fits && !fails && at != behind;
  assign ends   = in_valid && in_last;
  assign comes  = writes && ends && at + count_t'(1) == behind;
  assign breaks = ends && is_ours && fails;
  assign frees  = breaks || (comes && left == '0);
  assign loses  = lost_valid && waits[lost_tag];

  always_ff @(posedge clk) begin
    if (in_valid) begin
      piece_tag <= tag;
      piece_slot <= slot;
      piece_left <= left;
      piece_failed <= fails;
      piece_fits <= fits;
      piece_at <= at + count_t'(writes);
      piece_end <= behind;
    end
    // Between its beats, too, a tag may be lost and used again.
    piece_is_ours <= is_ours;
    if (rst) begin
      mid <= 1'b0;
      unexpected <= 1'b0;
      mismatched <= 1'b0;
      free_valid <= 1'b0;
    end else begin
      if (in_valid) mid <= !in_last;
      unexpected <= ends && !is_ours;
      mismatched <= ends && is_ours && !fails && !comes;
      free_valid <= frees;
    end
    free_tag <= tag;
  end

  // ---- The oldest read leaves.

  logic begun, has_beat, is_last, moves, gone;
  count_t front_tail;
  assign front_tail = tail_of[oldest];
  assign has_beat = read != front_tail - beats_of(left_of[oldest]);
  assign is_last = failed[oldest] || read + count_t'(1) == front_tail;
  assign moves = reads != '0 && (failed[oldest] || has_beat) && (!out_valid || out_ready);
  assign gone = moves && is_last;

  always_ff @(posedge clk) begin
    if (rst) begin
      oldest <= '0;
      reads <= '0;
      reserved <= '0;
      read <= '0;
      waits <= '0;
      begun <= 1'b0;
      out_valid <= 1'b0;
    end else begin
      oldest <= oldest + slot_t'(gone);
      reads  <= reads + (SlotWidth + 1)'(accepts) - (SlotWidth + 1)'(gone);
      if (accepts) reserved <= reserved + count_t'(read_beats);
      if (moves) read <= failed[oldest] ? front_tail : read + count_t'(1);
      if (frees) waits[tag] <= 1'b0;
      if (loses) waits[lost_tag] <= 1'b0;
      if (accepts) waits[read_tag] <= 1'b1;
      if (moves) begun <= !is_last;
      out_valid <= moves || (out_valid && !out_ready);
    end
    if (moves) begin
      out_last   <= is_last;
      out_failed <= failed[oldest];
      out_from   <= begun ? '0 : lane_of[oldest];
      out_to     <= is_last ? ~pad_of[oldest] : '1;
    end
  end

  always_ff @(posedge clk) begin
    if (breaks) failed[slot] <= 1'b1;
    if (loses) failed[slot_of[lost_tag]] <= 1'b1;
    if (comes) left_of[slot] <= left;
    if (accepts) begin
      failed[newest] <= 1'b0;
      left_of[newest] <= left_t'(read_bytes) + left_t'(read_pad);
      tail_of[newest] <= reserved + count_t'(read_beats);
      pad_of[newest] <= read_pad;
      lane_of[newest] <= read_lane;
      slot_of[read_tag] <= newest;
    end
  end

`ifdef FORMAL
  logic [Beats-1:0][Width-1:0] f_beats;
`endif

  // Beats that have come are read, and others are written.
  ram_1w1r #(
      .Width(Width),
      .Depth(Beats)
  ) u_beats (
      .clk,
      .write(writes),
      .write_address(at[AddressWidth-1:0]),
      .write_data(in_data),
      .read(moves),
      .read_address(read[AddressWidth-1:0]),
`ifdef FORMAL
      .probe_words(f_beats),
`endif
      .read_data(out_data)
  );

`ifdef PROVE_DATA_REORDER
  `include "data_reorder_formal.svh"
`endif

endmodule
