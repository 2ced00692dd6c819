// Stands in for `crc32_beat` in proofs of frames: a short sum that depends on every bit that
// counts. That both sides of a proof have the same CRC of the same beats takes a solver too long
// with the real one, whose bits are parities of some 64 others.
module crc32_beat (
    input  logic [ 31:0] state,
    input  logic [127:0] data,
    input  logic [  1:0] empty,
    output logic [ 31:0] next
);

  logic [127:0] bits;
  assign bits = (data ^ 128'(state)) << {empty, 5'b0};
  assign next = {bits[30:0], bits[31]} ^ {bits[61:32], bits[63:62]}
      ^ {bits[92:64], bits[95:93]} ^ {bits[123:96], bits[127:124]};

endmodule
