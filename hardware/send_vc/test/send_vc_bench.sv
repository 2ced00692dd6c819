// `send_vc` with the ports that the model has, packed.
module send_vc_bench #(
    parameter int unsigned Depth = 34
) (
    input  logic                              clk,
    input  logic                              rst,
    input  logic [ send_vc_ports::InBits-1:0] in,
    output logic [send_vc_ports::OutBits-1:0] out
);

  send_vc_ports::in_t  i;
  send_vc_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic out_last;
  logic [$bits(o.out_data)-1:0] out_data;

  send_vc #(
      .Depth(Depth),
      .RoomWidth($bits(i.room)),
      .DataWidth($bits(o.cost) / 2)
  ) u_dut (
      .clk,
      .rst,
      .in_valid (i.in_valid),
      .in_ready (o.in_ready),
      .in_last  (i.in_last),
      .in_data  (i.in_data),
      .cost     (o.cost),
      .allowed  (i.allowed),
      .begins   (o.begins),
      .malformed(o.malformed),
      .room     (i.room),
      .out_valid(o.out_valid),
      .out_last (out_last),
      .out_data (out_data)
  );

  assign o.out_last = o.out_valid && out_last;
  assign o.out_data = o.out_valid ? out_data : '0;
  assign o.padding  = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
