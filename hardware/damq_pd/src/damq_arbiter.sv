// The output arbiter: round-robin among ports whose next descriptor is whole (D-07, D-08).
//
// One flag for each port is registered, so that arbitration begins with registers. The port that is
// being read has no flag. If it has a further descriptor (`again`), it is last in the round anyhow,
// and is selected only if no flag is set.
module damq_arbiter #(
    parameter int unsigned Ports = 4,
    localparam int unsigned PortWidth = (Ports > 1) ? $clog2(Ports) : 1
) (
    input logic clk,
    input logic rst,

`ifdef FORMAL
    output logic [2**PortWidth-1:0] probe_eligible,
    output logic [2**PortWidth-1:0] probe_by_dma,
`endif
    // A descriptor may be selected; which.
    input  logic                    may,
    output logic                    selected,
    output logic [   PortWidth-1:0] select_port,
    output logic                    select_way,

    // A descriptor of this port ends in this cycle, and a further one is known to be whole.
    input logic                 ends,
    input logic                 again,
    input logic [PortWidth-1:0] end_port,
    input logic                 again_way,

    // A port that ended in the previous cycle, whose ticket was not known then.
    input logic                 decide,
    input logic [PortWidth-1:0] decide_port,
    input logic                 decide_way,
    input logic                 decide_eligible,

    // The state of this port after all that happens in this cycle.
    input logic                 update,
    input logic [PortWidth-1:0] update_port,
    input logic                 update_way,
    input logic                 update_eligible
);

  localparam int unsigned Places = 2 ** PortWidth;

  logic [Places-1:0] eligible, by_dma;
  logic flagged, selects_end;
  logic [PortWidth-1:0] flagged_port;

  assign selects_end = !flagged && ends && again;
  assign selected = may && (flagged || selects_end);
  assign select_port = flagged ? flagged_port : end_port;
  assign select_way = flagged ? by_dma[flagged_port] : again_way;

  rr_arb #(
      .Requests(Places)
  ) u_rr_arb (
      .clk,
      .rst,
      .request(eligible),
      .advance(selected),
      .behind (select_port),
      .valid  (flagged),
      .index  (flagged_port)
  );

  always_ff @(posedge clk) begin
    if (rst) eligible <= '0;
    else begin
      if (selected && flagged) eligible[flagged_port] <= 1'b0;
      if (ends) begin
        eligible[end_port] <= again && !(selected && selects_end);
        by_dma[end_port]   <= again_way;
      end
      if (decide) begin
        eligible[decide_port] <= decide_eligible;
        by_dma[decide_port]   <= decide_way;
      end
      if (update) begin
        eligible[update_port] <= update_eligible;
        by_dma[update_port]   <= update_way;
      end
    end
  end

`ifdef FORMAL
  assign probe_eligible = eligible;
  assign probe_by_dma   = by_dma;
`endif

endmodule
