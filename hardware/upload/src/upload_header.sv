// Reads and checks the header of a network packet (C-06 to C-08): that of
// `crates/wire/src/header.rs`, as a beat. Byte 0 has the lowest lane.
module upload_header (
    input  logic [127:0] header,
    // It is a PUT or a NAP, and has the form of one. The rest says nothing otherwise, but for the
    // destination.
    output logic         is_known,
    output logic         is_nap,
    output logic         wants_event,
    output logic [  7:0] magic,
    output logic [  8:0] source,
    output logic [  3:0] cpu,
    output logic [  4:0] pair,
    // The first byte, bytes, and DWs in which they lie: at least one.
    output logic [ 39:0] address,
    output logic [ 12:0] bytes,
    output logic [ 10:0] dwords
);

  localparam logic [12:0] LongestNap = 13'd2048;

  // DWs come with the most significant byte first.
  logic [3:0][31:0] words;
  for (genvar at = 0; at < 16; at++) begin : g_byte
    assign words[at/4][8*(3-at%4)+:8] = header[8*at+:8];
  end

  logic [3:0] packet_type, first, last;
  logic is_put, is_fixed;
  assign packet_type = words[0][15:12];
  assign is_put = packet_type == 4'b0110;
  assign is_nap = packet_type == 4'b0101;
  // Bits that have one value.
  assign is_fixed = words[0][31:23] == {8'h60, 1'b0} && words[0][19:16] == '0
      && words[0][11:10] == '0 && words[2][13:9] == '0 && words[3][1:0] == '0;
  assign magic = words[1][15:8];
  assign source = words[2][31:23];
  assign cpu = words[2][22:19];
  assign pair = words[2][18:14];
  assign wants_event = words[2][8];

  // ---- Byte enables: one run of bytes, which goes on from DW to DW.

  logic is_single, is_empty, is_first_run, is_last_run, is_run;
  assign dwords = {words[0][9:0] == '0, words[0][9:0]};
  assign first = words[1][3:0];
  assign last = words[1][7:4];
  assign is_single = dwords == 11'd1;
  assign is_empty = is_single && first == '0;
  // There is no hole.
  assign is_first_run = !(first[0] && !first[1] && first[3:2] != '0)
      && !(first[1] && !first[2] && first[3]);
  // It goes on from the DW before.
  assign is_last_run = last[0] && !(last[2] && !last[1]) && !(last[3] && !last[2]);
  assign is_run = is_first_run && (is_single ? last == '0 : first[3] && is_last_run);

  // Bytes of the first DW before the run, and of its last one behind it.
  logic [1:0] lead, trail;
  logic [3:1] ends;
  assign lead  = is_empty ? '0 : {first[1:0] == '0, !first[0] && (first[1] || !first[2])};
  assign ends  = is_single ? first[3:1] : last[3:1];
  assign trail = {ends[3:2] == '0, !ends[3] && (ends[2] || !ends[1])};
  assign bytes = is_empty ? '0 : {dwords, 2'b00} - 13'(lead) - 13'(trail);

  // ---- A PUT lies below the last address, and a NAP has none.

  logic [40:0] behind;
  logic is_put_form, is_nap_form;
  assign address = {words[2][7:0], words[3][31:2], lead};
  assign behind = {1'b0, address} + 41'(bytes);
  assign is_put_form = is_put && behind <= {1'b1, 40'b0};
  assign is_nap_form = is_nap && address == '0 && bytes <= LongestNap;
  assign is_known = is_fixed && is_run && (is_put_form || is_nap_form);

  // Traffic class and requester.
  logic unused;
  assign unused = ^{words[0][22:20], words[1][31:16]};

endmodule
