// `pcie_rx` with the ports that the model has, packed.
module pcie_rx_bench #(
    parameter int unsigned DroppedWidth = 32,
    parameter int unsigned Tags = 32
) (
    input  logic                              clk,
    input  logic                              rst,
    input  logic [ pcie_rx_ports::InBits-1:0] in,
    output logic [pcie_rx_ports::OutBits-1:0] out
);

  pcie_rx_ports::in_t  i;
  pcie_rx_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned TagWidth = (Tags > 1) ? $clog2(Tags) : 1;
  logic [TagWidth-1:0] completion_tag;
  logic [12:0] completion_bytes, completion_remaining, store_bytes;
  logic [15:0] store_address, request_address, request_requester;
  logic completion_failed, out_last, request_is_read;
  logic [127:0] out_data;
  logic [  7:0] request_tag;
  logic [2:0] request_class, request_attributes;
  logic [            11:0] request_count;
  logic [             6:0] request_lower;
  logic [DroppedWidth-1:0] dropped;

  pcie_rx #(
      .Tags(Tags),
      .FunctionWidth(16 - $bits(i.device)),
      .WindowWidth($bits(o.store_address)),
      .DroppedWidth(DroppedWidth)
  ) u_dut (
      .clk,
      .rst,
      .device              (i.device),
      .base                (i.base),
      .read_valid          (i.read_valid),
      .read_tag            (i.read_tag[TagWidth-1:0]),
      .read_end            (i.read_end),
      .in_valid            (i.in_valid),
      .in_ready            (o.in_ready),
      .in_last             (i.in_last),
      .in_empty            (i.in_empty),
      .in_data             (i.in_data),
      .completion_valid    (o.completion_valid),
      .completion_tag      (completion_tag),
      .completion_failed   (completion_failed),
      .completion_bytes    (completion_bytes),
      .completion_remaining(completion_remaining),
      .store_valid         (o.store_valid),
      .store_address       (store_address),
      .store_bytes         (store_bytes),
      .out_last            (out_last),
      .out_data            (out_data),
      .request_valid       (o.request_valid),
      .request_ready       (i.request_ready),
      .request_is_read     (request_is_read),
      .request_address     (request_address),
      .request_requester   (request_requester),
      .request_tag         (request_tag),
      .request_class       (request_class),
      .request_attributes  (request_attributes),
      .request_count       (request_count),
      .request_lower       (request_lower),
      .dropped_valid       (o.dropped_valid),
      .dropped             (dropped)
  );

  logic comes;
  assign comes = o.completion_valid || o.store_valid;
  assign o.completion_tag = o.completion_valid ? 8'(completion_tag) : '0;
  assign o.completion_failed = o.completion_valid && completion_failed;
  assign o.completion_bytes = o.completion_valid ? completion_bytes : '0;
  assign o.completion_remaining = o.completion_valid ? completion_remaining : '0;
  assign o.store_address = o.store_valid ? store_address : '0;
  assign o.store_bytes = o.store_valid ? store_bytes : '0;
  assign o.out_last = comes && out_last;
  assign o.out_data = (comes && !o.completion_failed) ? out_data : '0;
  assign o.request_is_read = o.request_valid && request_is_read;
  assign o.request_address = o.request_valid ? request_address : '0;
  assign o.request_requester = o.request_valid ? request_requester : '0;
  assign o.request_tag = o.request_valid ? request_tag : '0;
  assign o.request_class = o.request_valid ? request_class : '0;
  assign o.request_attributes = o.request_valid ? request_attributes : '0;
  assign o.request_count = o.request_valid ? request_count : '0;
  assign o.request_lower = o.request_valid ? request_lower : '0;
  assign o.dropped = 32'(dropped);
  assign o.padding = '0;

  // Bits that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.read_tag};

endmodule
