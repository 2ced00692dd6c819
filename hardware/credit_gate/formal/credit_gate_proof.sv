// What is proved of `credit_gate` together with `credit_ledger`, without bound, by k-induction.
//
// Packets and updates are under way for any time. An update may be lost. One that comes is not
// older than those before it, and not newer than what is granted.
module credit_gate_proof #(
    parameter int unsigned HeaderWidth = 4,
    parameter int unsigned DataWidth = 5,
    parameter int unsigned Headers = 7,
    parameter int unsigned Data = 15
) (
    input logic                   clk,
    input logic                   rst,
    // A packet wants to go.
    input logic                   in_valid,
    input logic [  DataWidth-1:0] in_cost,
    // One comes to the other end, and one leaves the buffer there.
    input logic                   arrives,
    input logic [  DataWidth-1:0] arrive_cost,
    input logic                   leaves,
    input logic [  DataWidth-1:0] leave_cost,
    // An update comes back.
    input logic                   comes,
    input logic [HeaderWidth-1:0] come_headers,
    input logic [  DataWidth-1:0] come_data
);

  typedef logic [HeaderWidth-1:0] headers_t;
  typedef logic [DataWidth-1:0] data_t;

  logic in_ready, has_room, lacks_header, lacks_data, update_valid;
  headers_t left_headers, used_headers, free_headers, granted_headers;
  data_t left_data, used_data, free_data, granted_data;

  credit_gate #(
      .HeaderWidth(HeaderWidth),
      .DataWidth  (DataWidth)
  ) u_gate (
      .clk(clk),
      .rst(rst),
      .in_valid(in_valid),
      .in_ready(in_ready),
      .in_cost(in_cost),
      .lacks_header(lacks_header),
      .lacks_data(lacks_data),
      .update_valid(comes),
      .update_headers(come_headers),
      .update_data(come_data),
      .probe_headers(used_headers),
      .probe_data(used_data),
      .left_headers(left_headers),
      .left_data(left_data)
  );

  credit_ledger #(
      .HeaderWidth(HeaderWidth),
      .DataWidth(DataWidth),
      .Headers(Headers),
      .Data(Data)
  ) u_ledger (
      .clk(clk),
      .rst(rst),
      .in_valid(arrives),
      .in_ready(has_room),
      .in_cost(arrive_cost),
      .leave_valid(leaves),
      .leave_cost(leave_cost),
      .probe_headers(free_headers),
      .probe_data(free_data),
      .update_valid(update_valid),
      .update_ready(1'b1),
      .update_headers(granted_headers),
      .update_data(granted_data)
  );

  // Packets under way and in the buffer, what they take, and the last update that came.
  headers_t flying_headers, held_headers, told_headers;
  data_t flying_data, held_data, told_data;
  logic past_reset = 1'b0;

  wire goes = in_valid && in_ready;
  wire enters = arrives && has_room;
  // Grants of which the sender does not know.
  wire headers_t untold_headers = granted_headers - told_headers;
  wire data_t untold_data = granted_data - told_data;
  wire headers_t news_headers = come_headers - told_headers;
  wire data_t news_data = come_data - told_data;

  always_comb begin
    assume (past_reset || rst);
    if (arrives) begin
      assume (flying_headers != '0 && arrive_cost <= flying_data);
      assume (flying_headers != headers_t'(1) || arrive_cost == flying_data);
    end
    if (leaves) begin
      assume (held_headers != '0 && leave_cost <= held_data);
      assume (held_headers != headers_t'(1) || leave_cost == held_data);
    end
    if (comes) assume (news_headers <= untold_headers && news_data <= untold_data);
  end

  always_ff @(posedge clk) begin
    past_reset <= 1'b1;
    if (rst) begin
      {flying_headers, held_headers, told_headers} <= '0;
      {flying_data, held_data, told_data} <= '0;
    end else begin
      flying_headers <= flying_headers + headers_t'(goes) - headers_t'(arrives);
      flying_data <= flying_data + (goes ? in_cost : '0) - (arrives ? arrive_cost : '0);
      held_headers <= held_headers + headers_t'(enters) - headers_t'(leaves);
      held_data <= held_data + (enters ? arrive_cost : '0) - (leaves ? leave_cost : '0);
      if (comes) {told_headers, told_data} <= {come_headers, come_data};
    end

    if (past_reset && !rst) begin
      // The buffer has room for every packet that comes.
      // shows: S-15
      if (arrives) p_room : assert (has_room);
      // The sender never has more credits than the buffer has places.
      p_bound : assert (left_headers <= headers_t'(Headers) && left_data <= data_t'(Data));
      // No credit leaks, and none is doubled: those that are left, under way, in the buffer and not
      // yet told are all.
      p_headers :
      assert ({2'b0, left_headers} + {2'b0, flying_headers} + {2'b0, held_headers}
              + {2'b0, untold_headers} == (HeaderWidth + 2)'(Headers));
      p_data :
      assert ({2'b0, left_data} + {2'b0, flying_data} + {2'b0, held_data} + {2'b0, untold_data}
              == (DataWidth + 2)'(Data));
      // Once all has left and the last update has come, the sender has all credits.
      if ({flying_headers, held_headers, untold_headers, untold_data} == '0) begin
        p_all : assert (left_headers == headers_t'(Headers) && left_data == data_t'(Data));
      end
      // A packet whose credits are there may go, and no other.
      p_allows : assert (in_ready == (left_headers != '0 && left_data >= in_cost));
      p_lacks : assert (in_ready != (lacks_header || lacks_data) && !(lacks_header && lacks_data));

      i_left_headers : assert (left_headers == told_headers - used_headers);
      i_left_data : assert (left_data == told_data - used_data);
      i_held : assert (free_headers + held_headers == headers_t'(Headers));
      i_data : assert (free_data + held_data == data_t'(Data));
      i_flies : assert (flying_headers != '0 || flying_data == '0);
      i_empty : assert (held_headers != '0 || held_data == '0);
    end
  end

endmodule
