// `key_window` with the ports that the model has, packed.
module key_window_bench #(
    parameter int unsigned Functions = 8,
    parameter int unsigned Pairs = 32,
    parameter int unsigned CountWidth = 32
) (
    input  logic                                 clk,
    input  logic                                 rst,
    input  logic [ key_window_ports::InBits-1:0] in,
    output logic [key_window_ports::OutBits-1:0] out
);

  key_window_ports::in_t  i;
  key_window_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1;
  localparam int unsigned PairWidth = (Pairs > 1) ? $clog2(Pairs) : 1;
  logic [CountWidth-1:0] wrong_packets, wrong_targets;

  key_window #(
      .Functions(Functions),
      .Pairs(Pairs),
      .KeyWidth($bits(i.packet_key)),
      .AddressWidth($bits(i.target_address)),
      .LengthWidth($bits(i.target_length)),
      .CountWidth(CountWidth)
  ) u_dut (
      .clk,
      .rst,
      .host_valid     (i.host_valid),
      .host_window    (i.host_window),
      .host_function  (i.host_function[FunctionWidth-1:0]),
      .host_base      (i.host_base),
      .host_pages     (i.host_pages),
      .host_pair      (i.host_pair[PairWidth-1:0]),
      .host_opens     (i.host_opens),
      .host_key       (i.host_key),
      .refused        (o.refused),
      .packet_valid   (i.packet_valid),
      .packet_pair    (i.packet_pair[PairWidth-1:0]),
      .packet_key     (i.packet_key),
      .packet_fits    (o.packet_fits),
      .packet_wrong   (o.packet_wrong),
      .get_valid      (i.get_valid),
      .get_pair       (i.get_pair[PairWidth-1:0]),
      .get_key        (i.get_key),
      .get_fits       (o.get_fits),
      .get_wrong      (o.get_wrong),
      .target_valid   (i.target_valid),
      .target_function(i.target_function[FunctionWidth-1:0]),
      .target_address (i.target_address),
      .target_length  (i.target_length),
      .target_fits    (o.target_fits),
      .target_wrong   (o.target_wrong),
      .source_valid   (i.source_valid),
      .source_function(i.source_function[FunctionWidth-1:0]),
      .source_address (i.source_address),
      .source_length  (i.source_length),
      .source_fits    (o.source_fits),
      .source_wrong   (o.source_wrong),
      .wrong_packets,
      .wrong_targets
  );

  assign o.wrong_packets = 32'(wrong_packets);
  assign o.wrong_targets = 32'(wrong_targets);
  assign o.padding       = '0;

  // Bits that a small configuration has not.
  logic unused;
  assign unused = ^{
    i.padding,
    i.host_function,
    i.host_pair,
    i.packet_pair,
    i.get_pair,
    i.target_function,
    i.source_function
  };

endmodule
