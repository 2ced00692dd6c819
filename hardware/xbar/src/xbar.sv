// The crossbar of cHPP with virtual channels (C-04, C-27).
//
// A packet crosses when its input, its output and a place behind the output are free. It holds
// input and output until its last beat is through. A beat of cycle t stands at its output in t + 4
// at the earliest: it is written in t + 1, its packet starts in t + 2, it leaves the memory in
// t + 3. `credit` tells in cycle t of a place that a packet can take from t + 2 on.
module xbar #(
    parameter int unsigned Ports = 4,
    // Virtual channels of an input; packets that each holds, and beats of all of them together.
    parameter int unsigned Channels = 3,
    parameter int unsigned Depth = 32,
    parameter int unsigned Room = 598,
    // Beats of a packet, at most: a GET of 4 KiB has 257. Bits of a beat.
    parameter int unsigned Beats = 257,
    parameter int unsigned Width = 128,
    // Classes of places behind an output, and places of each.
    parameter int unsigned Classes = 2,
    parameter int unsigned Credits = 4,
    localparam int unsigned PortWidth = (Ports > 1) ? $clog2(Ports) : 1,
    localparam int unsigned ChannelWidth = (Channels > 1) ? $clog2(Channels) : 1,
    localparam int unsigned ClassWidth = (Classes > 1) ? $clog2(Classes) : 1,
    localparam int unsigned CountWidth = $clog2(Depth + 1),
    localparam int unsigned CreditWidth = $clog2(Credits + 1)
) (
    input logic clk,
    input logic rst,

    // A beat comes, if its channel is ready. Output and class count with the first of a packet.
    input  logic [Ports-1:0]                   in_valid,
    output logic [Ports-1:0][    Channels-1:0] in_ready,
    input  logic [Ports-1:0][ChannelWidth-1:0] in_channel,
    input  logic [Ports-1:0][   PortWidth-1:0] in_output,
    input  logic [Ports-1:0][  ClassWidth-1:0] in_class,
    input  logic [Ports-1:0]                   in_last,
    input  logic [Ports-1:0][       Width-1:0] in_data,
    // A packet of this input starts to cross.
    output logic [Ports-1:0]                   granted,

    // A beat leaves, with the class of the place that its packet took.
    output logic [Ports-1:0]                 out_valid,
    input  logic [Ports-1:0]                 out_ready,
    output logic [Ports-1:0][ClassWidth-1:0] out_class,
    output logic [Ports-1:0]                 out_last,
    output logic [Ports-1:0][     Width-1:0] out_data,

    // A place behind an output is free again. Free places; packets in each channel of each input.
    input  logic [Ports-1:0][ Classes-1:0]                  credit,
    output logic [Ports-1:0][ Classes-1:0][CreditWidth-1:0] credits,
    output logic [Ports-1:0][Channels-1:0][ CountWidth-1:0] packets
);

  if (Ports < 1 || Channels < 1 || Classes < 1 || Credits < 1) begin : g_parameters
    $error("xbar: all parameters are at least 1");
  end

  localparam int unsigned RouteWidth = PortWidth + ClassWidth;

  // By input: the packets in front of its channels, and the one that is crossing.
  logic [Ports-1:0][Channels-1:0] front_valid, may;
  logic [Ports-1:0][Channels-1:0][RouteWidth-1:0] front_route;
  logic [Ports-1:0][Channels-1:0][ PortWidth-1:0] front_output;
  logic [Ports-1:0][Channels-1:0][ClassWidth-1:0] front_class;
  logic [Ports-1:0] crosses, beat_valid, beat_ready, beat_last;
  logic [Ports-1:0][    Width-1:0] beat_data;
  logic [Ports-1:0][PortWidth-1:0] target;
  logic [Ports-1:0][ClassWidth-1:0] target_class, take_class;
  logic [Ports-1:0][ChannelWidth-1:0] take_channel;
  logic [Ports-1:0][PortWidth-1:0] take_output;
  // By route: a place is there.
  logic [2**RouteWidth-1:0] has_place;
  // By output.
  logic [Ports-1:0] is_free, accepts;
  logic [Ports-1:0][Classes-1:0] taken, returned;

  xbar_match #(
      .Ports(Ports),
      .Channels(Channels)
  ) u_match (
      .clk,
      .rst,
      .may,
      .goal(front_output),
      .is_free,
      .take(granted),
      .take_channel,
      .take_output
  );

  always_comb begin
    has_place = '0;
    for (int unsigned port = 0; port < Ports; port++) begin
      for (int unsigned of = 0; of < Classes; of++) begin
        has_place[{ClassWidth'(of), PortWidth'(port)}] = credits[port][of] != '0;
      end
    end
  end

  for (genvar at = 0; at < Ports; at++) begin : g_input
    vc_buf #(
        .Channels(Channels),
        .Depth(Depth),
        .Room(Room),
        .Beats(Beats),
        .Width(Width),
        .RouteWidth(RouteWidth)
    ) u_vc_buf (
        .clk,
        .rst,
        .in_valid(in_valid[at]),
        .in_ready(in_ready[at]),
        .in_channel(in_channel[at]),
        .in_route({in_class[at], in_output[at]}),
        .in_last(in_last[at]),
        .in_data(in_data[at]),
        .front_valid(front_valid[at]),
        .front_route(front_route[at]),
        .take(granted[at]),
        .take_channel(take_channel[at]),
        .crosses(crosses[at]),
        .out_valid(beat_valid[at]),
        .out_ready(beat_ready[at]),
        .out_last(beat_last[at]),
        .out_data(beat_data[at]),
        .packets(packets[at])
    );

    always_comb begin
      for (int unsigned of = 0; of < Channels; of++) begin
        {front_class[at][of], front_output[at][of]} = front_route[at][of];
        may[at][of] = front_valid[at][of] && !crosses[at] && has_place[front_route[at][of]];
      end
    end

    always_comb begin
      take_class[at] = '0;
      for (int unsigned of = 0; of < Channels; of++) begin
        if (take_channel[at] == ChannelWidth'(of)) take_class[at] = front_class[at][of];
      end
    end

    assign beat_ready[at] = accepts[target[at]];

    always_ff @(posedge clk) begin
      if (granted[at]) begin
        target[at] <= take_output[at];
        target_class[at] <= take_class[at];
      end
    end
  end

  for (genvar at = 0; at < Ports; at++) begin : g_output
    // The input whose packet crosses to this output.
    logic [Ports-1:0] source;
    logic offered, offered_last;
    logic [ClassWidth-1:0] offered_class;
    logic [Width-1:0] offered_data;

    always_comb begin
      offered = 1'b0;
      offered_last = 1'b0;
      offered_class = '0;
      offered_data = '0;
      for (int unsigned port = 0; port < Ports; port++) begin
        source[port] = crosses[port] && target[port] == PortWidth'(at);
        offered |= source[port] && beat_valid[port];
        offered_last |= source[port] && beat_last[port];
        offered_class |= {ClassWidth{source[port]}} & target_class[port];
        offered_data |= {Width{source[port]}} & beat_data[port];
      end
    end

    assign is_free[at] = source == '0;
    assign accepts[at] = !out_valid[at] || out_ready[at];

    always_ff @(posedge clk) begin
      if (rst) out_valid[at] <= 1'b0;
      else if (accepts[at]) out_valid[at] <= offered;
      if (accepts[at]) begin
        out_last[at]  <= offered_last;
        out_class[at] <= offered_class;
        out_data[at]  <= offered_data;
      end
    end

    // A place is taken when a packet starts, and given back two cycles after it is told of.
    for (genvar of = 0; of < Classes; of++) begin : g_class
      logic [Ports-1:0] takes;
      always_comb begin
        for (int unsigned port = 0; port < Ports; port++) begin
          takes[port] = granted[port] && take_output[port] == PortWidth'(at)
              && take_class[port] == ClassWidth'(of);
        end
      end
      assign taken[at][of] = takes != '0;

      always_ff @(posedge clk) begin
        if (rst) begin
          returned[at][of] <= 1'b0;
          credits[at][of]  <= CreditWidth'(Credits);
        end else begin
          returned[at][of] <= credit[at][of];
          credits[at][of] <= credits[at][of] + CreditWidth'(returned[at][of]) - CreditWidth'(taken[at][of]);
        end
      end
    end
  end

`ifdef PROVE_XBAR
  `include "xbar_formal.svh"
`endif

endmodule
