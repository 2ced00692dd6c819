// Takes frames off TLPs, checks them, and tells link packets apart (S-16).
//
// It does not wait for a frame to be whole: the verdict comes with the last beat of the TLP
// (cut-through). A beat passes one cycle after the symbols that complete it. A frame that ends in
// the upper half of a beat leaves a rest, which passes one cycle later.
module frame_rx #(
    // Beats of the longest frame; a longer one is damaged.
    parameter int unsigned MaxBeats = 34
) (
    input logic clk,
    input logic rst,

    // Symbols, and which of them are special.
    input logic         line_valid,
    input logic [ 15:0] line_k,
    input logic [127:0] line_data,

    // Beats of TLPs. Empty DWs at the end of the last one are zero.
    output logic         out_valid,
    output logic         out_last,
    output logic [  1:0] out_empty,
    output logic [127:0] out_data,

    // With the last beat, the verdict. The number is there from the first beat on.
    output logic                               frame_valid,
    output logic                               frame_damaged,
    output logic [link_pkg::SequenceWidth-1:0] frame_sequence,

    // Link packets, unchecked.
    output logic        dllp_valid,
    output logic [63:0] dllp_data
);

  if (MaxBeats < 2) begin : g_beats
    $error("frame_rx: MaxBeats is at least 2");
  end

  localparam int unsigned CountWidth = $clog2(MaxBeats);

  // Between STP and END: how many beats have come, the number, and the last 13 bytes.
  logic mid;
  logic [CountWidth-1:0] beats;
  logic [15:0] number;
  logic [103:0] held;
  // The rest of a TLP is in `held`: two DWs or one.
  logic rest, rest_two;

  assign dllp_valid = line_valid && line_k[15:8] == 8'h81;
  assign dllp_data  = line_data[127:64];

  // A frame ends with a DW: in the lower half, where a link packet may follow, or in the upper one
  // if the lower one is full. `marks` are those of the half that counts.
  logic is_upper, ends_low, ends_high, has_end;
  logic [7:0] marks, last;
  assign is_upper = line_k[7:0] == '0;
  assign marks = is_upper ? line_k[15:8] : line_k[7:0];
  assign ends_low = marks == 8'h08;
  assign ends_high = marks == 8'h80;
  assign has_end = ends_low || ends_high;
  always_comb begin
    if (is_upper) last = ends_low ? line_data[95:88] : line_data[127:120];
    else last = ends_low ? line_data[31:24] : line_data[63:56];
  end

  logic starts, comes, goes_on;
  assign starts  = line_k == 16'h0001 && line_data[7:0] == link_pkg::Stp;
  assign comes   = line_valid && mid;
  assign goes_on = marks == '0 && beats != CountWidth'(MaxBeats - 1);

  // The beat that passes: whether it is its frame's first one, the frame's number and the CRC that
  // came, and whether a symbol was wrong.
  logic is_first, is_bad;
  logic [link_pkg::SequenceWidth-1:0] passing;
  logic [31:0] check;

  always_ff @(posedge clk) begin
    if (rst) begin
      mid <= 1'b0;
      rest <= 1'b0;
      out_valid <= 1'b0;
    end else begin
      if (line_valid) mid <= starts || (mid && goes_on);
      rest <= comes && has_end && is_upper;
      out_valid <= comes || rest;
    end
    rest_two <= ends_high;
    if (line_valid) begin
      held  <= line_data[127:24];
      beats <= starts ? CountWidth'(1) : beats + CountWidth'(1);
      if (starts) number <= {line_data[15:8], line_data[23:16]};
    end
    if (comes) begin
      is_first  <= beats == CountWidth'(1);
      is_bad    <= !has_end || last != link_pkg::End || number[15:12] != '0;
      passing   <= number[link_pkg::SequenceWidth-1:0];
      out_last  <= has_end ? !is_upper : !goes_on;
      out_empty <= 2'd0;
      out_data  <= {line_data[23:0], held};
      check     <= line_data[55:24];
      if (ends_low && !is_upper) begin
        out_empty <= 2'd1;
        out_data[127:96] <= '0;
        check <= {line_data[23:0], held[103:96]};
      end
    end else begin
      is_first  <= 1'b0;
      out_last  <= 1'b1;
      out_empty <= {1'b1, !rest_two};
      out_data  <= {64'b0, rest_two ? held[63:32] : 32'b0, held[31:0]};
      check     <= rest_two ? held[95:64] : held[63:32];
    end
  end

  // The CRC of the frame up to the beat that passes.
  logic [31:0] start, crc, crc_next;
  crc32_start u_start (
      .sequence_number(passing),
      .state(start)
  );
  crc32_beat u_crc (
      .state(is_first ? start : crc),
      .data (out_data),
      .empty(out_empty),
      .next (crc_next)
  );
  always_ff @(posedge clk) if (out_valid) crc <= crc_next;

  assign frame_valid = out_valid && out_last;
  assign frame_damaged = is_bad || check != ~crc_next;
  assign frame_sequence = passing;

`ifdef PROVE_FRAME_RX
  `include "frame_rx_formal.svh"
`endif

endmodule
