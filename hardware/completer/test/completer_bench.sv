// `completer` with the ports that the model has, packed.
module completer_bench #(
    parameter int unsigned Page = 8,
    parameter int unsigned Registers = 16
) (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [ completer_ports::InBits-1:0] in,
    output logic [completer_ports::OutBits-1:0] out
);

  completer_ports::in_t  i;
  completer_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic [15:0] answer_requester;
  logic [ 7:0] answer_tag;
  logic [2:0] answer_class, answer_attributes, answer_status;
  logic [11:0] answer_count;
  logic [6:0] answer_lower;
  logic answer_has_data;
  logic [31:0] answer_data;

  completer #(
      .Registers(Registers),
      .Page(Page),
      .WindowWidth($bits(i.request_address))
  ) u_dut (
      .clk,
      .rst,
      .value             (i.value[32*Registers-1:0]),
      .request_valid     (i.request_valid),
      .request_ready     (o.request_ready),
      .request_is_read   (i.request_is_read),
      .request_address   (i.request_address),
      .request_requester (i.request_requester),
      .request_tag       (i.request_tag),
      .request_class     (i.request_class),
      .request_attributes(i.request_attributes),
      .request_count     (i.request_count),
      .request_lower     (i.request_lower),
      .answer_valid      (o.answer_valid),
      .answer_ready      (i.answer_ready),
      .answer_requester  (answer_requester),
      .answer_tag        (answer_tag),
      .answer_class      (answer_class),
      .answer_attributes (answer_attributes),
      .answer_status     (answer_status),
      .answer_count      (answer_count),
      .answer_lower      (answer_lower),
      .answer_has_data   (answer_has_data),
      .answer_data       (answer_data)
  );

  assign o.answer_requester = o.answer_valid ? answer_requester : '0;
  assign o.answer_tag = o.answer_valid ? answer_tag : '0;
  assign o.answer_class = o.answer_valid ? answer_class : '0;
  assign o.answer_attributes = o.answer_valid ? answer_attributes : '0;
  assign o.answer_status = o.answer_valid ? answer_status : '0;
  assign o.answer_count = o.answer_valid ? answer_count : '0;
  assign o.answer_lower = o.answer_valid ? answer_lower : '0;
  assign o.answer_has_data = o.answer_valid && answer_has_data;
  assign o.answer_data = o.answer_valid ? answer_data : '0;
  assign o.padding = '0;

  // Registers that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.value};

endmodule
