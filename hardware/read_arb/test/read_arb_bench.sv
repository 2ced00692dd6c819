// `read_arb` with the ports that the model has, packed.
module read_arb_bench #(
    parameter int unsigned Requesters = 3,
    parameter int unsigned Tags = 32
) (
    input  logic                               clk,
    input  logic                               rst,
    input  logic [ read_arb_ports::InBits-1:0] in,
    output logic [read_arb_ports::OutBits-1:0] out
);

  read_arb_ports::in_t  i;
  read_arb_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned TagWidth = (Tags > 1) ? $clog2(Tags) : 1;
  localparam int unsigned FunctionWidth = $bits(o.read_function);
  localparam int unsigned AddressWidth = $bits(o.read_address);
  localparam int unsigned SizeWidth = $bits(o.read_bytes);
  logic [TagWidth-1:0] read_tag, release_tag;
  logic [Requesters-1:0] ask_ready, own_valid, own_lost;
  logic [FunctionWidth-1:0] read_function;
  logic [AddressWidth-1:0] read_address;
  logic [   SizeWidth-1:0] read_bytes;

  read_arb #(
      .Requesters(Requesters),
      .Tags(Tags),
      .FunctionWidth(FunctionWidth),
      .AddressWidth(AddressWidth),
      .SizeWidth(SizeWidth)
  ) u_dut (
      .clk,
      .rst,
      .ask_valid    (i.ask_valid[Requesters-1:0]),
      .ask_ready    (ask_ready),
      .ask_function (i.ask_function[Requesters*FunctionWidth-1:0]),
      .ask_address  (i.ask_address[Requesters*AddressWidth-1:0]),
      .ask_bytes    (i.ask_bytes[Requesters*SizeWidth-1:0]),
      .tag_valid    (i.tag_valid),
      .tag_ready    (o.tag_ready),
      .tag          (i.tag[TagWidth-1:0]),
      .read_valid   (o.read_valid),
      .read_ready   (i.read_ready),
      .read_function(read_function),
      .read_address (read_address),
      .read_bytes   (read_bytes),
      .read_tag     (read_tag),
      .in_valid     (i.in_valid),
      .in_last      (i.in_last),
      .in_tag       (i.in_tag[TagWidth-1:0]),
      .own_valid    (own_valid),
      .unexpected   (o.unexpected),
      .free_valid   (i.free_valid[Requesters-1:0]),
      .release_valid(o.release_valid),
      .release_tag  (release_tag),
      .lost_valid   (i.lost_valid),
      .lost_tag     (i.lost_tag[TagWidth-1:0]),
      .own_lost     (own_lost)
  );

  assign o.ask_ready     = 4'(ask_ready);
  assign o.read_function = o.read_valid ? read_function : '0;
  assign o.read_address  = o.read_valid ? read_address : '0;
  assign o.read_bytes    = o.read_valid ? read_bytes : '0;
  assign o.read_tag      = o.read_valid ? 8'(read_tag) : '0;
  assign o.own_valid     = 4'(own_valid);
  assign o.own_lost      = 4'(own_lost);
  assign o.release_tag   = o.release_valid ? 8'(release_tag) : '0;
  assign o.padding       = '0;

  // Bits that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.ask_valid, i.ask_function, i.ask_address, i.ask_bytes, i.tag, i.in_tag,
                    i.free_valid, i.lost_tag};

endmodule
