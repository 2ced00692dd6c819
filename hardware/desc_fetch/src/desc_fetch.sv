// Reads descriptors from host memory, one after each doorbell (C-30, C-31).
//
// A descriptor has its place in the memory from its doorbell on, so a completion never waits.
// Completions come in pieces, in any order between reads. A piece counts when its last beat is
// there, and only if it has what its read lacks next. Any other one is dropped and reported.
//
// A doorbell that is taken in cycle t has its first read offered from t + 1 on. A descriptor leaves
// once no completion for it can come any more, in the order of the doorbells, one word a cycle. If
// its last beat comes in cycle t, its first word stands at the output from t + 2 on.
module desc_fetch #(
    // Descriptors, and beats of 16 bytes of a descriptor and of a read: powers of two. Reads end at
    // multiples of the latter.
    parameter int unsigned Places = 4,
    parameter int unsigned Beats = 256,
    parameter int unsigned Request = 8,
    parameter int unsigned Tags = 32,
    parameter int unsigned FunctionWidth = 3,
    localparam int unsigned Width = 128,
    localparam int unsigned WordWidth = 64,
    localparam int unsigned AddressWidth = 40,
    // Bits of a count of bytes.
    localparam int unsigned SizeWidth = 13,
    localparam int unsigned TagWidth = (Tags > 1) ? $clog2(Tags) : 1
) (
    input logic clk,
    input logic rst,

    // A doorbell. It names a place outside of its function's window with `bell_outside`.
    input  logic                     bell_valid,
    output logic                     bell_ready,
    input  logic [FunctionWidth-1:0] bell_function,
    input  logic [    WordWidth-1:0] bell_word,
    input  logic                     bell_outside,

    // A read and its function, under the tag that the allocator offers. None is offered under a tag
    // that waits.
    output logic                     read_valid,
    input  logic                     read_ready,
    input  logic [     TagWidth-1:0] read_tag,
    output logic [FunctionWidth-1:0] read_function,
    output logic [ AddressWidth-1:0] read_address,
    output logic [    SizeWidth-1:0] read_bytes,

    // A beat of a completion. What is said of the completion counts with its first beat:
    // `in_remaining` is PCIe's byte count.
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

    // The words of all descriptors. One of which a read has failed, or whose doorbell was refused,
    // has one word without data.
    output logic                     out_valid,
    input  logic                     out_ready,
    output logic                     out_first,
    output logic                     out_last,
    output logic                     out_failed,
    output logic                     out_refused,
    output logic [FunctionWidth-1:0] out_function,
    output logic [ AddressWidth-1:0] out_address,
    output logic [    WordWidth-1:0] out_word
);

  localparam int unsigned Shift = $clog2(Width / 8);
  localparam int unsigned PlaceWidth = (Places > 1) ? $clog2(Places) : 1;
  localparam int unsigned BeatWidth = (Beats > 1) ? $clog2(Beats) : 1;
  localparam int unsigned LengthWidth = 16;

  if (Places != 2 ** PlaceWidth) begin : g_places
    $error("desc_fetch: Places is a power of two, and at least 2");
  end
  if (Beats != 2 ** BeatWidth || Beats * (Width / 8) > 2 ** (SizeWidth - 1)) begin : g_beats
    $error("desc_fetch: Beats is a power of two, at least 2, and at most 256");
  end
  if (Request < 1 || Request != 2 ** $clog2(Request) || Request > Beats) begin : g_request
    $error("desc_fetch: Request is a power of two, and at most Beats");
  end
  if (Tags < 1 || FunctionWidth < 1) begin : g_tags
    $error("desc_fetch: Tags and FunctionWidth are at least 1");
  end

  typedef logic [PlaceWidth-1:0] place_t;
  typedef logic [PlaceWidth:0] places_t;
  typedef logic [BeatWidth-1:0] beat_t;
  typedef logic [BeatWidth:0] beats_t;
  typedef logic [TagWidth-1:0] tag_t;
  // Reads of a descriptor that wait for completions.
  typedef logic [TagWidth:0] tags_t;
  typedef logic [AddressWidth-1:0] address_t;
  typedef logic [SizeWidth-1:0] size_t;

  // ---- Descriptors in the order of their doorbells: those that were asked for in full, the one
  // that has its turn, and those behind it.

  place_t oldest, asking, newest;
  // All, and those that are not asked for in full.
  places_t jobs, unasked;
  logic [FunctionWidth-1:0] function_of[Places];
  address_t address_of[Places];
  // None if it is refused.
  beats_t beats_of[Places];
  logic [Places-1:0] failed;
  tags_t open_of[Places];
  // Beats of the one that has its turn that were asked for.
  beats_t asked;

  // ---- Tags that wait for completions: the place of the read, the beat that comes next, and beats
  // to come.

  logic [2**TagWidth-1:0] waits;
  place_t place_of[2**TagWidth];
  beat_t at_of[2**TagWidth];
  beats_t lacks_of[2**TagWidth];

  // ---- A doorbell.

  logic rings, is_right;
  logic [LengthWidth-1:0] length;
  address_t address;
  assign {length, address} = {bell_word[WordWidth-1-:LengthWidth], bell_word[AddressWidth-1:0]};
  // A function must not make the interface read outside its window (C-39), and no other memory
  // lies behind the last address.
  assign is_right = !bell_outside && length != '0 && 32'(length) <= Beats * (Width / 8)
      && length[Shift-1:0] == '0 && address[Shift-1:0] == '0
      && bell_word[WordWidth-LengthWidth-1:AddressWidth] == '0
      && (AddressWidth + 1)'(address) + (AddressWidth + 1)'(length)
          <= {1'b1, AddressWidth'(0)};
  assign bell_ready = jobs != places_t'(Places);
  assign rings = bell_valid && bell_ready;
  assign newest = oldest + place_t'(jobs);

  // ---- A read: up to the next multiple of the longest one, so none crosses a page.

  logic asks, finishes;
  beats_t rest, to_end, read_beats;
  address_t read_from;
  assign rest = beats_of[asking] - asked;
  assign read_from = address_of[asking] + (address_t'(asked) << Shift);
  assign to_end = beats_t'(Request) - (beats_t'(read_from >> Shift) & beats_t'(Request - 1));
  assign read_beats = (to_end < rest) ? to_end : rest;
  assign read_valid = unasked != '0 && rest != '0 && !waits[read_tag];
  assign read_function = function_of[asking];
  assign read_address = read_from;
  assign read_bytes = size_t'(read_beats) << Shift;
  assign asks = read_valid && read_ready;
  assign finishes = unasked != '0 && rest == (asks ? read_beats : '0);

  // ---- A completion: what its first beat says is kept until its last one.

  logic mid, piece_is_ours, piece_failed;
  tag_t  piece_tag;
  beat_t piece_at;
  // Beats that it has by its bytes and that have not come; none if they are not those that its read
  // lacks next. Beats that the read lacks afterwards.
  beats_t piece_left, piece_rest;

  logic   first_fits;
  beats_t first_beats;
  assign first_beats = beats_t'(in_bytes >> Shift);
  // The standard cuts completions at multiples of 64 bytes, so at the end of a beat.
  assign first_fits = in_remaining == size_t'(lacks_of[in_tag]) << Shift
      && in_bytes <= in_remaining && in_bytes[Shift-1:0] == '0;

  // The piece whose beat comes.
  logic is_ours, fails;
  tag_t   tag;
  place_t place;
  beat_t  at;
  beats_t left, rest_behind;
  always_comb begin
    tag = mid ? piece_tag : in_tag;
    place = place_of[tag];
    fails = mid ? piece_failed : in_failed;
    at = mid ? piece_at : at_of[in_tag];
    left = mid ? piece_left : (first_fits ? first_beats : '0);
    rest_behind = mid ? piece_rest : lacks_of[in_tag] - first_beats;
    // A tag that is lost is lost, also if its last beat comes in this cycle.
    is_ours = (mid ? piece_is_ours : waits[in_tag]) && !(lost_valid && lost_tag == tag);
  end

  logic writes, ends, comes, breaks, frees, loses;
  assign writes = in_valid && is_ours && !fails && left != '0;
  assign ends   = in_valid && in_last;
  assign comes  = writes && ends && left == beats_t'(1);
  assign breaks = ends && is_ours && fails;
  assign frees  = breaks || (comes && rest_behind == '0);
  assign loses  = lost_valid && waits[lost_tag];

  always_ff @(posedge clk) begin
    if (in_valid) begin
      piece_tag <= tag;
      piece_failed <= fails;
      piece_at <= at + beat_t'(writes);
      piece_left <= left - beats_t'(left != '0);
      piece_rest <= rest_behind;
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

  // ---- The oldest descriptor leaves.

  logic is_refused, has_data, is_last, moves, gone;
  // Its words that have left the memory: a beat, and which half of it is next.
  beat_t beat;
  logic half, out_half;
  assign is_refused = beats_of[oldest] == '0;
  assign has_data = !is_refused && !failed[oldest];
  assign is_last = !has_data || (half && beats_t'(beat) + beats_t'(1) == beats_of[oldest]);
  assign moves = jobs != unasked && open_of[oldest] == '0 && (!out_valid || out_ready);
  assign gone = moves && is_last;

  always_ff @(posedge clk) begin
    if (rst) begin
      {oldest, asking} <= '0;
      {jobs, unasked} <= '0;
      asked <= '0;
      waits <= '0;
      {beat, half} <= '0;
      out_valid <= 1'b0;
    end else begin
      oldest <= oldest + place_t'(gone);
      asking <= asking + place_t'(finishes);
      jobs <= jobs + places_t'(rings) - places_t'(gone);
      unasked <= unasked + places_t'(rings) - places_t'(finishes);
      if (asks) asked <= asked + read_beats;
      if (finishes) asked <= '0;
      if (frees) waits[tag] <= 1'b0;
      if (loses) waits[lost_tag] <= 1'b0;
      if (asks) waits[read_tag] <= 1'b1;
      if (moves) {beat, half} <= is_last ? '0 : {beat, half} + (BeatWidth + 1)'(1);
      out_valid <= moves || (out_valid && !out_ready);
    end
    if (moves) begin
      out_first <= {beat, half} == '0;
      out_last <= is_last;
      out_failed <= failed[oldest];
      out_refused <= is_refused;
      out_function <= function_of[oldest];
      out_address <= address_of[oldest];
      out_half <= half;
    end
  end

  always_ff @(posedge clk) begin
    for (int unsigned each = 0; each < Places; each++) begin
      open_of[each] <= open_of[each] + tags_t'(asks && asking == place_t'(each))
          - tags_t'(frees && place == place_t'(each))
          - tags_t'(loses && place_of[lost_tag] == place_t'(each));
    end
    if (breaks) failed[place] <= 1'b1;
    if (loses) failed[place_of[lost_tag]] <= 1'b1;
    if (comes) begin
      at_of[tag] <= at + beat_t'(1);
      lacks_of[tag] <= rest_behind;
    end
    if (asks) begin
      place_of[read_tag] <= asking;
      at_of[read_tag] <= beat_t'(asked);
      lacks_of[read_tag] <= read_beats;
    end
    if (rings) begin
      function_of[newest] <= bell_function;
      address_of[newest] <= address;
      beats_of[newest] <= is_right ? beats_t'(length >> Shift) : '0;
      failed[newest] <= 1'b0;
      open_of[newest] <= '0;
    end
  end

`ifdef FORMAL
  // Proofs look at all beats.
  logic [Places*Beats-1:0][Width-1:0] f_beats;
`endif

  // A descriptor is read once it is whole: then no beat for it is written.
  logic [Width-1:0] data;
  ram_1w1r #(
      .Width(Width),
      .Depth(Places * Beats)
  ) u_beats (
      .clk,
      .write(writes),
      .write_address({place, at}),
      .write_data(in_data),
      .read(moves),
      .read_address({oldest, beat}),
`ifdef FORMAL
      .probe_words(f_beats),
`endif
      .read_data(data)
  );
  assign out_word = out_half ? data[Width-1:WordWidth] : data[WordWidth-1:0];

`ifdef PROVE_DESC_FETCH
  `include "desc_fetch_formal.svh"
`endif

endmodule
