// `slot_read` with the ports that the model has, packed.
module slot_read_bench #(
    parameter int unsigned Batch = 16
) (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [ slot_read_ports::InBits-1:0] in,
    output logic [slot_read_ports::OutBits-1:0] out
);

  slot_read_ports::in_t  i;
  slot_read_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned CountWidth = $clog2(Batch) + 1;
  localparam int unsigned AddressWidth = $bits(o.ask_address);
  localparam int unsigned WordWidth = $bits(o.entry_word);
  logic [AddressWidth-1:0] ask_address;
  logic [$bits(o.ask_bytes)-1:0] ask_bytes;
  logic [$bits(o.entry_pair)-1:0] ask_pair, entry_pair;
  logic [WordWidth-1:0] entry_word;

  slot_read #(
      .Batch       (Batch),
      .PairWidth   ($bits(o.entry_pair)),
      .AddressWidth(AddressWidth),
      .SizeWidth   ($bits(o.ask_bytes)),
      .WordWidth   (WordWidth)
  ) u_dut (
      .clk,
      .rst,
      .read_valid  (i.read_valid),
      .read_ready  (o.read_ready),
      .read_pair   (i.read_pair),
      .read_address(i.read_address),
      .read_count  (i.read_count[CountWidth-1:0]),
      .ask_valid   (o.ask_valid),
      .ask_ready   (i.ask_ready),
      .ask_pair    (ask_pair),
      .ask_address (ask_address),
      .ask_bytes   (ask_bytes),
      .in_valid    (i.in_valid),
      .in_last     (i.in_last),
      .in_failed   (i.in_failed),
      .in_bytes    (i.in_bytes),
      .in_remaining(i.in_remaining),
      .in_data     (i.in_data),
      .lost_valid  (i.lost_valid),
      .free_valid  (o.free_valid),
      .unexpected  (o.unexpected),
      .mismatched  (o.mismatched),
      .entry_valid (o.entry_valid),
      .entry_ready (i.entry_ready),
      .entry_pair  (entry_pair),
      .entry_failed(o.entry_failed),
      .entry_word  (entry_word)
  );

  assign o.ask_pair    = o.ask_valid ? ask_pair : '0;
  assign o.ask_address = o.ask_valid ? ask_address : '0;
  assign o.ask_bytes   = o.ask_valid ? ask_bytes : '0;
  assign o.entry_pair  = o.entry_valid ? entry_pair : '0;
  assign o.entry_word  = (o.entry_valid && !o.entry_failed) ? entry_word : '0;
  assign o.padding     = '0;

  // Bits that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.read_count};

endmodule
