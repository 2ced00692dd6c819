// `desc_extract` with the ports that the model has, packed.
module desc_extract_bench #(
    parameter int unsigned Places  = 2,
    parameter int unsigned Beats   = 256,
    parameter int unsigned Request = 8
) (
    input  logic                                   clk,
    input  logic                                   rst,
    input  logic [ desc_extract_ports::InBits-1:0] in,
    output logic [desc_extract_ports::OutBits-1:0] out
);

  desc_extract_ports::in_t  i;
  desc_extract_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic read_ends, move_last, move_remote, move_wants_event, data_ends, data_get;
  logic [$bits(o.source_function)-1:0] source_function;
  logic [$bits(o.source_address)-1:0] source_address;
  logic [$bits(o.source_length)-1:0] source_length;
  logic [$bits(o.read_function)-1:0] read_function;
  logic [$bits(o.read_address)-1:0] read_address;
  logic [$bits(o.read_bytes)-1:0] read_bytes;
  logic [$bits(o.move_primitive)-1:0] move_primitive;
  logic [$bits(o.move_traffic_class)-1:0] move_traffic_class;
  logic [$bits(o.move_magic)-1:0] move_magic;
  logic [$bits(o.move_source)-1:0] move_source;
  logic [$bits(o.move_destination)-1:0] move_destination;
  logic [$bits(o.move_tail_bytes)-1:0] move_tail_bytes;
  logic [$bits(o.move_tail)-1:0] move_tail;
  logic [$bits(o.move_operation)-1:0] move_operation;
  logic [$bits(o.move_address)-1:0] move_address;
  logic [$bits(o.move_bytes)-1:0] move_bytes;
  logic [$bits(o.move_total)-1:0] move_total;
  logic [$bits(o.move_descriptor)-1:0] move_descriptor;
  logic [$bits(o.data_to)-1:0] data_to;
  logic [$bits(o.data)-1:0] data;
  logic [$bits(o.report_status)-1:0] report_status;
  logic [$bits(o.report_function)-1:0] report_function;
  logic [$bits(o.report_pair)-1:0] report_pair;
  logic [$bits(o.report_peer)-1:0] report_peer;
  logic [$bits(o.report_primitive)-1:0] report_primitive;
  logic [$bits(o.report_address)-1:0] report_address;

  desc_extract #(
      .Places(Places),
      .Beats(Beats),
      .Request(Request),
      .AddressWidth($bits(i.in_address))
  ) u_dut (
      .clk,
      .rst,
      .cpu               (i.cpu),
      .cpus              (i.cpus),
      .in_valid          (i.in_valid),
      .in_last           (i.in_last),
      .in_failed         (i.in_failed),
      .in_refused        (i.in_refused),
      .in_remote         (i.in_remote),
      .in_function       (i.in_function),
      .in_pair           (i.in_pair),
      .in_peer           (i.in_peer),
      .in_address        (i.in_address),
      .in_word           (i.in_word),
      .source_fits       (i.source_fits),
      .read_ready        (i.read_ready),
      .move_ready        (i.move_ready),
      .data_ready        (i.data_ready),
      .report_ready      (i.report_ready),
      .in_ready          (o.in_ready),
      .source_valid      (o.source_valid),
      .source_function   (source_function),
      .source_address    (source_address),
      .source_length     (source_length),
      .read_valid        (o.read_valid),
      .read_ends         (read_ends),
      .read_function     (read_function),
      .read_address      (read_address),
      .read_bytes        (read_bytes),
      .move_valid        (o.move_valid),
      .move_last         (move_last),
      .move_remote       (move_remote),
      .move_primitive    (move_primitive),
      .move_traffic_class(move_traffic_class),
      .move_magic        (move_magic),
      .move_source       (move_source),
      .move_destination  (move_destination),
      .move_wants_event  (move_wants_event),
      .move_tail_bytes   (move_tail_bytes),
      .move_tail         (move_tail),
      .move_operation    (move_operation),
      .move_address      (move_address),
      .move_bytes        (move_bytes),
      .move_total        (move_total),
      .move_descriptor   (move_descriptor),
      .data_valid        (o.data_valid),
      .data_ends         (data_ends),
      .data_get          (data_get),
      .data_to           (data_to),
      .data              (data),
      .report_valid      (o.report_valid),
      .report_status     (report_status),
      .report_function   (report_function),
      .report_pair       (report_pair),
      .report_peer       (report_peer),
      .report_primitive  (report_primitive),
      .report_address    (report_address),
      .dropped           (o.dropped)
  );

  assign o.source_function    = o.source_valid ? source_function : '0;
  assign o.source_address     = o.source_valid ? source_address : '0;
  assign o.source_length      = o.source_valid ? source_length : '0;
  assign o.read_ends          = o.read_valid ? read_ends : '0;
  assign o.read_function      = o.read_valid ? read_function : '0;
  assign o.read_address       = o.read_valid ? read_address : '0;
  assign o.read_bytes         = o.read_valid ? read_bytes : '0;
  assign o.move_last          = o.move_valid ? move_last : '0;
  assign o.move_remote        = o.move_valid ? move_remote : '0;
  assign o.move_primitive     = o.move_valid ? move_primitive : '0;
  assign o.move_traffic_class = o.move_valid ? move_traffic_class : '0;
  assign o.move_magic         = o.move_valid ? move_magic : '0;
  assign o.move_source        = o.move_valid ? move_source : '0;
  assign o.move_destination   = o.move_valid ? move_destination : '0;
  assign o.move_wants_event   = o.move_valid ? move_wants_event : '0;
  assign o.move_tail_bytes    = o.move_valid ? move_tail_bytes : '0;
  assign o.move_tail          = o.move_valid ? move_tail : '0;
  assign o.move_operation     = o.move_valid ? move_operation : '0;
  assign o.move_address       = o.move_valid ? move_address : '0;
  assign o.move_bytes         = o.move_valid ? move_bytes : '0;
  assign o.move_total         = o.move_valid ? move_total : '0;
  assign o.move_descriptor    = o.move_valid ? move_descriptor : '0;
  assign o.data_ends          = o.data_valid ? data_ends : '0;
  assign o.data_get           = o.data_valid ? data_get : '0;
  assign o.data_to            = o.data_valid ? data_to : '0;
  assign o.data               = o.data_valid ? data : '0;
  assign o.report_status      = o.report_valid ? report_status : '0;
  assign o.report_function    = o.report_valid ? report_function : '0;
  assign o.report_pair        = o.report_valid ? report_pair : '0;
  assign o.report_peer        = o.report_valid ? report_peer : '0;
  assign o.report_primitive   = o.report_valid ? report_primitive : '0;
  assign o.report_address     = o.report_valid ? report_address : '0;
  assign o.padding            = '0;

  // Padding has no meaning.
  logic unused;
  assign unused = ^i.padding;

endmodule
