// Reads addresses of free NAP slots (C-19, C-20, C-36): what stands between the caches of slots and
// the arbiter of reads.
//
// One read is under way at a time. Its beats are stored as they come. When it is whole, its entries
// leave one by one. A read that fails, or whose tag is lost, is told in their place. A completion
// counts with its last beat, and only if the read lacks its bytes next.
module slot_read #(
    // Entries of a read, at most.
    parameter  int unsigned Batch        = 16,
    parameter  int unsigned PairWidth    = 5,
    parameter  int unsigned AddressWidth = 40,
    // Bits of a count of bytes.
    parameter  int unsigned SizeWidth    = 13,
    // Bits of an entry; a beat has two.
    parameter  int unsigned WordWidth    = 64,
    localparam int unsigned CountWidth   = $clog2(Batch) + 1
) (
    input logic clk,
    input logic rst,

    // A read of the caches: a queue pair, the first entry's address, and how many.
    input  logic                    read_valid,
    output logic                    read_ready,
    input  logic [   PairWidth-1:0] read_pair,
    input  logic [AddressWidth-1:0] read_address,
    input  logic [  CountWidth-1:0] read_count,

    // The read for the arbiter of reads, and its queue pair.
    output logic                    ask_valid,
    input  logic                    ask_ready,
    output logic [   PairWidth-1:0] ask_pair,
    output logic [AddressWidth-1:0] ask_address,
    output logic [   SizeWidth-1:0] ask_bytes,

    // A beat of a completion for this block. What it says of failure and bytes counts with the
    // first one.
    input logic                                in_valid,
    input logic                                in_last,
    input logic                                in_failed,
    input logic [SizeWidth-1:0]                in_bytes,
    input logic [SizeWidth-1:0]                in_remaining,
    input logic [          1:0][WordWidth-1:0] in_data,

    // The tag of the read is lost. What ended in the cycle before: the last of a read, so its tag
    // comes back; or it was dropped.
    input  logic lost_valid,
    output logic free_valid,
    output logic unexpected,
    output logic mismatched,

    // An entry for the caches.
    output logic                 entry_valid,
    input  logic                 entry_ready,
    output logic [PairWidth-1:0] entry_pair,
    output logic                 entry_failed,
    output logic [WordWidth-1:0] entry_word
);

  if (Batch < 2 || Batch != 2 ** $clog2(Batch)) begin : g_batch
    $error("slot_read: Batch is a power of two, at least 2");
  end
  if (PairWidth < 1 || AddressWidth < 4 || WordWidth < 1) begin : g_parameters
    $error("slot_read: PairWidth and WordWidth are at least 1, AddressWidth 4");
  end
  if (SizeWidth < CountWidth + 3) begin : g_size
    $error("slot_read: SizeWidth counts the bytes of a batch");
  end

  typedef logic [CountWidth-1:0] count_t;
  // Beats of a read, at most, and the number of one. A word's number among those of all beats fits
  // into a count, as half of the words of the first beat at most lie before the read.
  localparam int unsigned BeatWidth = $clog2(Batch / 2 + 2);
  typedef logic [BeatWidth-1:0] beat_t;

  typedef enum logic [2:0] {
    Idle,
    Asks,
    Waits,
    Whole,
    Failed
  } state_e;
  state_e state;
  count_t count, came, left;

  // The upper half of the first beat is the first entry.
  logic is_high;
  assign is_high = ask_address[3];
  function automatic count_t word_of(input count_t entry, input logic high);
    word_of = entry + count_t'(high);
  endfunction

  assign read_ready = state == Idle;
  assign ask_valid  = state == Asks;
  assign ask_pair   = entry_pair;
  assign ask_bytes  = SizeWidth'({count, 3'b0});

  // ---- A completion.

  logic loses;
  assign loses = lost_valid && state == Waits;

  // What its first beat says.
  count_t first_word, end_word;
  logic fits;
  beat_t first_beat, first_lacks;
  always_comb begin
    first_word = word_of(came, is_high);
    end_word = first_word + count_t'(in_bytes[SizeWidth-1:3]);
    fits = in_remaining == SizeWidth'({count - came, 3'b0}) && in_bytes <= in_remaining
        && in_bytes[2:0] == '0 && (in_bytes == in_remaining || !end_word[0]);
    first_beat = beat_t'(first_word[CountWidth-1:1]);
    first_lacks = fits ? beat_t'(end_word[CountWidth-1:1]) + beat_t'(end_word[0]) - first_beat : '0;
  end

  // The same of the completion that comes, and of it with this beat.
  logic mid, ours, piece_failed;
  count_t entries, now_entries;
  beat_t at, lacks, now_at, now_lacks;
  logic now_ours, now_failed;
  always_comb begin
    now_ours = mid ? ours && !loses : state == Waits && !loses;
    now_failed = mid ? piece_failed : in_failed;
    now_entries = mid ? entries : fits ? count_t'(in_bytes[SizeWidth-1:3]) : '0;
    now_at = mid ? at : first_beat;
    now_lacks = mid ? lacks : first_lacks;
  end

  logic stores, comes, ends;
  assign stores = in_valid && now_ours && now_lacks != '0;
  assign comes = in_valid && in_last && now_ours && now_lacks == beat_t'(1);
  assign ends = in_valid && in_last && now_ours
      && (now_failed || (now_lacks == beat_t'(1) && came + now_entries == count));

  // Beats of the read.
  logic [1:0][WordWidth-1:0] beats[2**BeatWidth];
  always_ff @(posedge clk) begin
    if (stores) beats[now_at] <= in_data;
  end

  // ---- Entries.

  count_t word;
  logic [1:0][WordWidth-1:0] beat;
  assign word = word_of(left, is_high);
  assign beat = beats[beat_t'(word[CountWidth-1:1])];
  assign entry_valid = state == Whole || state == Failed;
  assign entry_failed = state == Failed;
  assign entry_word = beat[word[0]];

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= Idle;
      mid <= 1'b0;
      free_valid <= 1'b0;
      unexpected <= 1'b0;
      mismatched <= 1'b0;
    end else begin
      unique case (state)
        Idle: if (read_valid) state <= Asks;
        Asks: if (ask_ready) state <= Waits;
        Waits: begin
          if (loses) state <= Failed;
          else if (ends) state <= now_failed ? Failed : Whole;
        end
        default: if (entry_ready && (state == Failed || left + count_t'(1) == count)) state <= Idle;
      endcase
      if (in_valid) mid <= !in_last;
      free_valid <= ends;
      unexpected <= in_valid && in_last && !now_ours;
      mismatched <= in_valid && in_last && now_ours && !now_failed && !comes;
    end
    if (state == Idle) begin
      entry_pair <= read_pair;
      ask_address <= read_address;
      count <= read_count;
      came <= '0;
      left <= '0;
    end
    if (comes) came <= came + now_entries;
    if (entry_valid && entry_ready) left <= left + count_t'(1);
    ours <= now_ours;
    if (in_valid) begin
      piece_failed <= now_failed;
      entries <= now_entries;
      at <= now_at + beat_t'(stores);
      lacks <= now_lacks - beat_t'(stores);
    end
  end

`ifdef PROVE_SLOT_READ
  `include "slot_read_formal.svh"
`endif

endmodule
