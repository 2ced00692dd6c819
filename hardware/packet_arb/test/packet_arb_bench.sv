// `packet_arb` with the ports that the model has, packed.
module packet_arb_bench #(
    parameter int unsigned Inputs   = 2,
    parameter int unsigned Channels = 3
) (
    input  logic                                 clk,
    input  logic                                 rst,
    input  logic [ packet_arb_ports::InBits-1:0] in,
    output logic [packet_arb_ports::OutBits-1:0] out
);

  packet_arb_ports::in_t  i;
  packet_arb_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned Width = $bits(o.out_data);
  localparam int unsigned LaneWidth = $bits(o.out_to);
  localparam int unsigned RouteWidth = $bits(o.out_route);
  localparam int unsigned ModelWidth = $bits(o.out_channel);
  localparam int unsigned ChannelWidth = (Channels > 1) ? $clog2(Channels) : 1;
  logic [Inputs-1:0] in_ready;
  logic [Inputs-1:0][ChannelWidth-1:0] in_channel;
  logic [ChannelWidth-1:0] out_channel;
  logic [LaneWidth-1:0] out_to;
  logic [RouteWidth-1:0] out_route;
  logic [Width-1:0] out_data;
  logic out_last;

  for (genvar each = 0; each < Inputs; each++) begin : g_channel
    assign in_channel[each] = i.in_channel[ModelWidth*each+:ChannelWidth];
  end

  packet_arb #(
      .Inputs(Inputs),
      .Channels(Channels),
      .Width(Width),
      .LaneWidth(LaneWidth),
      .RouteWidth(RouteWidth)
  ) u_dut (
      .clk,
      .rst,
      .in_valid   (i.in_valid[Inputs-1:0]),
      .in_ready   (in_ready),
      .in_last    (i.in_last[Inputs-1:0]),
      .in_to      (i.in_to[Inputs*LaneWidth-1:0]),
      .in_channel (in_channel),
      .in_route   (i.in_route[Inputs*RouteWidth-1:0]),
      .in_data    (i.in_data[Inputs*Width-1:0]),
      .out_ready  (i.out_ready[Channels-1:0]),
      .out_valid  (o.out_valid),
      .out_last   (out_last),
      .out_to     (out_to),
      .out_channel(out_channel),
      .out_route  (out_route),
      .out_data   (out_data)
  );

  assign o.in_ready    = 4'(in_ready);
  assign o.out_last    = o.out_valid && out_last;
  assign o.out_to      = o.out_valid ? out_to : '0;
  assign o.out_channel = o.out_valid ? ModelWidth'(out_channel) : '0;
  assign o.out_route   = o.out_valid ? out_route : '0;
  assign o.out_data    = o.out_valid ? out_data : '0;
  assign o.padding     = '0;

  // Bits that a small configuration has not.
  logic unused;
  assign unused = ^{i.padding, i.in_valid, i.in_last, i.in_to, i.in_channel, i.in_route, i.in_data,
                    i.out_ready};

endmodule
