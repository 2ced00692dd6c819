// What is proved of `dllp_rx` behind `dllp_tx`, without bound, by k-induction. Packets go whenever
// they want. A packet comes as it went, or any eight bytes come instead of it.
module dllp_rx_proof (
    input logic clk,
    input logic rst,

    // What the far end tells.
    input logic              tells,
    input logic              told_ack,
    input logic              told_nak,
    input logic [11:0]       told_sequence,
    input logic [ 1:0]       told_update,
    input logic [ 1:0][ 1:0] told_stage,
    input logic [ 1:0][ 7:0] told_headers,
    input logic [ 1:0][11:0] told_data,

    // What comes instead.
    input logic        is_strange,
    input logic [63:0] strange,

    input logic ack_ready
);

  logic sends, ack_valid, ack_nak, damaged, unknown;
  logic [63:0] sent, came;
  logic [11:0] ack_sequence;
  logic [ 1:0] update_valid;
  logic [ 1:0] update_stage;
  logic [ 7:0] update_headers;
  logic [11:0] update_data;

  dllp_tx u_tx (
      .ack_valid(told_ack),
      .ack_ready(),
      .ack_nak(told_nak),
      .ack_sequence(told_sequence),
      .update_valid(told_update),
      .update_ready(),
      .update_stage(told_stage),
      .update_headers(told_headers),
      .update_data(told_data),
      .dllp_valid(sends),
      .dllp_ready(tells),
      .dllp_data(sent)
  );

  assign came = is_strange ? strange : sent;
  wire comes = (tells && sends) || is_strange;

  dllp_rx u_rx (
      .clk(clk),
      .rst(rst),
      .dllp_valid(comes),
      .dllp_data(came),
      .ack_valid(ack_valid),
      .ack_ready(ack_ready),
      .ack_nak(ack_nak),
      .ack_sequence(ack_sequence),
      .update_valid(update_valid),
      .update_stage(update_stage),
      .update_headers(update_headers),
      .update_data(update_data),
      .damaged(damaged),
      .unknown(unknown)
  );

  logic past_reset = 1'b0;
  always_comb begin
    assume (past_reset || rst);
    // A packet of credits has a stage.
    assume (told_stage[0] != '0 && told_stage[1] != '0);
  end

  // The CRC that it should have.
  logic [15:0] f_crc;
  crc16_dllp u_crc (
      .content(came[39:8]),
      .crc(f_crc)
  );
  wire f_hurt = came[7:0] != link_pkg::Sdp || came[63:56] != link_pkg::End
      || {came[47:40], came[55:48]} != f_crc;

  // Of the cycle before: a packet came, as it went, or with a wrong CRC or symbol; what it told.
  logic g_came, g_whole, g_hurt, g_ack, g_nak;
  logic [11:0] g_sequence;
  // Whose credits they were.
  logic g_channel;
  logic [1:0] g_stage;
  logic [7:0] g_headers;
  logic [11:0] g_data;
  // An acknowledgement waits, and it is a NAK.
  logic g_waits, g_was_nak;

  always_ff @(posedge clk) begin
    past_reset <= 1'b1;
    g_came <= comes && !rst;
    g_whole <= comes && !is_strange && !rst;
    g_hurt <= comes && f_hurt && !rst;
    g_ack <= told_ack;
    g_nak <= told_nak;
    g_sequence <= told_sequence;
    g_channel <= !told_update[0];
    g_stage <= told_stage[!told_update[0]];
    g_headers <= told_headers[!told_update[0]];
    g_data <= told_data[!told_update[0]];
    g_waits <= ack_valid && !ack_ready && !rst;
    g_was_nak <= ack_nak;

    if (past_reset && !rst) begin
      // A packet that comes as it went says the same.
      if (g_whole && g_ack) begin
        p_number : assert (ack_valid && ack_sequence == g_sequence);
        p_nak : assert (ack_nak == (g_nak || (g_waits && g_was_nak)));
      end
      if (g_whole && !g_ack) begin
        p_channel : assert (update_valid == (g_channel ? 2'b10 : 2'b01));
        p_stage : assert (update_stage == g_stage);
        p_credits : assert (update_headers == g_headers && update_data == g_data);
      end
      // A wrong CRC or symbol tells nothing else.
      if (g_hurt) p_hurt : assert (damaged && update_valid == '0 && ack_valid == g_waits);
      // Of each packet that comes, whatever it is, one thing is told.
      if (g_came && !damaged && !unknown && update_valid == '0) p_one : assert (ack_valid);
      p_apart :
      assert (2'(damaged) + 2'(unknown) + 2'(update_valid[0]) + 2'(update_valid[1]) <= 2'(g_came));
      // An acknowledgement waits until it is taken, and a NAK stays one.
      if (g_waits) p_waits : assert (ack_valid && (ack_nak || !g_was_nak));
      if (g_waits && !g_came) p_stays : assert (ack_nak == g_was_nak && $stable(ack_sequence));
      // Nothing is told of nothing.
      p_quiet : assert (!ack_valid || g_waits || g_came);
    end
  end

endmodule
