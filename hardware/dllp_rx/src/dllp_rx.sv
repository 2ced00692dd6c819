// Checks the link layer's own packets, and tells what they say in the next cycle (S-15, S-16).
//
// An acknowledgement waits until it is taken. If another one comes meanwhile, that one takes its
// place, as it says all that the older one does. Only a NAK stays a NAK.
module dllp_rx #(
    localparam int unsigned Channels = 2
) (
    input logic clk,
    input logic rst,

    input logic        dllp_valid,
    input logic [63:0] dllp_data,

    // All frames up to this number have come; after a NAK the others are sent again.
    output logic                               ack_valid,
    input  logic                               ack_ready,
    output logic                               ack_nak,
    output logic [link_pkg::SequenceWidth-1:0] ack_sequence,

    // The sum of a channel's grants, and the stage of the packet: bits 7:6 of its type.
    output logic [Channels-1:0] update_valid,
    output logic [         1:0] update_stage,
    output logic [         7:0] update_headers,
    output logic [        11:0] update_data,

    // The packet is damaged; it is sound, and no end of this link sends it.
    output logic damaged,
    output logic unknown
);

  // The fields, in the order of the line.
  logic [ 7:0] kind;
  logic [23:0] content;
  logic [15:0] crc;
  assign kind = dllp_data[15:8];
  assign content = {dllp_data[23:16], dllp_data[31:24], dllp_data[39:32]};
  crc16_dllp u_crc (
      .content(dllp_data[39:8]),
      .crc(crc)
  );

  logic is_sound, is_ack, is_nak, is_credit;
  assign is_sound = dllp_data[7:0] == link_pkg::Sdp && dllp_data[63:56] == link_pkg::End
      && {dllp_data[47:40], dllp_data[55:48]} == crc;
  assign is_ack = kind == link_pkg::Ack && content[23:12] == '0;
  assign is_nak = kind == link_pkg::Nak && content[23:12] == '0;
  logic [7:0] stage;
  assign stage = {kind[7:1], 1'b0};
  assign is_credit = (stage == link_pkg::FirstInit || stage == link_pkg::SecondInit
      || stage == link_pkg::Update) && content[23:22] == '0 && content[13:12] == '0;

  logic acks, waits;
  assign acks  = dllp_valid && is_sound && (is_ack || is_nak);
  assign waits = ack_valid && !ack_ready;

  always_ff @(posedge clk) begin
    if (rst) begin
      ack_valid <= 1'b0;
      update_valid <= '0;
      damaged <= 1'b0;
      unknown <= 1'b0;
    end else begin
      ack_valid <= acks || waits;
      update_valid[0] <= dllp_valid && is_sound && is_credit && !kind[0];
      update_valid[1] <= dllp_valid && is_sound && is_credit && kind[0];
      damaged <= dllp_valid && !is_sound;
      unknown <= dllp_valid && is_sound && !(is_ack || is_nak || is_credit);
    end
    if (acks) begin
      ack_nak <= is_nak || (waits && ack_nak);
      ack_sequence <= content[link_pkg::SequenceWidth-1:0];
    end
    update_stage   <= kind[7:6];
    update_headers <= content[21:14];
    update_data    <= content[11:0];
  end

`ifdef PROVE_DLLP_RX
  `include "dllp_rx_formal.svh"
`endif

endmodule
