// What is proved of two ends of `fc_init`, without bound, by k-induction; `fc_init_end.sv` has one.
module fc_init_proof #(
    parameter int unsigned AgainAfter = 3,
    // In so many cycles without a loss both ends come up.
    parameter int unsigned Patience   = 20
) (
    input logic            clk,
    input logic            rst,
    input logic [1:0]      update_valid,
    input logic [1:0]      send_ready,
    input logic [1:0]      deliver,
    input logic [1:0]      lost,
    input logic [1:0][1:0] empty_stage
);

  logic past_reset = 1'b0;
  logic [1:0] granted;
  logic [1:0][1:0] goes, stage;

  for (genvar at = 0; at < 2; at++) begin : g_end
    fc_init_end #(
        .AgainAfter(AgainAfter)
    ) u_end (
        .clk(clk),
        .rst(rst),
        .past_reset(past_reset),
        .update_valid(update_valid[at]),
        .send_ready(send_ready[at]),
        .deliver(deliver[at]),
        .lost(lost[at]),
        .empty_stage(empty_stage[at]),
        .comes(goes[1-at]),
        .far_stage(stage[1-at]),
        .far_granted(granted[1-at]),
        .goes(goes[at]),
        .stage(stage[at]),
        .granted(granted[at])
    );
  end

  // Cycles in a row without a loss, in which no packet waited for more than one.
  localparam int unsigned CountWidth = $clog2(Patience + 1);
  logic [CountWidth-1:0] good;
  logic [1:0] was_ready;
  always_comb assume (past_reset || rst);
  always_ff @(posedge clk) begin
    past_reset <= 1'b1;
    was_ready  <= send_ready;
    if (rst || lost != '0 || (send_ready | was_ready) != '1) good <= '0;
    else if (32'(good) < Patience) good <= good + CountWidth'(1);
    if (past_reset && !rst && 32'(good) == Patience) begin
      p_lives : assert (stage == {2'b10, 2'b10});
    end
  end

endmodule
