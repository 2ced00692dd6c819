// The CRC of a link packet's content (CRC-16, `crates/wire`). Each of its bits is the parity of
// some bits of the content, whose first byte has the lowest ones.
module crc16_dllp (
    input  logic [31:0] content,
    output logic [15:0] crc
);

  for (genvar b = 0; b < 16; b++) begin : g_bit
    assign crc[b] = link_pkg::Crc16Start[b] ^ (^(content & link_pkg::Crc16Content[32*b+:32]));
  end

endmodule
