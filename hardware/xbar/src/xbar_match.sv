// Matches the inputs and outputs of a crossbar, in one cycle.
//
// Outputs choose one after the other; after a cycle in which a packet starts, the next output is
// first. An output chooses round-robin among the inputs that no other one took and that have a
// packet for it. An input chooses round-robin among its channels with a packet for that output. So
// no output stays free for which a free input has a packet that may start.
module xbar_match #(
    parameter int unsigned Ports = 4,
    parameter int unsigned Channels = 3,
    localparam int unsigned PortWidth = (Ports > 1) ? $clog2(Ports) : 1,
    localparam int unsigned ChannelWidth = (Channels > 1) ? $clog2(Channels) : 1
) (
    input logic clk,
    input logic rst,

    // By input and channel: a packet may start, and its output.
    input logic [Ports-1:0][Channels-1:0]                may,
    input logic [Ports-1:0][Channels-1:0][PortWidth-1:0] goal,
    // By output.
    input logic [Ports-1:0]                              is_free,

    // By input: a packet starts, of this channel and to this output.
    output logic [Ports-1:0]                   take,
    output logic [Ports-1:0][ChannelWidth-1:0] take_channel,
    output logic [Ports-1:0][   PortWidth-1:0] take_output
);

  // By output and input: some packet may start from there.
  logic [Ports-1:0][Ports-1:0] asks;
  always_comb begin
    asks = '0;
    for (int unsigned port = 0; port < Ports; port++) begin
      for (int unsigned at = 0; at < Channels; at++) begin
        for (int unsigned to = 0; to < Ports; to++) begin
          if (may[port][at] && goal[port][at] == PortWidth'(to)) asks[to][port] = 1'b1;
        end
      end
    end
  end

  // By output, a bit for each input above the last that it took: those are preferred.
  logic [Ports-1:0][Ports-1:0] above;
  // By output, the input that it takes.
  logic [Ports-1:0][Ports-1:0] grant;
  logic [PortWidth-1:0] first;

  // The output that is so many steps behind another one.
  function automatic logic [PortWidth-1:0] turn(input logic [PortWidth-1:0] from,
                                                input logic [PortWidth:0] step);
    logic [PortWidth:0] sum;
    begin
      sum = (PortWidth + 1)'(from) + step;
      if (sum >= (PortWidth + 1)'(Ports)) sum = sum - (PortWidth + 1)'(Ports);
      turn = sum[PortWidth-1:0];
    end
  endfunction

  always_comb begin
    logic [PortWidth-1:0] chooses;
    logic [Ports-1:0] candidates, preferred;
    grant = '0;
    take  = '0;
    for (int unsigned step = 0; step < Ports; step++) begin
      chooses = turn(first, (PortWidth + 1)'(step));
      candidates = '0;
      preferred = '0;
      for (int unsigned to = 0; to < Ports; to++) begin
        if (chooses == PortWidth'(to) && is_free[to]) begin
          candidates = asks[to] & ~take;
          preferred  = above[to];
        end
      end
      if ((candidates & preferred) != '0) candidates &= preferred;
      candidates &= ~candidates + Ports'(1);
      for (int unsigned to = 0; to < Ports; to++) begin
        if (chooses == PortWidth'(to)) grant[to] = candidates;
      end
      take |= candidates;
    end
  end

  always_ff @(posedge clk) begin
    if (rst) first <= '0;
    else if (take != '0) first <= turn(first, (PortWidth + 1)'(1));
  end

  for (genvar at = 0; at < Ports; at++) begin : g_output
    logic [Ports-1:0] next_above;
    always_comb begin
      logic passed;
      passed = 1'b0;
      for (int unsigned port = 0; port < Ports; port++) begin
        next_above[port] = passed;
        passed = passed || grant[at][port];
      end
    end

    always_ff @(posedge clk) begin
      if (rst) above[at] <= '0;
      else if (grant[at] != '0) above[at] <= next_above;
    end
  end

  for (genvar at = 0; at < Ports; at++) begin : g_input
    always_comb begin
      take_output[at] = '0;
      for (int unsigned to = 0; to < Ports; to++) begin
        if (grant[to][at]) take_output[at] = take_output[at] | PortWidth'(to);
      end
    end

    logic [Channels-1:0] request;
    always_comb begin
      for (int unsigned of = 0; of < Channels; of++) begin
        request[of] = may[at][of] && goal[at][of] == take_output[at];
      end
    end

    logic unused_valid;
    rr_arb #(
        .Requests(Channels)
    ) u_rr_arb (
        .clk,
        .rst,
        .request,
        .advance(take[at]),
        .behind (take_channel[at]),
        .valid  (unused_valid),
        .index  (take_channel[at])
    );
    logic unused;
    assign unused = unused_valid;
  end

`ifdef PROVE_XBAR_MATCH
  `include "xbar_match_formal.svh"
`endif

endmodule
