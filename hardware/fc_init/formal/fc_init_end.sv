// One of the two ends of `fc_init_proof`: the block, the wire to the other end, and what is proved.
// A packet is under way for one or two cycles, and any may be lost. A TLP comes only from an end
// that has been up.
module fc_init_end #(
    parameter int unsigned AgainAfter = 3
) (
    input logic clk,
    input logic rst,
    input logic past_reset,
    input logic update_valid,
    input logic send_ready,
    input logic deliver,
    // What goes in this cycle is lost.
    input logic lost,
    // The stage that stands there without a packet.
    input logic [1:0] empty_stage,
    // What comes from the other end; its stage, and whether its gate has credits.
    input logic [1:0] comes,
    input logic [1:0] far_stage,
    input logic far_granted,

    output logic [1:0] goes,
    output logic [1:0] stage,
    output logic granted
);

  localparam int unsigned WaitWidth = $clog2(AgainAfter + 1);

  logic update_ready, send_valid, grant_valid, up;
  logic [WaitWidth-1:0] waited;
  wire heard = comes != '0;
  fc_init #(
      .AgainAfter(AgainAfter)
  ) u_end (
      .clk(clk),
      .rst(rst),
      .update_valid(update_valid),
      .update_ready(update_ready),
      .send_valid(send_valid),
      .send_ready(send_ready),
      .send_stage(stage),
      .heard_valid(heard),
      .heard_stage(heard ? comes : empty_stage),
      .grant_valid(grant_valid),
      .deliver(deliver),
      .probe_waited(waited),
      .up(up)
  );

  // Who has been up stays so, so this may also be a TLP that was long under way.
  logic is_asked;
  always_comb begin
    if (deliver) assume (far_stage == 2'b10);
    // The ledger's update stays until it is taken.
    if (is_asked) assume (update_valid);
  end

  // Packets under way, and how long one is.
  logic [1:0] soon, late;
  (* anyconst *) logic is_long;
  assign goes = is_long ? late : soon;

  // Cycles in which nothing was offered; it owes an answer, or has not sent since it was not up; of
  // the cycle before: something was offered and not taken, and the stage.
  logic [WaitWidth-1:0] silent;
  logic owes, may, waits;
  logic [1:0] previous;
  wire sent = send_valid && send_ready;

  always_ff @(posedge clk) begin
    soon <= (sent && !lost) ? stage : '0;
    late <= soon;
    silent <= send_valid ? '0 : silent + WaitWidth'(1);
    owes <= (heard && comes[0]) || (owes && !sent);
    may <= !up || (heard && comes[0]) || (may && !sent);
    granted <= granted || grant_valid;
    waits <= send_valid && !send_ready;
    previous <= stage;
    is_asked <= update_valid && !update_ready;
    if (rst) begin
      is_asked <= 1'b0;
      {soon, late, silent, granted, waits} <= '0;
      {owes, may} <= '1;
      previous <= 2'b01;
    end

    if (past_reset && !rst) begin
      // Packets go only if both gates have credits.
      if (up) p_known : assert (granted && far_granted && far_stage[1]);
      // The gate hears the first value once, behind it all updates, and nothing else.
      p_first : assert (stage[1] == granted);
      if (heard) p_counts : assert (grant_valid == (comes[0] != granted));
      if (!heard) p_nothing : assert (!grant_valid);
      // Stages follow each other, and none is left out.
      p_stages :
      assert (stage == previous || (previous == 2'b01 && stage == 2'b11)
              || (previous == 2'b11 && stage == 2'b10));
      p_up : assert (up == (stage == 2'b10));
      // An end that is not up asks again in time.
      if (!up) p_again : assert (32'(silent) < AgainAfter || send_valid);
      // What is offered stays until it is taken.
      if (waits) p_stays : assert (send_valid);
      // The ledger's updates are taken by packets that go as updates.
      p_taken : assert (update_ready == (up && send_ready));
      if (up && update_valid) p_passes : assert (send_valid);
      // Once up it sends nothing else but an answer, and one packet that was due. An answer goes at
      // once.
      if (up && !update_valid) p_quiet : assert (!send_valid || may);
      if (up && owes) p_answers : assert (send_valid);

      // What is under way is not ahead of its end.
      i_soon : assert (!soon[1] || granted);
      i_late : assert (!late[1] || granted);
      i_updates : assert ((soon != 2'b10 && late != 2'b10) || up);
      i_stage : assert (stage != '0);
      i_waited : assert (up || send_valid || waited == silent + WaitWidth'(1));
    end
  end

endmodule
