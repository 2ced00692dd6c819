// The header of a network packet (C-06 to C-09): that of `crates/wire/src/header.rs`, as a beat.
// Byte 0 has the lowest lane.
module packer_header (
    input  logic [  3:0] packet_type,
    input  logic [  2:0] traffic_class,
    input  logic [  7:0] magic,
    input  logic [  8:0] source,
    input  logic [  8:0] destination,
    input  logic         wants_event,
    input  logic [ 39:0] address,
    input  logic [ 12:0] bytes,
    output logic [127:0] header
);

  // Bytes up to the last one, from the first DW on, and DWs. A packet without bytes has one DW with
  // no byte enabled.
  logic is_empty;
  logic [12:0] behind, dwords;
  logic [3:0] first_enables, last_enables;
  assign is_empty = bytes == '0;
  assign behind   = 13'(address[1:0]) + bytes;
  assign dwords   = is_empty ? 13'd1 : (behind + 13'd3) >> 2;

  always_comb begin
    first_enables = 4'hf << address[1:0];
    last_enables  = 4'hf >> -behind[1:0];
    if (is_empty) begin
      first_enables = '0;
      last_enables  = '0;
    end else if (dwords == 13'd1) begin
      first_enables &= last_enables;
      last_enables = '0;
    end
  end

  // Processor and function of the sender.
  logic [15:0] requester;
  assign requester = {4'b0, source[8:5], 5'b0, source[4:2]};

  logic [3:0][31:0] words;
  assign words[0] = {8'h60, 1'b0, traffic_class, 4'b0, packet_type, 2'b0, dwords[9:0]};
  assign words[1] = {requester, magic, last_enables, first_enables};
  assign words[2] = {source, destination, 5'b0, wants_event, address[39:32]};
  assign words[3] = {address[31:2], 2'b0};

  // DWs are sent with the most significant byte first.
  for (genvar at = 0; at < 16; at++) begin : g_byte
    assign header[8*at+:8] = words[at/4][8*(3-at%4)+:8];
  end

  logic unused;
  assign unused = ^dwords[12:10];

endmodule
