// `slot_cache` with the ports that the model has, packed.
module slot_cache_bench #(
    parameter int unsigned Pairs = 32,
    parameter int unsigned Slots = 32,
    parameter int unsigned Batch = 16,
    parameter int unsigned CountWidth = 9
) (
    input  logic                                 clk,
    input  logic                                 rst,
    input  logic [ slot_cache_ports::InBits-1:0] in,
    output logic [slot_cache_ports::OutBits-1:0] out
);

  slot_cache_ports::in_t  i;
  slot_cache_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned PairWidth = (Pairs > 1) ? $clog2(Pairs) : 1;
  localparam int unsigned PlaceWidth = (Slots > 1) ? $clog2(Slots) : 1;
  localparam int unsigned BatchWidth = $clog2(Batch + 1);
  localparam int unsigned AddressWidth = $bits(o.slot);

  logic [PlaceWidth:0] cached;
  logic [AddressWidth-1:0] slot, read_address;
  logic [PairWidth-1:0] read_pair, told_pair;
  logic [BatchWidth-1:0] read_count;

  slot_cache #(
      .Pairs(Pairs),
      .Slots(Slots),
      .Batch(Batch),
      .CountWidth(CountWidth),
      .AddressWidth(AddressWidth)
  ) u_dut (
      .clk,
      .rst,
      .host_valid(i.host_valid),
      .host_opens(i.host_opens),
      .host_pair (i.host_pair[PairWidth-1:0]),
      .host_page (i.host_page),
      .host_count(i.host_count[CountWidth-1:0]),
      .refused   (o.refused),
      .take_valid(i.take_valid),
      .take_ready(o.take_ready),
      .take_pair (i.take_pair[PairWidth-1:0]),
      .lacks_list(o.lacks_list),
      .lacks_slot(o.lacks_slot),
      .cached,
      .slot,
      .read_valid(o.read_valid),
      .read_ready(i.read_ready),
      .read_pair,
      .read_address,
      .read_count,
      .in_valid  (i.in_valid),
      .in_ready  (o.in_ready),
      .in_pair   (i.in_pair[PairWidth-1:0]),
      .in_failed (i.in_failed),
      .in_word   (i.in_word),
      .unexpected(o.unexpected),
      .failed    (o.failed),
      .misplaced (o.misplaced),
      .told_pair
  );

  // The output says nothing before the first slot is taken.
  logic shown;
  always_ff @(posedge clk) begin
    if (rst) shown <= 1'b0;
    else if (i.take_valid && o.take_ready) shown <= 1'b1;
  end

  assign o.cached       = 6'(cached);
  assign o.slot         = shown ? slot : '0;
  assign o.read_pair    = o.read_valid ? 5'(read_pair) : '0;
  assign o.read_address = o.read_valid ? read_address : '0;
  assign o.read_count   = o.read_valid ? 5'(read_count) : '0;
  assign o.told_pair    = (o.unexpected || o.failed || o.misplaced) ? 5'(told_pair) : '0;
  assign o.padding      = '0;

  // Bits that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.host_pair, i.take_pair, i.in_pair, i.host_count};

endmodule
