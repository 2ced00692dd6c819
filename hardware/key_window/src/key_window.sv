// The keys of all queue pairs and the windows of all functions (C-09, C-38, C-39): a packet must
// carry the key of its queue pair, and what a function reads and writes must lie in its window.
//
// What is asked in cycle t is answered in t + 1, one of each kind in every cycle. What the host
// writes in cycle t counts for what is asked from t + 1 on. After reset there is no key and no
// window, so nothing fits.
module key_window #(
    // Powers of two.
    parameter int unsigned Functions = 8,
    parameter int unsigned Pairs = 32,
    parameter int unsigned KeyWidth = 8,
    parameter int unsigned AddressWidth = 40,
    // Bits of a number of bytes, and of the counts of what is wrong.
    parameter int unsigned LengthWidth = 40,
    parameter int unsigned CountWidth = 32,
    localparam int unsigned PageShift = 12,
    localparam int unsigned FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1,
    localparam int unsigned PairWidth = (Pairs > 1) ? $clog2(Pairs) : 1,
    localparam int unsigned PageWidth = AddressWidth - PageShift
) (
    input logic clk,
    input logic rst,

    // The host gives a function a window of `host_pages` pages from `host_base` on, or none if it
    // has no pages. Otherwise it gives a queue pair a key, or takes that away.
    input  logic                     host_valid,
    input  logic                     host_window,
    input  logic [FunctionWidth-1:0] host_function,
    input  logic [    PageWidth-1:0] host_base,
    input  logic [      PageWidth:0] host_pages,
    input  logic [    PairWidth-1:0] host_pair,
    input  logic                     host_opens,
    input  logic [     KeyWidth-1:0] host_key,
    // What it wrote in the cycle before cannot be, and changed nothing.
    output logic                     refused,

    // A PUT or a NAP with a key for a queue pair. It fits, or it is wrong.
    input  logic                 packet_valid,
    input  logic [PairWidth-1:0] packet_pair,
    input  logic [ KeyWidth-1:0] packet_key,
    output logic                 packet_fits,
    output logic                 packet_wrong,

    // A GET, likewise.
    input  logic                 get_valid,
    input  logic [PairWidth-1:0] get_pair,
    input  logic [ KeyWidth-1:0] get_key,
    output logic                 get_fits,
    output logic                 get_wrong,

    // Bytes that a function writes.
    input  logic                     target_valid,
    input  logic [FunctionWidth-1:0] target_function,
    input  logic [ AddressWidth-1:0] target_address,
    input  logic [  LengthWidth-1:0] target_length,
    output logic                     target_fits,
    output logic                     target_wrong,

    // Bytes that a function reads.
    input  logic                     source_valid,
    input  logic [FunctionWidth-1:0] source_function,
    input  logic [ AddressWidth-1:0] source_address,
    input  logic [  LengthWidth-1:0] source_length,
    output logic                     source_fits,
    output logic                     source_wrong,

    // Packets, GETs with them, and targets that were wrong since reset.
    output logic [CountWidth-1:0] wrong_packets,
    output logic [CountWidth-1:0] wrong_targets
);

  if (Functions != 2 ** FunctionWidth || Pairs != 2 ** PairWidth) begin : g_powers
    $error("key_window: Functions and Pairs are powers of two, and at least 2");
  end
  if (KeyWidth < 1 || CountWidth < 1 || LengthWidth < 1) begin : g_widths
    $error("key_window: KeyWidth, CountWidth and LengthWidth are at least 1");
  end
  if (AddressWidth <= PageShift || LengthWidth > AddressWidth) begin : g_address
    $error("key_window: AddressWidth is more than 12, and at least LengthWidth");
  end

  // A page, or the one behind the last.
  typedef logic [PageWidth:0] page_t;
  // An address, or one behind the last byte of any run.
  typedef logic [AddressWidth:0] end_t;

  // A queue pair has a key, and a function a window; else what is there says nothing.
  logic [Pairs-1:0] has_key;
  logic [Functions-1:0] has_window;
  logic [KeyWidth-1:0] key_of[Pairs];
  // The first page, and the page behind the last one.
  logic [PageWidth-1:0] base_of[Functions];
  page_t end_of[Functions];

  // ---- The host. A window ends with the last address.

  localparam logic [PageWidth+1:0] AllPages = {2'b01, PageWidth'(0)};
  logic [PageWidth+1:0] behind;
  logic sets_window, sets_key;
  assign behind = (PageWidth + 2)'(host_base) + (PageWidth + 2)'(host_pages);
  assign sets_window = host_valid && host_window && behind <= AllPages;
  assign sets_key = host_valid && !host_window;

  // ---- What is asked.

  logic key_fits, get_key_fits, target_holds, source_holds;
  end_t target_end, source_end;
  assign key_fits = has_key[packet_pair] && packet_key == key_of[packet_pair];
  assign get_key_fits = has_key[get_pair] && get_key == key_of[get_pair];
  assign target_end = end_t'(target_address) + end_t'(target_length);
  assign source_end = end_t'(source_address) + end_t'(source_length);
  assign target_holds = has_window[target_function]
      && target_address[AddressWidth-1:PageShift] >= base_of[target_function]
      && target_end <= {end_of[target_function], PageShift'(0)};
  assign source_holds = has_window[source_function]
      && source_address[AddressWidth-1:PageShift] >= base_of[source_function]
      && source_end <= {end_of[source_function], PageShift'(0)};

  always_ff @(posedge clk) begin
    if (rst) begin
      has_key <= '0;
      has_window <= '0;
      refused <= 1'b0;
      packet_fits <= 1'b0;
      packet_wrong <= 1'b0;
      get_fits <= 1'b0;
      get_wrong <= 1'b0;
      target_fits <= 1'b0;
      target_wrong <= 1'b0;
      source_fits <= 1'b0;
      source_wrong <= 1'b0;
      wrong_packets <= '0;
      wrong_targets <= '0;
    end else begin
      if (sets_key) has_key[host_pair] <= host_opens;
      if (sets_window) has_window[host_function] <= host_pages != '0;
      refused <= host_valid && !sets_key && !sets_window;
      packet_fits <= packet_valid && key_fits;
      packet_wrong <= packet_valid && !key_fits;
      get_fits <= get_valid && get_key_fits;
      get_wrong <= get_valid && !get_key_fits;
      target_fits <= target_valid && target_holds;
      target_wrong <= target_valid && !target_holds;
      source_fits <= source_valid && source_holds;
      source_wrong <= source_valid && !source_holds;
      wrong_packets <= wrong_packets + CountWidth'(packet_valid && !key_fits)
          + CountWidth'(get_valid && !get_key_fits);
      wrong_targets <= wrong_targets + CountWidth'(target_valid && !target_holds);
    end
  end

  always_ff @(posedge clk) begin
    if (sets_key) key_of[host_pair] <= host_key;
    if (sets_window) begin
      base_of[host_function] <= host_base;
      end_of[host_function]  <= page_t'(behind);
    end
  end

`ifdef PROVE_KEY_WINDOW
  `include "key_window_formal.svh"
`endif

endmodule
