// The register of the link CRC behind a sequence number, with which a frame begins.
module crc32_start (
    input  logic [link_pkg::SequenceWidth-1:0] sequence_number,
    output logic [                       31:0] state
);

  localparam int unsigned Width = link_pkg::SequenceWidth;

  for (genvar b = 0; b < 32; b++) begin : g_bit
    assign state[b] = link_pkg::Crc32Start[b]
        ^ (^(sequence_number & link_pkg::Crc32Sequence[Width*b+:Width]));
  end

endmodule
