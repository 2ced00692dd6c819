// `bell_decode` with the ports that the model has, packed.
module bell_decode_bench #(
    parameter int unsigned Functions    = 8,
    parameter int unsigned DroppedWidth = 32
) (
    input  logic                                  clk,
    input  logic                                  rst,
    input  logic [ bell_decode_ports::InBits-1:0] in,
    output logic [bell_decode_ports::OutBits-1:0] out
);

  bell_decode_ports::in_t  i;
  bell_decode_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned FunctionWidth = (Functions > 1) ? $clog2(Functions) : 1;
  logic [FunctionWidth-1:0] bell_function;
  logic [63:0] bell_word;
  logic [DroppedWidth-1:0] dropped;

  bell_decode #(
      .Functions   (Functions),
      .WindowWidth ($bits(i.store_address)),
      .SizeWidth   ($bits(i.store_bytes)),
      .DroppedWidth(DroppedWidth)
  ) u_dut (
      .clk,
      .rst,
      .store_valid  (i.store_valid),
      .store_last   (i.store_last),
      .store_address(i.store_address),
      .store_bytes  (i.store_bytes),
      .store_data   (i.store_data),
      .bell_valid   (o.bell_valid),
      .bell_function(bell_function),
      .bell_word    (bell_word),
      .dropped_valid(o.dropped_valid),
      .dropped      (dropped)
  );

  assign o.bell_function = o.bell_valid ? 3'(bell_function) : '0;
  assign o.bell_word     = o.bell_valid ? bell_word : '0;
  assign o.dropped       = 32'(dropped);
  assign o.padding       = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
