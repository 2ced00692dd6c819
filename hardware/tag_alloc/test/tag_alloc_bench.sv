// `tag_alloc` with the ports that the model has, packed.
module tag_alloc_bench #(
    parameter int unsigned Tags = 32,
    parameter int unsigned Timeout = 2500000
) (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [ tag_alloc_ports::InBits-1:0] in,
    output logic [tag_alloc_ports::OutBits-1:0] out
);

  tag_alloc_ports::in_t  i;
  tag_alloc_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned TagWidth = (Tags > 1) ? $clog2(Tags) : 1;
  logic [TagWidth-1:0] tag, lost_tag;
  logic [TagWidth:0] in_use;

  tag_alloc #(
      .Tags(Tags),
      .Timeout(Timeout)
  ) u_dut (
      .clk,
      .rst,
      .tag_valid    (o.tag_valid),
      .tag_ready    (i.tag_ready),
      .tag          (tag),
      .release_valid(i.release_valid),
      .release_tag  (i.release_tag[TagWidth-1:0]),
      .refused      (o.refused),
      .lost_valid   (o.lost_valid),
      .lost_tag     (lost_tag),
      .in_use       (in_use)
  );

  assign o.tag      = o.tag_valid ? 8'(tag) : '0;
  assign o.lost_tag = o.lost_valid ? 8'(lost_tag) : '0;
  assign o.in_use   = 9'(in_use);
  assign o.padding  = '0;

  logic unused;
  assign unused = ^{i.padding, i.release_tag};

endmodule
