// What is proved of `send_event`, without bound, by k-induction.
//
// A shadow sees the ports, and when this block has the port of `event_ring`, and for whom. It
// follows one function and one of its places, both chosen freely. Nothing is assumed: any operation
// may begin, any place may be said to be done, and any ring may be closed or full at any time.

typedef logic [FunctionWidth:0] steps_t;

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *)function_t who;
(* anyconst *)index_t what;

// ---- The function: what it has begun, and what has left. The place: it is in use, what its event
// says if all goes well, whether it is done, and whether its data failed.

count_t g_began, g_left;
logic g_used, g_done, g_failed;
logic [2:0] g_status;
logic [1:0] g_pair;
logic [8:0] g_peer;
logic [3:0] g_primitive;
logic [4:0] g_tail_bytes;
logic [TailWidth-1:0] g_tail;
logic [AddressWidth-1:0] g_total, g_address;

// ---- Turns: of functions, how many others were chosen while the followed one waited, and whether
// any was since reset; of the upload module, since an event of this block has entered. Events that
// were dropped.

function_t g_next;
steps_t g_passed;
logic g_chose;
logic g_owed;
logic [DroppedWidth-1:0] g_dropped;

wire f_begins = move_valid && move_ready && move_function == who;
wire f_refuses = report_valid && report_ready && report_function == who;
wire f_enters_it = (f_begins || f_refuses) && index_t'(g_began) == what;
wire f_enters = own && event_ready;
wire f_drops = own && lacks_ring && !event_ready;
wire f_leaves = (f_enters || f_drops) && offered == who;
wire count_t f_count = g_began - g_left;
// The followed place has the oldest operation.
wire f_oldest = g_used && index_t'(g_left) == what;
wire f_waits = f_oldest && g_done;
wire [EventWidth-2:0] f_record = {
  5'd0,
  g_pair,
  5'd0,
  g_failed ? 3'd3 : g_status,
  4'd0,
  g_primitive,
  40'(g_failed ? '0 : g_total),
  7'd0,
  g_peer,
  3'd0,
  g_tail_bytes,
  40'(g_address),
  g_tail
};

// How far those are behind the one whose turn is next, cyclically.
wire function_t f_who_steps = who - g_next;
wire function_t f_chosen_steps = chosen - g_next;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_began <= g_began + count_t'(f_begins || f_refuses);
  g_left <= g_left + count_t'(f_leaves);
  if (f_leaves && f_oldest) g_used <= 1'b0;
  for (int unsigned packer = 0; packer < Packers; packer++) begin
    if (sent_valid[packer] && sent_place[packer] == {who, what}) begin
      g_done   <= 1'b1;
      g_failed <= sent_failed[packer];
    end
  end
  if (f_enters_it) begin
    g_used <= 1'b1;
    g_done <= f_refuses;
    g_failed <= 1'b0;
    g_status <= f_begins ? 3'd0 : report_status;
    g_pair <= f_begins ? move_pair : report_pair;
    g_peer <= f_begins ? move_peer : report_peer;
    g_primitive <= f_begins ? move_primitive : report_primitive;
    g_tail_bytes <= f_begins ? move_tail_bytes : '0;
    g_tail <= f_begins ? move_tail : '0;
    g_total <= f_begins ? move_total : '0;
    g_address <= f_begins ? move_descriptor : report_address;
  end
  if (chooses) begin
    g_next   <= chosen + function_t'(1);
    g_passed <= g_passed + steps_t'(1);
    g_chose  <= 1'b1;
  end
  if (!f_waits || (chooses && chosen == who)) g_passed <= '0;
  if (f_enters) g_owed <= 1'b1;
  else if (!own && upload_valid && (event_ready || lacks_ring || lacks_place)) g_owed <= 1'b0;
  g_dropped <= g_dropped + DroppedWidth'(f_drops);
  if (rst) begin
    {g_began, g_left, g_used, g_next, g_passed, g_chose, g_owed, g_dropped} <= '0;
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // An operation or a report enters exactly if its function has a place, operations first. It
    // gets a place that nobody has. No function has more than its own.
    if (move_function == who) begin
      p_ready :
      assert (move_ready == (32'(f_count) != Depth) && move_place == {who, index_t'(g_began)});
    end
    if (report_function == who) begin
      p_report :
      assert (report_ready == (32'(f_count) != Depth && !(move_valid && move_ready)));
    end
    if (f_enters_it) p_free : assert (!g_used);
    p_bound : assert (32'(f_count) <= Depth);
    p_room : assert (32'(room[who]) == Depth - 32'(f_count));

    if (own) begin
      // An own event is that of the oldest operation of its function, which is done. It says what
      // that was, and how it ended, in the ring of its queue pair.
      p_valid : assert (event_valid);
      if (offered == who) begin
        // shows: C-13
        p_there : assert (f_count != '0);
        if (f_oldest) begin
          p_done : assert (g_done);
          p_same : assert (event_record == f_record);
          p_ring : assert (event_ring == {who, g_pair, 1'b0});
        end
      end
      // Meanwhile the ring of an upload seems full, and never closed.
      p_hidden : assert (!upload_ready && !upload_lacks_ring && upload_lacks_place);
    end else begin
      // In all other cycles the port is that of the upload module.
      p_passes :
      assert (event_valid == upload_valid && event_ring == upload_ring
          && event_record == upload_record);
      p_hears :
      assert (upload_ready == event_ready && upload_lacks_ring == lacks_ring
          && upload_lacks_place == lacks_place);
    end

    // An operation that is done is chosen if the port is idle, in turn, after all others at most.
    if (f_waits && !offers) p_work : assert (chooses);
    if (!g_chose && f_waits && who == '0 && chooses) p_starts : assert (chosen == '0);
    if (f_waits && chooses) p_turn : assert (f_chosen_steps <= f_who_steps);
    if (f_waits) p_fair : assert (32'(g_passed) < Functions);
    // It is offered until it enters or lacks something, unless it is the upload module's turn. That
    // one's turn comes whenever an own event has entered: neither waits for two of the other.
    p_own : assert (own == (offers && !(g_owed && upload_valid)));
    if (!$past(rst)) begin
      if ($past(chooses)) p_offers : assert (offers && offered == $past(chosen));
      if ($past(offers && !(own && (event_ready || lacks_ring || lacks_place)))) begin
        p_stays : assert (offers && offered == $past(offered));
      end
      // What ends lets the upload module have the port, and the next function.
      if ($past(own && (event_ready || lacks_ring || lacks_place))) p_lets : assert (!own);

      // What is dropped is told and counted, and nothing else.
      p_told : assert (dropped_valid == $past(f_drops));
      if (dropped_valid) p_names : assert (dropped_function == $past(offered));
    end
    p_counts : assert (dropped == g_dropped);

    // So that induction needs no bound.
    i_counts : assert (began[who] == g_began && left[who] == g_left);
    i_used : assert (g_used == (32'(index_t'(what - index_t'(g_left))) < 32'(f_count)));
    if (g_used) begin
      i_place : assert (is_done[{who, what}] == g_done && failed[{who, what}] == g_failed);
      i_word :
      assert (f_words[{who, what}] == {g_status, g_pair, g_peer, g_primitive, g_tail_bytes, g_tail,
              g_total, g_address});
    end
    if (offers && offered == who) begin
      i_there : assert (f_count != '0);
      if (f_oldest) i_offered : assert (g_done && word == f_words[{who, what}]);
    end
    if (!g_chose) i_first : assert (g_next == '0);
    i_owed : assert (yields == g_owed);
    i_pointer : assert (f_from_pointer == {Functions{1'b1}} << g_next);
    if (f_waits) i_passed : assert (32'(g_passed) + 32'(f_who_steps) < Functions);
  end
end
