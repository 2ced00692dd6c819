// `desc_fetch` with the ports that the model has, packed.
module desc_fetch_bench #(
    parameter int unsigned Places = 4,
    parameter int unsigned Beats = 256,
    parameter int unsigned Request = 8,
    parameter int unsigned Tags = 32
) (
    input  logic                                 clk,
    input  logic                                 rst,
    input  logic [ desc_fetch_ports::InBits-1:0] in,
    output logic [desc_fetch_ports::OutBits-1:0] out
);

  desc_fetch_ports::in_t  i;
  desc_fetch_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned TagWidth = (Tags > 1) ? $clog2(Tags) : 1;
  logic [TagWidth-1:0] free_tag;
  logic out_first, out_last, out_failed, out_refused, has_data;
  logic [$bits(o.out_function)-1:0] read_function, out_function;
  logic [$bits(o.read_address)-1:0] read_address, out_address;
  logic [$bits(o.read_bytes)-1:0] read_bytes;
  logic [  $bits(o.out_word)-1:0] out_word;

  desc_fetch #(
      .Places(Places),
      .Beats(Beats),
      .Request(Request),
      .Tags(Tags),
      .FunctionWidth($bits(o.out_function))
  ) u_dut (
      .clk,
      .rst,
      .bell_valid   (i.bell_valid),
      .bell_ready   (o.bell_ready),
      .bell_function(i.bell_function),
      .bell_word    (i.bell_word),
      .bell_outside (i.bell_outside),
      .read_valid   (o.read_valid),
      .read_ready   (i.read_ready),
      .read_tag     (i.read_tag[TagWidth-1:0]),
      .read_function(read_function),
      .read_address (read_address),
      .read_bytes   (read_bytes),
      .in_valid     (i.in_valid),
      .in_last      (i.in_last),
      .in_tag       (i.in_tag[TagWidth-1:0]),
      .in_failed    (i.in_failed),
      .in_bytes     (i.in_bytes),
      .in_remaining (i.in_remaining),
      .in_data      (i.in_data),
      .unexpected   (o.unexpected),
      .mismatched   (o.mismatched),
      .lost_valid   (i.lost_valid),
      .lost_tag     (i.lost_tag[TagWidth-1:0]),
      .free_valid   (o.free_valid),
      .free_tag     (free_tag),
      .out_valid    (o.out_valid),
      .out_ready    (i.out_ready),
      .out_first    (out_first),
      .out_last     (out_last),
      .out_failed   (out_failed),
      .out_refused  (out_refused),
      .out_function (out_function),
      .out_address  (out_address),
      .out_word     (out_word)
  );

  assign has_data        = o.out_valid && !out_failed && !out_refused;
  assign o.read_function = o.read_valid ? read_function : '0;
  assign o.read_address  = o.read_valid ? read_address : '0;
  assign o.read_bytes    = o.read_valid ? read_bytes : '0;
  assign o.free_tag      = o.free_valid ? 8'(free_tag) : '0;
  assign o.out_first     = o.out_valid && out_first;
  assign o.out_last      = o.out_valid && out_last;
  assign o.out_failed    = o.out_valid && out_failed;
  assign o.out_refused   = o.out_valid && out_refused;
  assign o.out_function  = o.out_valid ? out_function : '0;
  assign o.out_address   = o.out_valid ? out_address : '0;
  assign o.out_word      = has_data ? out_word : '0;
  assign o.padding       = '0;

  // Bits that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.read_tag, i.in_tag, i.lost_tag};

endmodule
