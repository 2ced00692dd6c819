// Puts frames around TLPs, and link packets between them (S-16).
//
// A frame is STP, its number, the TLP, the link CRC and END. It begins with a beat of the line, and
// all of its beats are full but the last one. A beat that enters in cycle t is on the line from
// t + 1 on. A link packet takes the upper half of a beat that no frame needs. Link packets go
// first, but never within a frame.
module frame_tx (
    input logic clk,
    input logic rst,

    // Beats of TLPs, with the numbers of their frames.
    input  logic                               in_valid,
    output logic                               in_ready,
    input  logic                               in_last,
    input  logic [link_pkg::SequenceWidth-1:0] in_sequence,
    input  logic [                      127:0] in_data,

    // Link packets.
    input  logic        dllp_valid,
    output logic        dllp_ready,
    input  logic [63:0] dllp_data,

    // Symbols, and which of them are special.
    output logic         line_valid,
    input  logic         line_ready,
    output logic [ 15:0] line_k,
    output logic [127:0] line_data
);

  // A TLP has begun to enter and has not ended; the end of its frame is not yet on the line.
  logic mid, over;
  // Of the beat before: its last three bytes, and the register of the CRC behind it.
  logic [23:0] carry;
  logic [31:0] crc;
  // DWs of the TLP's last beat that are empty.
  logic [ 1:0] empty;

  logic moves, takes, links;
  assign moves = line_ready || !line_valid;
  assign in_ready = moves && !over && (mid || !dllp_valid);
  assign dllp_ready = moves && !mid;
  assign takes = in_valid && in_ready;
  assign links = dllp_valid && dllp_ready;

  // Beats do not tell how many bytes the last one has; the TLP's header does. With its own 5 DW and
  // a payload of n, the last beat has n + 1 modulo 4.
  logic [1:0] last_empty, beat_empty;
  assign last_empty = mid ? empty : ~in_data[link_pkg::LengthBit+:2];
  assign beat_empty = in_last ? last_empty : 2'd0;

  logic [31:0] start, crc_next;
  crc32_start u_start (
      .sequence_number(in_sequence),
      .state(start)
  );
  crc32_beat u_crc (
      .state(mid ? crc : start),
      .data (in_data),
      .empty(beat_empty),
      .next (crc_next)
  );

  // The beat that goes on the line. Only the end of a frame and a link packet share one.
  logic [ 15:0] k;
  logic [127:0] symbols;
  always_comb begin
    k = '0;
    symbols = '0;
    if (takes) begin
      k[0] = !mid;
      symbols[23:0] = mid ? carry : {in_sequence[7:0], 4'b0, in_sequence[11:8], link_pkg::Stp};
      symbols[127:24] = in_data[103:0];
      if (in_last) begin
        case (last_empty)
          2'd3: begin
            k[11] = 1'b1;
            symbols[127:56] = {32'b0, link_pkg::End, ~crc_next};
          end
          2'd2: begin
            k[15] = 1'b1;
            symbols[127:88] = {link_pkg::End, ~crc_next};
          end
          2'd1: symbols[127:120] = ~crc_next[7:0];
          default: ;
        endcase
      end
    end else if (over && empty[0]) begin
      k[3] = 1'b1;
      symbols[31:0] = {link_pkg::End, ~crc[31:8]};
    end else if (over) begin
      k[7] = 1'b1;
      symbols[63:0] = {link_pkg::End, ~crc, carry};
    end
    if (links) begin
      k[15:8] = 8'h81;
      symbols[127:64] = dllp_data;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      mid <= 1'b0;
      over <= 1'b0;
      line_valid <= 1'b0;
    end else begin
      if (takes) mid <= !in_last;
      if (moves) begin
        over <= takes && in_last && !last_empty[1];
        line_valid <= takes || over || links;
      end
    end
    if (takes) begin
      carry <= in_data[127:104];
      crc   <= crc_next;
      empty <= last_empty;
    end
    if (moves) begin
      line_k <= k;
      line_data <= symbols;
    end
  end

`ifdef PROVE_FRAME_TX
  `include "frame_tx_formal.svh"
`endif

endmodule
