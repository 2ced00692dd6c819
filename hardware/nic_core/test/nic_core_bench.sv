// `nic_core` with the ports that the model has, packed.
module nic_core_bench #(
    parameter int unsigned Bells = 4,
    parameter int unsigned Tags = 8,
    parameter int unsigned Timeout = 1500,
    parameter int unsigned Beats = 64,
    parameter int unsigned Reads = 8,
    parameter int unsigned Request = 8,
    parameter int unsigned Longest = 32,
    parameter int unsigned Fetches = 4,
    parameter int unsigned Places = 2,
    parameter int unsigned Events = 4,
    parameter int unsigned Gets = 2,
    parameter int unsigned PackBeats = 32,
    parameter int unsigned PackPackets = 4,
    parameter int unsigned Payload = 128,
    parameter int unsigned LongestNap = 256,
    parameter int unsigned Packets = 2,
    parameter int unsigned Depth = 4,
    parameter int unsigned Room = 128,
    parameter int unsigned Write = 128,
    parameter int unsigned Slots = 4,
    parameter int unsigned Batch = 2
) (
    input  logic                               clk,
    input  logic                               rst,
    input  logic [ nic_core_ports::InBits-1:0] in,
    output logic [nic_core_ports::OutBits-1:0] out
);

  nic_core_ports::in_t  i;
  nic_core_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned TagWidth = $clog2(Tags);
  logic [2:0] read_function, write_function;
  logic [39:0] read_address, write_address;
  logic [12:0] read_bytes, write_bytes;
  logic [TagWidth-1:0] read_tag;
  logic [127:0] write_data, to_data;
  logic [3:0] to_to;
  logic write_last, to_class, to_last;

  nic_core #(
      .Bells      (Bells),
      .Tags       (Tags),
      .Timeout    (Timeout),
      .Beats      (Beats),
      .Reads      (Reads),
      .Request    (Request),
      .Longest    (Longest),
      .Fetches    (Fetches),
      .Places     (Places),
      .Events     (Events),
      .Gets       (Gets),
      .PackBeats  (PackBeats),
      .PackPackets(PackPackets),
      .Payload    (Payload),
      .LongestNap (LongestNap),
      .Packets    (Packets),
      .Depth      (Depth),
      .Room       (Room),
      .Write      (Write),
      .Slots      (Slots),
      .Batch      (Batch)
  ) u_dut (
      .clk,
      .rst,
      .cpu           (i.cpu),
      .cpus          (i.cpus),
      .keys_valid    (i.keys_valid),
      .keys_window   (i.keys_window),
      .keys_function (i.keys_function),
      .keys_base     (i.keys_base),
      .keys_pages    (i.keys_pages),
      .keys_pair     (i.keys_pair),
      .keys_opens    (i.keys_opens),
      .keys_key      (i.keys_key),
      .rings_valid   (i.rings_valid),
      .rings_opens   (i.rings_opens),
      .rings_ring    (i.rings_ring),
      .rings_base    (i.rings_base),
      .rings_count   (i.rings_count),
      .slots_valid   (i.slots_valid),
      .slots_opens   (i.slots_opens),
      .slots_pair    (i.slots_pair),
      .slots_page    (i.slots_page),
      .slots_count   (i.slots_count),
      .store_valid   (i.store_valid),
      .store_last    (i.store_last),
      .store_address (i.store_address),
      .store_bytes   (i.store_bytes),
      .store_data    (i.store_data),
      .read_valid    (o.read_valid),
      .read_ready    (i.read_ready),
      .read_function (read_function),
      .read_address  (read_address),
      .read_bytes    (read_bytes),
      .read_tag      (read_tag),
      .in_valid      (i.in_valid),
      .in_last       (i.in_last),
      .in_tag        (i.in_tag[TagWidth-1:0]),
      .in_failed     (i.in_failed),
      .in_bytes      (i.in_bytes),
      .in_remaining  (i.in_remaining),
      .in_data       (i.in_data),
      .write_valid   (o.write_valid),
      .write_ready   (i.write_ready),
      .write_last    (write_last),
      .write_function(write_function),
      .write_address (write_address),
      .write_bytes   (write_bytes),
      .write_data    (write_data),
      .from_valid    (i.from_valid),
      .from_ready    (o.from_ready),
      .from_class    (i.from_class),
      .from_last     (i.from_last),
      .from_to       (i.from_to),
      .from_data     (i.from_data),
      .from_credit   (o.from_credit),
      .to_valid      (o.to_valid),
      .to_ready      (i.to_ready),
      .to_class      (to_class),
      .to_last       (to_last),
      .to_to         (to_to),
      .to_data       (to_data),
      .to_credit     (i.to_credit),
      .refused       (o.refused),
      .told          (o.told),
      .counts        (o.counts)
  );

  assign o.read_function  = o.read_valid ? read_function : '0;
  assign o.read_address   = o.read_valid ? read_address : '0;
  assign o.read_bytes     = o.read_valid ? read_bytes : '0;
  assign o.read_tag       = o.read_valid ? 8'(read_tag) : '0;
  assign o.write_last     = o.write_valid && write_last;
  assign o.write_function = o.write_valid ? write_function : '0;
  assign o.write_address  = o.write_valid ? write_address : '0;
  assign o.write_bytes    = o.write_valid ? write_bytes : '0;
  assign o.write_data     = o.write_valid ? write_data : '0;
  assign o.to_class       = o.to_valid && to_class;
  assign o.to_last        = o.to_valid && to_last;
  assign o.to_to          = o.to_valid ? to_to : '0;
  assign o.to_data        = o.to_valid ? to_data : '0;
  assign o.padding        = '0;

  // Bits that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.in_tag};

endmodule
