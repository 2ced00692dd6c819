// Makes the link layer's own packets: acknowledgements first, then credits, those of channel 0
// first (S-15, S-16).
//
// It has no register. A packet is made in the cycle in which the line takes it, so that it tells
// the latest.
module dllp_tx #(
    localparam int unsigned Channels = 2
) (
    // All frames up to this number have come; a NAK asks for those behind it.
    input  logic                               ack_valid,
    output logic                               ack_ready,
    input  logic                               ack_nak,
    input  logic [link_pkg::SequenceWidth-1:0] ack_sequence,

    // The sums of all grants, for each channel, and the stage of the packet: bits 7:6 of its type.
    input  logic [Channels-1:0]       update_valid,
    output logic [Channels-1:0]       update_ready,
    input  logic [Channels-1:0][ 1:0] update_stage,
    input  logic [Channels-1:0][ 7:0] update_headers,
    input  logic [Channels-1:0][11:0] update_data,

    output logic        dllp_valid,
    input  logic        dllp_ready,
    output logic [63:0] dllp_data
);

  assign dllp_valid = ack_valid || update_valid != '0;
  assign ack_ready = dllp_ready;
  assign update_ready[0] = dllp_ready && !ack_valid;
  assign update_ready[1] = dllp_ready && !ack_valid && !update_valid[0];

  // Whose credits go.
  logic channel;
  logic [1:0] stage;
  logic [7:0] headers;
  logic [11:0] data;
  assign channel = !update_valid[0];
  assign stage = channel ? update_stage[1] : update_stage[0];
  assign headers = channel ? update_headers[1] : update_headers[0];
  assign data = channel ? update_data[1] : update_data[0];

  logic [ 7:0] kind;
  logic [23:0] content;
  always_comb begin
    kind = {stage, 5'b0, channel};
    content = {2'b0, headers, 2'b0, data};
    if (ack_valid) begin
      kind = ack_nak ? link_pkg::Nak : link_pkg::Ack;
      content = 24'(ack_sequence);
    end
  end

  // The bytes in the order of the line.
  logic [31:0] bytes;
  logic [15:0] crc;
  assign bytes = {content[7:0], content[15:8], content[23:16], kind};
  crc16_dllp u_crc (
      .content(bytes),
      .crc(crc)
  );
  assign dllp_data = {link_pkg::End, crc[7:0], crc[15:8], bytes, link_pkg::Sdp};

`ifdef PROVE_DLLP_TX
  `include "dllp_tx_formal.svh"
`endif

endmodule
