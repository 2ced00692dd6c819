// The first credits of one virtual channel: both ends tell what their buffers hold (InitFC1), and
// then that they have heard so (InitFC2). Packets go behind that, and updates of credits (S-15).
//
// What it sends is repeated `AgainAfter` cycles after it was taken, and at once if the far end
// shows that it still waits. So the ends agree whatever is lost before.
module fc_init #(
    parameter int unsigned AgainAfter = 34
) (
    input logic clk,
    input logic rst,

    // The ledger has an update for the far end.
    input  logic update_valid,
    output logic update_ready,

    // A packet with the ledger's credits should go, and its stage: bits 7:6 of its type.
    output logic       send_valid,
    input  logic       send_ready,
    output logic [1:0] send_stage,

    // A packet with the far end's credits has come; it counts for the gate.
    input  logic       heard_valid,
    input  logic [1:0] heard_stage,
    output logic       grant_valid,

    // A TLP of the channel has been delivered.
    input logic deliver,

`ifdef FORMAL
    // Proofs look at the time.
    output logic [$clog2(AgainAfter + 1)-1:0] probe_waited,
`endif
    // Packets of the channel may go.
    output logic up
);

  if (AgainAfter < 1) begin : g_again
    $error("fc_init: AgainAfter is at least 1");
  end

  // In the code of stages, who has heard the far end's credits sends with bit 1, and who waits for
  // an answer with bit 0.
  logic knows, asks;
  assign send_stage = {knows, asks};
  assign up = !asks;

  logic due, again, is_init, is_known;
  assign send_valid = due || (up && update_valid);
  assign update_ready = up && send_ready;
  assign is_init = heard_valid && heard_stage[0];
  assign is_known = deliver || (heard_valid && heard_stage[1]);
  // The first value counts once; behind it, updates do.
  assign grant_valid = heard_valid && heard_stage[0] != knows;

  localparam int unsigned WaitWidth = $clog2(AgainAfter + 1);
  logic [WaitWidth-1:0] waited;
  assign again = !up && !due && waited == WaitWidth'(AgainAfter);

  always_ff @(posedge clk) begin
    if (rst) begin
      {knows, asks} <= link_pkg::FirstInit[7:6];
      due <= 1'b1;
    end else begin
      knows <= knows || is_init;
      asks  <= asks && !(knows && is_known);
      due   <= is_init || again || (due && !send_ready);
    end
    waited <= due ? WaitWidth'(1) : waited + WaitWidth'(1);
  end

`ifdef FORMAL
  assign probe_waited = waited;
`endif

endmodule
