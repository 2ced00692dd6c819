// What software stores beside doorbells (C-09, C-14, C-19, C-32, C-38, C-39): a store into the page
// of registers opens a ring or a list, or sets a window or a key. One into the upper half of a
// function's page reports what that function has consumed or listed.
//
// All other stores go on to `bell_decode` in the same cycle. What a store's last beat brings stands
// at the other outputs in the next cycle. Nothing waits.
module host_regs #(
    // Bits of each count.
    parameter  int unsigned CountWidth    = 32,
    localparam int unsigned WindowWidth   = 16,
    localparam int unsigned PageShift     = 12,
    localparam int unsigned SizeWidth     = 13,
    localparam int unsigned FunctionWidth = $clog2(regs_pkg::Functions),
    localparam int unsigned PairWidth     = $clog2(regs_pkg::KeyCount),
    localparam int unsigned RingWidth     = $clog2(regs_pkg::RingCount)
) (
    input logic clk,
    input logic rst,

    // A beat of a store. Address and bytes count with the first one. It is for `bell_decode`.
    input  logic                         store_valid,
    input  logic                         store_last,
    input  logic [WindowWidth-1:0]       store_address,
    input  logic [  SizeWidth-1:0]       store_bytes,
    input  logic [            1:0][63:0] store_data,
    output logic                         bell_valid,

    // A window or a key is set: for `key_window`.
    output logic                     keys_valid,
    output logic                     keys_window,
    output logic [FunctionWidth-1:0] keys_function,
    output logic [             27:0] keys_base,
    output logic [             28:0] keys_pages,
    output logic [    PairWidth-1:0] keys_pair,
    output logic                     keys_opens,
    output logic [              7:0] keys_key,

    // A ring is opened, or reported: for `event_ring`.
    output logic                 rings_valid,
    output logic                 rings_opens,
    output logic [RingWidth-1:0] rings_ring,
    output logic [         34:0] rings_base,
    output logic [         12:0] rings_count,

    // A list is opened, or reported: for `slot_cache`.
    output logic                 slots_valid,
    output logic                 slots_opens,
    output logic [PairWidth-1:0] slots_pair,
    output logic [         27:0] slots_page,
    output logic [          8:0] slots_count,

    // What was written to keys, rings or slots in the cycle before cannot be. A TLP of the host was
    // dropped. A request made no TLP.
    input logic [2:0] refused,
    input logic       tlp_dropped,
    input logic       tlp_refused,

    // Since reset: stores that were dropped here, and the three above.
    output logic [CountWidth-1:0] dropped,
    output logic [CountWidth-1:0] refusals,
    output logic [CountWidth-1:0] tlps_dropped,
    output logic [CountWidth-1:0] tlps_refused
);

  if (CountWidth < 1) begin : g_count
    $error("host_regs: CountWidth is at least 1");
  end

  // ---- Where a store goes, with all of its beats.

  logic mid, mid_own, begins_own, own;
  logic [WindowWidth-PageShift-1:0] page;
  logic [PageShift-1:0] place;
  logic is_function, is_page;
  assign {page, place} = store_address;
  assign is_function = 32'(page) < regs_pkg::Functions;
  assign is_page = 32'(page) == regs_pkg::Page;
  assign begins_own = is_page || (is_function && 32'(place) >= regs_pkg::Reports);
  assign own = mid ? mid_own : begins_own;
  assign bell_valid = store_valid && !own;

  // ---- Which register it names.

  function automatic logic among(input logic [PageShift-1:0] at, input int unsigned first,
                                 input int unsigned count);
    among = 32'(at) >= first && 32'(at) < first + count * regs_pkg::StoreBytes;
  endfunction

  logic is_ring, is_list, is_window, is_key, is_ring_report, is_list_report;
  assign is_ring = is_page && among(place, regs_pkg::RingPlace, regs_pkg::RingCount);
  assign is_list = is_page && among(place, regs_pkg::ListPlace, regs_pkg::ListCount);
  assign is_window = is_page && among(place, regs_pkg::WindowPlace, regs_pkg::WindowCount);
  assign is_key = is_page && among(place, regs_pkg::KeyPlace, regs_pkg::KeyCount);
  assign is_ring_report = is_function && among(
      place, regs_pkg::RingReportPlace, regs_pkg::RingReportCount
  );
  assign is_list_report = is_function && among(
      place, regs_pkg::ListReportPlace, regs_pkg::ListReportCount
  );

  // ---- What it says. Bits of no field must be zero.

  logic [63:0] word;
  regs_pkg::ring_t ring;
  regs_pkg::list_t list;
  regs_pkg::window_t window;
  regs_pkg::key_t key;
  regs_pkg::ring_report_t ring_report;
  regs_pkg::list_report_t list_report;
  assign word = store_data[place[3]];
  assign ring = word;
  assign list = word;
  assign window = word;
  assign key = word;
  assign ring_report = word;
  assign list_report = word;

  logic is_whole, sets_ring, sets_list, sets_window, sets_key, reports_ring, reports_list;
  logic ends, takes;
  assign ends = store_valid && store_last && own;
  assign is_whole = ends && !mid && 32'(store_bytes) == regs_pkg::StoreBytes && place[2:0] == '0;
  assign sets_ring = is_whole && is_ring
      && {ring.reserved_63, ring.reserved_47, ring.reserved_4} == '0;
  assign sets_list = is_whole && is_list
      && {list.reserved_63, list.reserved_47, list.reserved_11} == '0;
  assign sets_window = is_whole && is_window && {window.reserved_63, window.reserved_31} == '0;
  assign sets_key = is_whole && is_key && key.reserved_63 == '0 && (key.opens || key.key == '0);
  assign reports_ring = is_whole && is_ring_report && ring_report.reserved_63 == '0;
  assign reports_list = is_whole && is_list_report && list_report.reserved_63 == '0;
  assign takes = sets_ring || sets_list || sets_window || sets_key || reports_ring || reports_list;

  // Registers lie at multiples of their number.
  always_ff @(posedge clk) begin
    if (rst) begin
      mid <= 1'b0;
      {keys_valid, rings_valid, slots_valid} <= '0;
      dropped <= '0;
      refusals <= '0;
      tlps_dropped <= '0;
      tlps_refused <= '0;
    end else begin
      if (store_valid) mid <= !store_last;
      keys_valid <= sets_window || sets_key;
      rings_valid <= sets_ring || reports_ring;
      slots_valid <= sets_list || reports_list;
      dropped <= dropped + CountWidth'(ends && !takes);
      refusals <= refusals + CountWidth'(refused != '0);
      tlps_dropped <= tlps_dropped + CountWidth'(tlp_dropped);
      tlps_refused <= tlps_refused + CountWidth'(tlp_refused);
    end
    if (store_valid) mid_own <= own;
    keys_window <= sets_window;
    keys_function <= place[3+:FunctionWidth];
    keys_base <= window.base;
    keys_pages <= window.pages;
    keys_pair <= place[3+:PairWidth];
    keys_opens <= key.opens;
    keys_key <= key.key;
    rings_opens <= sets_ring;
    rings_ring <= sets_ring ? place[3+:RingWidth] : {page[FunctionWidth-1:0], place[5:3]};
    rings_base <= ring.base;
    rings_count <= sets_ring ? ring.entries : ring_report.count;
    slots_opens <= sets_list;
    slots_pair <= sets_list ? place[3+:PairWidth] : {page[FunctionWidth-1:0], place[4:3]};
    slots_page <= list.page;
    slots_count <= sets_list ? list.entries : list_report.count;
  end

`ifdef PROVE_HOST_REGS
  `include "host_regs_formal.svh"
`endif

endmodule
