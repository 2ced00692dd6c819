// The register of the link CRC behind a beat of up to four DWs (CRC-32C, `crates/wire`).
//
// A CRC is linear: each bit of the new register is the parity of some bits of the beat, to whose
// first DW the old register is added. A short beat is moved to the end, behind zeros that change
// nothing.
module crc32_beat (
    input  logic [ 31:0] state,
    input  logic [127:0] data,
    // DWs at the end of the beat that do not count.
    input  logic [  1:0] empty,
    output logic [ 31:0] next
);

  logic [127:0] bits;
  assign bits = (data ^ 128'(state)) << {empty, 5'b0};

  for (genvar b = 0; b < 32; b++) begin : g_bit
    assign next[b] = ^(bits & link_pkg::Crc32Beat[128*b+:128]);
  end

endmodule
