// Makes cHPP's packets of one class of TLPs (S-10 to S-13), which `tlp_wrap` made of them.
//
// A packet leaves when all of its segments have come and each check is right. A TLP that the link
// marks bad comes again. One that is wrong otherwise takes its packet with it. So does one that
// finds no room while no packet can leave.
module tlp_unwrap #(
    // Beats that wait. The longest packet must find room.
    parameter int unsigned Beats = 64,
    localparam int unsigned AddressWidth = (Beats > 1) ? $clog2(Beats) : 1
) (
    input logic clk,
    input logic rst,

    // A beat of a TLP, DWs that the last one lacks, and whether the TLP is to be dropped.
    input  logic         in_valid,
    output logic         in_ready,
    input  logic         in_last,
    input  logic         in_bad,
    input  logic [  1:0] in_empty,
    input  logic [127:0] in_data,
    // A packet or a part of one was dropped in the cycle before, and does not come again.
    output logic         dropped,

    // A beat of a packet, with the lane of its last byte.
    output logic         out_valid,
    input  logic         out_ready,
    output logic         out_last,
    output logic [  3:0] out_to,
    output logic [127:0] out_data
);

  if (Beats < 1) begin : g_parameters
    $error("tlp_unwrap: Beats is at least 1");
  end

  localparam int unsigned Most = link_pkg::MaxPayload / 4;
  localparam int unsigned CountWidth = $clog2(Most + 1);
  typedef logic [CountWidth-1:0] count_t;
  typedef logic [AddressWidth:0] at_t;

  // ---- The ring: the next beat that is stored, the first one behind what is right of the packet
  // that comes, the first one behind whole packets, and the next one that is read.

  at_t written, good, whole, read, read_next;
  logic is_full, leaves, stores, store_last;
  assign is_full = written - read == at_t'(Beats);
  assign leaves = out_valid && out_ready;
  assign read_next = read + at_t'(leaves);

  // ---- The TLP that comes: its header has come, beats that have not, and that it is wrong.

  logic started, spoilt, mid;
  count_t left;
  logic is_first, is_last;
  logic [3:0] to;
  logic [31:0] state, state_next;

  logic takes, is_payload;
  assign is_payload = started && !spoilt && left != '0;
  // If no packet can leave, what comes is too long.
  assign in_ready = !is_payload || !is_full || whole == read;
  assign takes = in_valid && in_ready;
  assign stores = takes && is_payload && !is_full;
  assign store_last = is_last && left == count_t'(1);

  logic [9:0] dwords;
  logic is_sized;
  assign dwords   = {in_data[link_pkg::LengthBit-8+:2], in_data[link_pkg::LengthBit+:8]};
  assign is_sized = dwords[1:0] == '0 && dwords != '0 && dwords <= 10'(link_pkg::MaxPayload);

  crc32_beat u_crc (
      .state(started ? state : 32'hffff_ffff),
      .data (in_data),
      .empty(2'd0),
      .next (state_next)
  );

  // It ends: its check is right, it follows, it comes again.
  logic is_check, is_right, ends, keeps, drops;
  assign is_check = started && !spoilt && left == '0;
  assign is_right = is_check && in_empty == 2'd3 && in_data[31:0] == ~state;
  assign ends = takes && in_last;
  assign keeps = ends && !in_bad && is_right && is_first != mid;
  assign drops = ends && !in_bad && !keeps;

  always_ff @(posedge clk) begin
    if (rst) begin
      started <= 1'b0;
      spoilt <= 1'b0;
      mid <= 1'b0;
      dropped <= 1'b0;
      written <= '0;
      good <= '0;
      whole <= '0;
      read <= '0;
      out_valid <= 1'b0;
    end else begin
      if (takes) begin
        started <= !in_last;
        spoilt <= !in_last && (spoilt || (started ? is_check || (is_payload && is_full) : !is_sized));
      end
      if (keeps) mid <= !is_last;
      else if (drops) mid <= 1'b0;
      dropped <= drops;
      // What is stored of a TLP that comes again, or that is dropped, is written over.
      if (keeps) begin
        good <= written;
        if (is_last) whole <= written;
      end else if (drops) begin
        written <= whole;
        good <= whole;
      end else if (ends) begin
        written <= good;
      end else begin
        written <= written + at_t'(stores);
      end
      read <= read_next;
      out_valid <= read_next != whole;
    end
    if (takes) begin
      if (!started) begin
        {is_first, is_last, to} <= in_data[125:120];
        left <= count_t'(dwords >> 2);
      end else if (is_payload) begin
        left <= left - count_t'(1);
      end
      state <= state_next;
    end
  end

`ifdef FORMAL
  logic [2**AddressWidth-1:0][132:0] f_words;
`endif

  logic [132:0] out_word;
  ram_1w1r #(
      .Width(133),
      .Depth(2 ** AddressWidth)
  ) u_ram (
      .clk,
      .write        (stores),
      .write_address(written[AddressWidth-1:0]),
      .write_data   ({store_last, store_last ? to : 4'd0, in_data}),
      .read         (1'b1),
      .read_address (read_next[AddressWidth-1:0]),
`ifdef FORMAL
      .probe_words  (f_words),
`endif
      .read_data    (out_word)
  );
  assign {out_last, out_to, out_data} = out_word;

`ifdef PROVE_TLP_UNWRAP
  `include "tlp_unwrap_formal.svh"
`endif

endmodule
