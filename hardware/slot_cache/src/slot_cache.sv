// The caches of free NAP slots of all queue pairs (C-19 to C-21): slots are read from lists in host
// memory before they run out, and each NAP takes one.
//
// One queue pair is looked at in every cycle. The read of one that is looked at in cycle t is
// offered from t + 1 on. One entry enters and one slot leaves in every cycle. An entry that enters
// in cycle t can be taken from t + 1 on, and a slot that is taken in t stands at the output from
// t + 1 on. What the host writes in cycle t counts from t + 1 on.
module slot_cache #(
    // Queue pairs, and places for the slots of each: powers of two.
    parameter int unsigned Pairs = 32,
    parameter int unsigned Slots = 32,
    // Entries of a read, at most. They always have room, as a refill is due at half.
    parameter int unsigned Batch = 16,
    // Bits of a count of entries. A list has fewer entries than it can tell apart.
    parameter int unsigned CountWidth = 9,
    parameter int unsigned AddressWidth = 40,
    localparam int unsigned PageShift = 12,
    localparam int unsigned PairWidth = (Pairs > 1) ? $clog2(Pairs) : 1,
    localparam int unsigned PlaceWidth = (Slots > 1) ? $clog2(Slots) : 1,
    localparam int unsigned BatchWidth = $clog2(Batch + 1),
    localparam int unsigned PageWidth = AddressWidth - PageShift,
    localparam int unsigned WordWidth = 64
) (
    input logic clk,
    input logic rst,

    // The host opens a list of `host_count` entries at the beginning of a page, or closes one that
    // has none then. Otherwise it reports how many it has listed since the list was opened.
    input  logic                  host_valid,
    input  logic                  host_opens,
    input  logic [ PairWidth-1:0] host_pair,
    input  logic [ PageWidth-1:0] host_page,
    input  logic [CountWidth-1:0] host_count,
    // What it wrote in the cycle before cannot be, and changed nothing.
    output logic                  refused,

    // A NAP takes a slot. Why it gets none does not depend on `take_valid`.
    input  logic                    take_valid,
    output logic                    take_ready,
    input  logic [   PairWidth-1:0] take_pair,
    output logic                    lacks_list,
    output logic                    lacks_slot,
    // Slots of that queue pair in the cache, and the slot that was taken last.
    output logic [    PlaceWidth:0] cached,
    output logic [AddressWidth-1:0] slot,

    // A read of a list.
    output logic                    read_valid,
    input  logic                    read_ready,
    output logic [   PairWidth-1:0] read_pair,
    output logic [AddressWidth-1:0] read_address,
    output logic [  BatchWidth-1:0] read_count,

    // An entry, in the order of its list. Or instead of it and all behind it, the refill fails.
    input  logic                 in_valid,
    output logic                 in_ready,
    input  logic [PairWidth-1:0] in_pair,
    input  logic                 in_failed,
    input  logic [WordWidth-1:0] in_word,
    // What came in the cycle before: it was dropped, as no refill of its queue pair is under way; a
    // refill has failed, and what did not come is asked for again; or it was dropped, as it is not
    // the address of a slot.
    output logic                 unexpected,
    output logic                 failed,
    output logic                 misplaced,
    output logic [PairWidth-1:0] told_pair
);

  localparam int unsigned SlotShift = 11;
  localparam int unsigned IndexWidth = PageShift - $clog2(WordWidth / 8);

  if (Pairs != 2 ** PairWidth || Slots != 2 ** PlaceWidth) begin : g_powers
    $error("slot_cache: Pairs and Slots are powers of two, and at least 2");
  end
  if (Batch < 1 || 2 * Batch > Slots) begin : g_batch
    $error("slot_cache: Batch is at least 1, and at most half of Slots");
  end
  // So a list lies in one page, and no read crosses one.
  if (CountWidth < 1 || CountWidth > IndexWidth) begin : g_count
    $error("slot_cache: CountWidth is at least 1, and at most 9");
  end
  if (AddressWidth <= PageShift || AddressWidth >= WordWidth) begin : g_address
    $error("slot_cache: AddressWidth is more than 12, and less than 64");
  end

  typedef logic [PairWidth-1:0] pair_t;
  typedef logic [PlaceWidth-1:0] place_t;
  typedef logic [CountWidth-1:0] count_t;
  // A count of slots, and one of entries in a read.
  typedef logic [PlaceWidth:0] slots_t;
  typedef logic [BatchWidth-1:0] batch_t;

  // What a queue pair has says nothing while its list is closed.
  logic [Pairs-1:0] is_open;
  logic [PageWidth-1:0] page_of[Pairs];
  count_t entries_of[Pairs];
  // Entries that were listed since the list was opened, those of them that have come, and where the
  // next one stands.
  count_t posted_of[Pairs], fetched_of[Pairs], index_of[Pairs];
  // Slots that entered the cache since then, and those that left it.
  slots_t stored_of[Pairs], taken_of[Pairs];
  // A refill is under way; its list was closed or opened anew meanwhile, which says nothing without
  // a refill.
  logic [Pairs-1:0] refills, stale;
  // Entries that have come for refills, and how many have when this one ends. They begin anywhere.
  batch_t come_of[Pairs], goal_of[Pairs];

  // ---- The host. Each memory has one write port, which an opening takes: meanwhile no entry
  // enters, no slot leaves and no read is asked for.

  logic opens, reports;
  count_t host_posted, host_left, news;
  assign host_posted = posted_of[host_pair];
  assign host_left = host_posted - fetched_of[host_pair];
  assign news = host_count - host_posted;
  assign opens = host_valid && host_opens;
  assign reports = host_valid && !host_opens && is_open[host_pair]
      && news <= entries_of[host_pair] - host_left;

  // ---- A slot leaves.

  logic   takes;
  slots_t taken;
  assign taken = taken_of[take_pair];
  assign cached = is_open[take_pair] ? stored_of[take_pair] - taken : '0;
  assign lacks_list = !is_open[take_pair];
  assign lacks_slot = is_open[take_pair] && cached == '0;
  assign take_ready = !opens && cached != '0;
  assign takes = take_valid && take_ready;

  // ---- The queue pair that is looked at. One that is due keeps its turn until it is asked for.

  pair_t probe;
  count_t probe_left, probe_end, least;
  slots_t probe_cached;
  batch_t count;
  logic is_due, has_output, asks;
  assign probe_left = posted_of[probe] - fetched_of[probe];
  assign probe_cached = stored_of[probe] - taken_of[probe];
  // A read does not wrap.
  assign probe_end = entries_of[probe] - index_of[probe];
  assign least = (probe_left < probe_end) ? probe_left : probe_end;
  assign count = (32'(least) < Batch) ? batch_t'(least) : batch_t'(Batch);
  assign is_due = is_open[probe] && !refills[probe] && probe_left != '0
      && probe_cached <= slots_t'(Slots / 2);
  assign has_output = !read_valid || read_ready;
  assign asks = is_due && has_output && !opens;

  // ---- An entry comes.

  logic arrives, is_ours, is_fresh, is_slot, stores, ends, is_last;
  count_t fetched, index, index_next;
  slots_t stored;
  batch_t come;
  assign in_ready = !opens;
  assign arrives = in_valid && in_ready;
  assign is_ours = arrives && refills[in_pair];
  assign is_fresh = is_ours && !in_failed && !stale[in_pair];
  assign is_slot = in_word[WordWidth-1:AddressWidth] == '0 && in_word[SlotShift-1:0] == '0;
  assign stores = is_fresh && is_slot;
  assign fetched = fetched_of[in_pair];
  assign index = index_of[in_pair];
  assign is_last = index + count_t'(1) == entries_of[in_pair];
  assign index_next = is_last ? '0 : index + count_t'(1);
  assign stored = stored_of[in_pair];
  assign come = come_of[in_pair] + batch_t'(1);
  assign ends = is_ours && (in_failed || come == goal_of[in_pair]);

  always_ff @(posedge clk) begin
    if (rst) begin
      is_open <= '0;
      refills <= '0;
      probe <= '0;
      refused <= 1'b0;
      read_valid <= 1'b0;
      unexpected <= 1'b0;
      failed <= 1'b0;
      misplaced <= 1'b0;
    end else begin
      if (opens) is_open[host_pair] <= host_count != '0;
      if (ends) refills[in_pair] <= 1'b0;
      if (asks) refills[probe] <= 1'b1;
      if (!is_due || asks) probe <= probe + pair_t'(1);
      refused <= host_valid && !opens && !reports;
      read_valid <= asks || (read_valid && !read_ready);
      unexpected <= arrives && !refills[in_pair];
      failed <= is_ours && in_failed;
      misplaced <= is_fresh && !is_slot;
    end
    told_pair <= in_pair;
    if (asks) begin
      read_pair <= probe;
      read_address <= {page_of[probe], IndexWidth'(index_of[probe]), (PageShift - IndexWidth)'(0)};
      read_count <= count;
      stale[probe] <= 1'b0;
    end
    if (opens) stale[host_pair] <= 1'b1;
  end

  pair_t enters, leaves;
  assign enters = opens ? host_pair : in_pair;
  assign leaves = opens ? host_pair : take_pair;

  always_ff @(posedge clk) begin
    if (opens) begin
      page_of[host_pair] <= host_page;
      entries_of[host_pair] <= host_count;
    end
    if (opens || reports) posted_of[host_pair] <= opens ? '0 : host_count;
    if (opens || is_fresh) begin
      fetched_of[enters] <= opens ? '0 : fetched + count_t'(1);
      index_of[enters]   <= opens ? '0 : index_next;
    end
    if (opens || stores) stored_of[enters] <= opens ? '0 : stored + slots_t'(1);
    if (opens || takes) taken_of[leaves] <= opens ? '0 : taken + slots_t'(1);
    if (is_ours) come_of[in_pair] <= come;
    if (asks) goal_of[probe] <= come_of[probe] + count;
  end

`ifdef FORMAL
  // Proofs look at all slots.
  logic [Pairs*Slots-1:0][AddressWidth-SlotShift-1:0] f_slots;
`endif

  // Both ports meet at one place only if its cache is empty or full: then only one of them is used.
  logic [AddressWidth-SlotShift-1:0] number;
  ram_1w1r #(
      .Width(AddressWidth - SlotShift),
      .Depth(Pairs * Slots)
  ) u_slots (
      .clk,
      .write(stores),
      .write_address({in_pair, place_t'(stored)}),
      .write_data(in_word[AddressWidth-1:SlotShift]),
      .read(takes),
      .read_address({take_pair, place_t'(taken)}),
`ifdef FORMAL
      .probe_words(f_slots),
`endif
      .read_data(number)
  );
  assign slot = {number, SlotShift'(0)};

`ifdef PROVE_SLOT_CACHE
  `include "slot_cache_formal.svh"
`endif

endmodule
