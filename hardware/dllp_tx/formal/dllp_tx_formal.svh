// What is proved of `dllp_tx`. It has no register, so one cycle is all there is. Everything that
// enters is free.

wire [1:0] f_updates = update_valid & update_ready;
wire f_acks = ack_valid && ack_ready;
wire f_goes = dllp_valid && dllp_ready;
// The packet's content as a number, and its CRC.
wire [31:0] f_content = {dllp_data[15:8], dllp_data[23:16], dllp_data[31:24], dllp_data[39:32]};

logic [15:0] f_crc;
crc16_dllp f_content_crc (
    .content({f_content[7:0], f_content[15:8], f_content[23:16], f_content[31:24]}),
    .crc(f_crc)
);

always_comb begin
  // What waits is offered, and of it one is taken with the packet.
  p_offered : assert (dllp_valid == (ack_valid || update_valid[0] || update_valid[1]));
  p_one : assert (2'(f_acks) + 2'(f_updates[0]) + 2'(f_updates[1]) == 2'(f_goes));
  // Acknowledgements go first, then channel 0.
  if (f_goes) begin
    p_first : assert (!ack_valid || f_acks);
    p_order : assert (ack_valid || !update_valid[0] || f_updates[0]);
  end
  // The packet says what was taken.
  if (f_acks) begin
    p_ack : assert (f_content == {ack_nak ? 8'h10 : 8'h00, 12'b0, ack_sequence});
  end
  if (f_updates != '0) begin
    p_credits : assert (f_content == {update_stage[f_updates[1]], 5'b0, f_updates[1], 2'b0, update_headers[f_updates[1]], 2'b0,
                                      update_data[f_updates[1]]});
  end
  // It begins and ends with its symbols, and has the CRC of its content.
  p_symbols : assert (dllp_data[7:0] == 8'h5c && dllp_data[63:56] == 8'hfd);
  p_crc : assert ({dllp_data[47:40], dllp_data[55:48]} == f_crc);
end
