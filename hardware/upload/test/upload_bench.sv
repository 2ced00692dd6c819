// `upload` with the ports that the model has, packed.
module upload_bench #(
    parameter int unsigned MaxPayload = 128
) (
    input  logic                             clk,
    input  logic                             rst,
    input  logic [ upload_ports::InBits-1:0] in,
    output logic [upload_ports::OutBits-1:0] out
);

  upload_ports::in_t  i;
  upload_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic [$bits(o.packet_pair)-1:0] packet_pair;
  logic [$bits(o.packet_key)-1:0] packet_key;
  logic [$bits(o.target_function)-1:0] target_function;
  logic [$bits(o.target_address)-1:0] target_address;
  logic [$bits(o.target_length)-1:0] target_length;
  logic [$bits(o.event_record)-2:0] event_record;
  logic out_last;
  logic [$bits(o.out_function)-1:0] out_function;
  logic [$bits(o.out_address)-1:0] out_address;
  logic [$bits(o.out_bytes)-1:0] out_bytes;
  logic [$bits(o.out_data)-1:0] out_data;

  upload #(
      .MaxPayload(MaxPayload)
  ) u_dut (
      .clk,
      .rst,
      .cpu            (i.cpu),
      .in_valid       (i.in_valid),
      .in_ready       (o.in_ready),
      .in_last        (i.in_last),
      .in_to          (i.in_to),
      .in_data        (i.in_data),
      .packet_valid   (o.packet_valid),
      .packet_pair    (packet_pair),
      .packet_key     (packet_key),
      .packet_fits    (i.packet_fits),
      .target_valid   (o.target_valid),
      .target_function(target_function),
      .target_address (target_address),
      .target_length  (target_length),
      .target_fits    (i.target_fits),
      .take_valid     (o.take_valid),
      .take_ready     (i.take_ready),
      .take_pair      (o.take_pair),
      .lacks_list     (i.lacks_list),
      .slot           (i.slot),
      .event_valid    (o.event_valid),
      .event_ready    (i.event_ready),
      .event_ring     (o.event_ring),
      .event_record   (event_record),
      .lacks_ring     (i.lacks_ring),
      .lacks_place    (i.lacks_place),
      .out_valid      (o.out_valid),
      .out_ready      (i.out_ready),
      .out_last       (out_last),
      .out_function   (out_function),
      .out_address    (out_address),
      .out_bytes      (out_bytes),
      .out_data       (out_data),
      .unknown        (o.unknown),
      .refused        (o.refused),
      .outside        (o.outside),
      .closed         (o.closed),
      .passed_over    (o.passed_over),
      .mismatched     (o.mismatched)
  );

  assign o.packet_pair     = o.packet_valid ? packet_pair : '0;
  assign o.packet_key      = o.packet_valid ? packet_key : '0;
  assign o.target_function = o.target_valid ? target_function : '0;
  assign o.target_address  = o.target_valid ? target_address : '0;
  assign o.target_length   = o.target_valid ? target_length : '0;
  assign o.event_record    = o.event_valid ? {1'b0, event_record} : '0;
  assign o.out_last        = o.out_valid && out_last;
  assign o.out_function    = o.out_valid ? out_function : '0;
  assign o.out_address     = o.out_valid ? out_address : '0;
  assign o.out_bytes       = o.out_valid ? out_bytes : '0;
  assign o.out_data        = o.out_valid ? out_data : '0;
  assign o.padding         = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
