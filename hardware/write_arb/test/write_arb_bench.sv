// `write_arb` with the ports that the model has, packed.
module write_arb_bench (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [ write_arb_ports::InBits-1:0] in,
    output logic [write_arb_ports::OutBits-1:0] out
);

  write_arb_ports::in_t  i;
  write_arb_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned Width = $bits(o.out_data);
  localparam int unsigned EventWidth = $bits(i.event_record);
  localparam int unsigned FunctionWidth = $bits(o.out_function);
  localparam int unsigned AddressWidth = $bits(o.out_address);
  localparam int unsigned SizeWidth = $bits(o.out_bytes);
  logic out_last;
  logic [FunctionWidth-1:0] out_function;
  logic [AddressWidth-1:0] out_address;
  logic [SizeWidth-1:0] out_bytes;
  logic [Width-1:0] out_data;

  write_arb #(
      .Width(Width),
      .EventWidth(EventWidth),
      .FunctionWidth(FunctionWidth),
      .AddressWidth(AddressWidth),
      .SizeWidth(SizeWidth)
  ) u_dut (
      .clk,
      .rst,
      .upload_valid   (i.upload_valid),
      .upload_ready   (o.upload_ready),
      .upload_last    (i.upload_last),
      .upload_function(i.upload_function),
      .upload_address (i.upload_address),
      .upload_bytes   (i.upload_bytes),
      .upload_data    (i.upload_data),
      .event_valid    (i.event_valid),
      .event_ready    (o.event_ready),
      .event_function (i.event_function),
      .event_address  (i.event_address),
      .event_record   (i.event_record),
      .out_valid      (o.out_valid),
      .out_ready      (i.out_ready),
      .out_last       (out_last),
      .out_function   (out_function),
      .out_address    (out_address),
      .out_bytes      (out_bytes),
      .out_data       (out_data)
  );

  assign o.out_last     = o.out_valid && out_last;
  assign o.out_function = o.out_valid ? out_function : '0;
  assign o.out_address  = o.out_valid ? out_address : '0;
  assign o.out_bytes    = o.out_valid ? out_bytes : '0;
  assign o.out_data     = o.out_valid ? out_data : '0;
  assign o.padding      = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
