// `replay_buf` with the ports that the model has, packed.
module replay_buf_bench #(
    parameter int unsigned Depth = 128,
    parameter int unsigned ReplayAfter = 206
) (
    input  logic                                 clk,
    input  logic                                 rst,
    input  logic [ replay_buf_ports::InBits-1:0] in,
    output logic [replay_buf_ports::OutBits-1:0] out
);

  replay_buf_ports::in_t  i;
  replay_buf_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned CountWidth = $clog2(Depth > 1 ? Depth : 2) + 1;
  logic [CountWidth-1:0] room;
  logic out_last, out_again;
  logic [$bits(o.out_sequence)-1:0] out_sequence;
  logic [$bits(o.out_data)-1:0] out_data;

  replay_buf #(
      .Width($bits(i.in_data)),
      .Depth(Depth),
      .SequenceWidth($bits(i.ack_sequence)),
      .ReplayAfter(ReplayAfter)
  ) u_dut (
      .clk,
      .rst,
      .in_valid    (i.in_valid),
      .in_ready    (o.in_ready),
      .in_last     (i.in_last),
      .in_data     (i.in_data),
      .room        (room),
      .out_valid   (o.out_valid),
      .out_ready   (i.out_ready),
      .out_last    (out_last),
      .out_again   (out_again),
      .out_sequence(out_sequence),
      .out_data    (out_data),
      .ack_valid   (i.ack_valid),
      .ack_ready   (o.ack_ready),
      .ack_nak     (i.ack_nak),
      .ack_sequence(i.ack_sequence),
      .refused     (o.refused),
      .timed_out   (o.timed_out),
      .retrain     (o.retrain)
  );

  assign o.room         = 16'(room);
  assign o.out_last     = o.out_valid && out_last;
  assign o.out_again    = o.out_valid && out_again;
  assign o.out_sequence = o.out_valid ? out_sequence : '0;
  assign o.out_data     = o.out_valid ? out_data : '0;
  assign o.padding      = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
