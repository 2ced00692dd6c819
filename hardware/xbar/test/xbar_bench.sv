// `xbar` with the ports that the model has, packed.
module xbar_bench #(
    parameter int unsigned Ports = 4,
    parameter int unsigned Channels = 3,
    parameter int unsigned Depth = 32,
    parameter int unsigned Room = 598,
    parameter int unsigned Beats = 257,
    parameter int unsigned Classes = 2,
    parameter int unsigned Credits = 4
) (
    input  logic                           clk,
    input  logic                           rst,
    input  logic [ xbar_ports::InBits-1:0] in,
    output logic [xbar_ports::OutBits-1:0] out
);

  xbar_ports::in_t  i;
  xbar_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned PortWidth = (Ports > 1) ? $clog2(Ports) : 1;
  localparam int unsigned ChannelWidth = (Channels > 1) ? $clog2(Channels) : 1;
  localparam int unsigned ClassWidth = (Classes > 1) ? $clog2(Classes) : 1;
  localparam int unsigned CountWidth = $clog2(Depth + 1);
  localparam int unsigned CreditWidth = $clog2(Credits + 1);

  logic [Ports-1:0][Channels-1:0] in_ready;
  logic [Ports-1:0][ChannelWidth-1:0] in_channel;
  logic [Ports-1:0][PortWidth-1:0] in_output;
  logic [Ports-1:0][ClassWidth-1:0] in_class, out_class;
  logic [Ports-1:0][63:0] in_data, out_data;
  logic [Ports-1:0] granted, out_valid, out_last;
  logic [Ports-1:0][Classes-1:0] credit;
  logic [Ports-1:0][Classes-1:0][CreditWidth-1:0] credits;
  logic [Ports-1:0][Channels-1:0][CountWidth-1:0] packets;

  xbar #(
      .Ports(Ports),
      .Channels(Channels),
      .Depth(Depth),
      .Room(Room),
      .Beats(Beats),
      .Width(64),
      .Classes(Classes),
      .Credits(Credits)
  ) u_dut (
      .clk,
      .rst,
      .in_valid (i.in_valid[Ports-1:0]),
      .in_ready,
      .in_channel,
      .in_output,
      .in_class,
      .in_last  (i.in_last[Ports-1:0]),
      .in_data,
      .granted,
      .out_valid,
      .out_ready(i.out_ready[Ports-1:0]),
      .out_class,
      .out_last,
      .out_data,
      .credit,
      .credits,
      .packets
  );

  // Element `at` of an array of the model has its share of the bits. The payload counts only while
  // it is valid.
  always_comb begin
    o = '0;
    for (int unsigned at = 0; at < Ports; at++) begin
      in_channel[at] = ChannelWidth'(i.in_channel[2*at+:2]);
      in_output[at] = PortWidth'(i.in_output[2*at+:2]);
      in_class[at] = ClassWidth'(i.in_class[2*at+:2]);
      in_data[at] = i.in_data[64*at+:64];
      credit[at] = i.credit[4*at+:Classes];
      o.granted[at] = granted[at];
      o.out_valid[at] = out_valid[at];
      o.out_class[2*at+:2] = out_valid[at] ? 2'(out_class[at]) : '0;
      o.out_last[at] = out_valid[at] && out_last[at];
      o.out_data[64*at+:64] = out_valid[at] ? out_data[at] : '0;
      o.in_ready[4*at+:Channels] = in_ready[at];
      for (int unsigned of = 0; of < Channels; of++) begin
        o.packets[32*at+8*of+:8] = 8'(packets[at][of]);
      end
      for (int unsigned of = 0; of < Classes; of++) begin
        o.credits[32*at+8*of+:8] = 8'(credits[at][of]);
      end
    end
  end

  logic unused;
  assign unused = ^i;

endmodule
