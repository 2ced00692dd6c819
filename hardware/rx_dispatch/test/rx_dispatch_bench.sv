// `rx_dispatch` with the ports that the model has, packed.
module rx_dispatch_bench #(
    parameter int unsigned Packets = 4,
    parameter int unsigned Gets = 4,
    parameter int unsigned DataBeats = 130,
    parameter int unsigned GetBeats = 256
) (
    input  logic                                  clk,
    input  logic                                  rst,
    input  logic [ rx_dispatch_ports::InBits-1:0] in,
    output logic [rx_dispatch_ports::OutBits-1:0] out
);

  rx_dispatch_ports::in_t  i;
  rx_dispatch_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic [$bits(o.packet_pair)-1:0] packet_pair;
  logic [ $bits(o.packet_key)-1:0] packet_key;
  logic out_last, get_last;
  logic [$bits(o.out_to)-1:0] out_to;
  logic [$bits(o.out_data)-1:0] out_data;
  logic [$bits(o.get_word)-1:0] get_word;
  logic [$bits(o.get_source)-1:0] get_source;
  logic [$bits(o.get_pair)-1:0] get_pair;

  rx_dispatch #(
      .Packets  (Packets),
      .Gets     (Gets),
      .DataBeats(DataBeats),
      .GetBeats (GetBeats)
  ) u_dut (
      .clk,
      .rst,
      .cpu         (i.cpu),
      .in_valid    (i.in_valid),
      .in_ready    (o.in_ready),
      .in_class    (i.in_class),
      .in_last     (i.in_last),
      .in_to       (i.in_to),
      .in_data     (i.in_data),
      .credit      (o.credit),
      .packet_valid(o.packet_valid),
      .packet_pair (packet_pair),
      .packet_key  (packet_key),
      .packet_fits (i.packet_fits),
      .out_valid   (o.out_valid),
      .out_ready   (i.out_ready),
      .out_last    (out_last),
      .out_to      (out_to),
      .out_data    (out_data),
      .get_valid   (o.get_valid),
      .get_ready   (i.get_ready),
      .get_last    (get_last),
      .get_word    (get_word),
      .get_source  (get_source),
      .get_pair    (get_pair),
      .unknown     (o.unknown),
      .misrouted   (o.misrouted),
      .oversized   (o.oversized),
      .refused     (o.refused),
      .mismatched  (o.mismatched)
  );

  assign o.packet_pair = o.packet_valid ? packet_pair : '0;
  assign o.packet_key  = o.packet_valid ? packet_key : '0;
  assign o.out_last    = o.out_valid && out_last;
  assign o.out_to      = o.out_last ? out_to : '0;
  assign o.out_data    = o.out_valid ? out_data : '0;
  assign o.get_last    = o.get_valid && get_last;
  assign o.get_word    = o.get_valid ? get_word : '0;
  assign o.get_source  = o.get_valid ? get_source : '0;
  assign o.get_pair    = o.get_valid ? get_pair : '0;
  assign o.padding     = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
