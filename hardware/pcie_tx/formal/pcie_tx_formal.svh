// What is proved of `pcie_tx`, without bound, by k-induction.
//
// A shadow sees the ports only. It knows which TLP is offered, which beat of it, and the last two
// beats of data that were taken, and finds each DW by its number. It follows one sender, chosen
// freely. Of writes it is assumed that all but the data is the same for all beats, and that the
// last one has the last byte. Nothing else is: anything may be asked for, and the link may be busy
// for ever.

typedef logic [13:0] count_t;

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *) logic [1:0] who;
always_comb assume (who <= 2'd2);

// ---- What is taken.

// Beats of the write that were taken, and what was the same for all of them.
count_t g_taken;
logic [AddressWidth-1:0] g_write_address;
logic [SizeWidth-1:0] g_write_bytes;
logic [FunctionWidth-1:0] g_write_function;

wire count_t f_write_end = 14'(write_address[3:0]) + 14'(write_bytes);
wire count_t f_write_beats = (f_write_end == '0) ? 14'd1 : (f_write_end + 14'd15) / 14'd16;
always_comb begin
  if (write_valid) assume (write_last == (g_taken + 14'd1 == f_write_beats));
  if (write_valid && g_taken != '0) begin
    assume (write_address == g_write_address && write_bytes == g_write_bytes);
    assume (write_function == g_write_function);
  end
end

wire f_read = read_valid && read_ready;
wire f_write = write_valid && write_ready;
wire f_answer = answer_valid && answer_ready;
wire bits_t f_served = {f_answer, f_write, f_read};
wire bits_t f_ready = {answer_ready, write_ready, read_ready};
wire bits_t f_asks = {answer_valid, write_valid, read_valid && read_credit};
wire f_begins = f_served != '0 && g_taken == '0;

// It lies in a page, and has bytes, and not too many.
function automatic logic is_legal(input logic [11:0] in_page, input count_t length,
                                  input count_t most);
  is_legal = length != '0 && length <= most && 14'(in_page) + 14'(length) <= 14'd4096;
endfunction
wire f_read_fits = is_legal(read_address[11:0], 14'(read_bytes), 14'(MaxRead));
wire f_write_fits = is_legal(write_address[11:0], 14'(write_bytes), 14'(MaxPayload));

// ---- What is offered: which TLP, and which beat of it. The last beats of data, and the number of
// the last one.

logic g_offers, g_is_answer, g_is_write, g_refused;
count_t g_at, g_number;
logic [63:0] g_address;
count_t g_bytes;
logic [15:0] g_sender;
logic [7:0] g_tag;
logic [127:0] g_data, g_data_before;
logic [95:0] g_answer;
logic g_answer_has_data;
logic [31:0] g_answer_data;

wire g_long = !g_is_answer && (g_address >> 32) != '0;
wire count_t g_header = g_long ? 14'd4 : 14'd3;
wire count_t g_from = 14'(g_address[1:0]);
wire count_t g_dwords = g_is_answer ? 14'(g_answer_has_data) : (g_from + g_bytes + 14'd3) / 14'd4;
wire count_t g_payload = (g_is_write || g_is_answer) ? g_dwords : '0;
wire count_t g_total = g_header + g_payload;
wire g_ends = 14'd4 * (g_at + 14'd1) >= g_total;
// All beats of the write were taken, and a beat of the TLP is left.
wire g_due = g_offers && g_is_write && !g_ends && g_taken == '0;
wire f_free = !g_offers || out_ready;
wire f_can = f_free && !g_due;

// Which bytes of the first and of the last DW are meant.
logic [3:0] g_first, g_last;
always_comb begin
  for (int unsigned byte_at = 0; byte_at < 4; byte_at++) begin
    g_first[byte_at] = 14'(byte_at) >= g_from && 14'(byte_at) < g_from + g_bytes;
    g_last[byte_at] = g_dwords != 14'd1
        && 14'd4 * (g_dwords - 14'd1) + 14'(byte_at) < g_from + g_bytes;
  end
end

// A DW of the header, most significant byte first.
function automatic dword_t head(input count_t number);
  if (g_is_answer) begin
    head = (number == '0) ? g_answer[95:64] : (number == 14'd1) ? g_answer[63:32] : g_answer[31:0];
  end else begin
    case (number)
      14'd0:   head = {1'b0, g_is_write, g_long, 19'b0, g_dwords[9:0]};
      14'd1:   head = {g_sender, g_tag, g_last, g_first};
      14'd2:   head = g_long ? g_address[63:32] : {g_address[31:2], 2'b0};
      default: head = {g_address[31:2], 2'b0};
    endcase
  end
endfunction

// ---- Turns.

logic [1:0] g_next;
logic [2:0] g_passed;
logic f_other_first;
logic [2:0] f_who_steps, f_server_steps;
logic [1:0] f_server;
always_comb begin
  f_server = f_answer ? 2'd2 : f_write ? 2'd1 : 2'd0;
  f_who_steps = 3'(who) - 3'(g_next);
  f_server_steps = 3'(f_server) - 3'(g_next);
  if (who < g_next) f_who_steps += 3'd3;
  if (f_server < g_next) f_server_steps += 3'd3;
  f_other_first = 1'b0;
  for (int unsigned step = 0; step < 3; step++) begin
    if (step < 32'(f_who_steps) && f_asks[(32'(g_next)+step)%3]) f_other_first = 1'b1;
  end
end

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (f_free) begin
    g_offers <= g_due || f_answer || (f_read && f_read_fits) || (f_write && f_write_fits);
    if (g_due || f_served != '0) g_at <= f_begins ? '0 : g_at + 14'd1;
  end
  g_refused <= (f_read && !f_read_fits) || (f_write && write_last && !f_write_fits);
  if (f_served != '0) begin
    g_is_answer <= f_answer;
    g_is_write <= f_write;
    g_address <= 64'(f_write ? write_address : read_address);
    g_bytes <= 14'(f_write ? write_bytes : read_bytes);
    g_sender <= {device, f_write ? write_function : read_function};
    g_tag <= f_write ? 8'd0 : 8'(read_tag);
    g_answer <= {
      1'b0, answer_has_data, 6'h0a, 1'b0, answer_class, 1'b0, answer_attributes[2], 4'b0,
      answer_attributes[1:0], 2'b0, 9'b0, answer_has_data,
      device, answer_function, answer_status, 1'b0, answer_count,
      answer_requester, answer_tag, 1'b0, answer_lower
    };
    g_answer_has_data <= answer_has_data;
    g_answer_data <= answer_data;
  end
  if (f_write) begin
    g_taken <= write_last ? '0 : g_taken + 14'd1;
    g_number <= g_taken;
    {g_data_before, g_data} <= {g_data, write_data};
    g_write_address <= write_address;
    g_write_bytes <= write_bytes;
    g_write_function <= write_function;
  end
  if (f_begins) begin
    g_next   <= (f_server == 2'd2) ? 2'd0 : f_server + 2'd1;
    g_passed <= g_passed + 3'd1;
  end
  if (!f_asks[who] || f_served[who]) g_passed <= '0;
  if (rst) begin
    {g_offers, g_refused, g_taken, g_next, g_passed} <= '0;
  end
end

// ---- A DW of the beat that is offered, chosen freely.

(* anyconst *) logic [1:0] lane;
wire dword_t f_dword = out_data[32*lane+:32];
wire count_t f_place = 14'd4 * g_at + 14'(lane);
// Where it came in, in DWs from the beginning of the write's first beat.
wire count_t f_came = f_place - g_header + 14'(g_address[3:2]);
wire count_t f_came_beat = f_came / 14'd4;

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // What is taken is offered once, and stays until it leaves.
    p_offers : assert (out_valid == g_offers);
    if (g_offers) begin
      // A TLP has as many DWs as its header says.
      p_ends : assert (out_last == g_ends);
      p_length : assert (out_empty == (g_ends ? 2'(14'd4 * (g_at + 14'd1) - g_total) : 2'd0));
      if (f_place < g_header) begin
        // The header of a request has its bytes, and that of an answer what it was given.
        if (!g_is_answer) p_request : assert (turned(f_dword) == head(f_place));
        if (g_is_answer) p_answer : assert (turned(f_dword) == head(f_place));
      end else if (f_place < g_total) begin
        // Each DW of the payload stands where it belongs.
        if (g_is_answer) p_data : assert (f_dword == g_answer_data);
        if (g_is_write) begin
          i_near : assert (f_came_beat == g_number || f_came_beat + 14'd1 == g_number);
          p_payload :
          assert (f_dword == ((f_came_beat == g_number) ? g_data[32*f_came[1:0]+:32]
                                                        : g_data_before[32*f_came[1:0]+:32]));
        end
      end
    end
    // What cannot be a TLP is told, and nothing else.
    p_refused : assert (refused == g_refused);

    // One is taken at most, only if there is room, and none between the beats of a write.
    p_one : assert ((f_served & (f_served - bits_t'(1))) == '0);
    if (f_served != '0) p_free : assert (f_can);
    if (g_taken != '0) p_whole : assert (!f_read && !f_answer);
    // The host has room for each read that is taken.
    if (f_read) p_credit : assert (read_credit);
    // A sender is ready exactly if there is room, and no other one before it asks.
    p_ready :
    assert (f_ready[who] == (f_can
        && (g_taken != '0 ? who == 2'd1 : !f_other_first) && (who != 2'd0 || read_credit)));
    // Nothing waits for an idle link.
    if (f_can && (g_taken != '0 ? write_valid : f_asks != '0)) p_work : assert (f_served != '0);
    // Reads go first. Then the next one that asks does, cyclically.
    if ($past(rst) && f_asks[0]) p_starts : assert (f_read);
    if (f_begins && f_asks[who]) p_turn : assert (f_server_steps <= f_who_steps);
    // So two TLPs of others at most go before one that waits.
    if (f_asks[who]) p_fair : assert (g_passed < 3'd3);

    // So that induction needs no bound.
    i_next : assert (g_next <= 2'd2);
    for (int unsigned each = 0; each < 3; each++) begin
      assert (f_from_pointer[each] == 3'b111 << g_next);
    end
    i_passed : assert (32'(g_passed) + 32'(f_who_steps) < 3);
    i_mid : assert (mid == (g_taken != '0) && tail == g_due);
    if (g_taken != '0) begin
      i_held : assert (held == g_data && g_number + 14'd1 == g_taken);
      i_beats : assert (g_taken < (14'(g_write_address[3:0]) + 14'(g_write_bytes) + 14'd15) / 14'd16);
      if (is_legal(g_write_address[11:0], 14'(g_write_bytes), 14'(MaxPayload))) begin
        i_at : assert (g_at + 14'd1 == g_taken && g_is_write && !g_is_answer);
        i_same :
        assert (g_address == 64'(g_write_address) && g_bytes == 14'(g_write_bytes));
      end else i_none : assert (!g_offers);
    end
    if (g_offers && !g_is_write) i_one : assert (g_at == '0 && g_ends);
    if (g_offers) i_bound : assert (g_at < 14'd512 && 14'd4 * g_at < g_total);
    if (g_offers && g_is_write) i_kind : assert (!g_is_answer);
    if (g_offers && g_is_write)
      i_legal : assert (is_legal(g_address[11:0], g_bytes, 14'(MaxPayload)));
    if (g_offers && g_is_write && g_taken == '0 && !g_ends) begin
      i_tail : assert (held == g_data && g_number == g_at);
      i_came : assert (14'd16 * (g_number + 14'd1) >= 14'(g_address[3:0]) + g_bytes);
      i_count : assert (tail_count == 2'(g_total));
      i_shift : assert (14'(tail_shift) == g_header - 14'(g_address[3:2]));
      i_last : assert (g_total <= 14'd4 * (g_at + 14'd2));
    end
  end
end
