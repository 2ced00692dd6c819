// What is proved of `pcie_rx`, without bound, by k-induction.
//
// A shadow sees the ports only. It keeps the header of the TLP that comes and the last two beats,
// and finds each DW by its number. It follows one tag, one lane and one DW of the payload, all
// chosen freely. Nothing is assumed: any beat may come at any time, any read may leave, and
// requests may wait for ever.

typedef logic [11:0] count_t;

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *)logic [TagWidth-1:0] what;
(* anyconst *)logic [ 1:0] lane;

// ---- Where the last read of the followed tag ends, if it had one.

logic g_known;
logic [6:0] g_end;

// ---- The TLP that comes: its first beat, beats that have come, and whether it was the followed
// tag's read that had been sent when it began. The last two beats.

logic g_mid, g_begun_known;
logic [6:0] g_begun_end;
logic [127:0] g_head, g_data, g_data_before;
// Beats that have come, up to more than a TLP can have.
count_t g_beats;

// The first beat, and beats with that of this cycle.
wire f_takes = in_valid && in_ready;
wire [127:0] f_head = g_mid ? g_head : in_data;
wire count_t f_beats = g_mid ? g_beats + count_t'(g_beats != '1) : 12'd1;

// A byte of the header.
function automatic logic [7:0] sent(input logic [127:0] head, input logic [3:0] number);
  sent = head[8*number+:8];
endfunction

function automatic logic [10:0] length_of(input logic [127:0] head);
  length_of = {3'b0, head[31:24]} + {1'b0, head[17:16], 8'b0};
  if (length_of == '0) length_of = 11'd1024;
endfunction

function automatic count_t header_of(input logic [127:0] head);
  header_of = head[5] ? 12'd4 : 12'd3;
endfunction

function automatic count_t total_of(input logic [127:0] head);
  total_of = header_of(head) + (head[6] ? 12'(length_of(head)) : 12'd0);
endfunction

// The byte that holds the address's low bits is the last one of the header.
function automatic logic [63:0] address_of(input logic [127:0] head);
  if (head[5]) begin
    address_of = {
      sent(head, 4'd8), sent(head, 4'd9), sent(head, 4'd10), sent(head, 4'd11),
      sent(head, 4'd12), sent(head, 4'd13), sent(head, 4'd14), sent(head, 4'd15)
    };
  end else begin
    address_of = {
      32'b0, sent(head, 4'd8), sent(head, 4'd9), sent(head, 4'd10), sent(head, 4'd11)
    };
  end
endfunction

// ---- What a TLP is.

function automatic logic of_store(input logic [127:0] head);
  of_store = (head[7:0] == 8'h40 || head[7:0] == 8'h60)
      && (address_of(head) >> WindowWidth) == 64'(base);
endfunction

function automatic logic of_asker(input logic [127:0] head);
  case (head[7:0])
    8'h00, 8'h20: of_asker = 1'b1;
    default:
    of_asker = !head[7] && (head[4:0] == 5'd1 || head[4:0] == 5'd2 || head[4:0] == 5'd4
        || head[4:0] == 5'd5 || head[4:0] == 5'd12 || head[4:0] == 5'd13 || head[4:0] == 5'd14
        || head[4:0] == 5'd27);
  endcase
endfunction

function automatic logic [12:0] lacks_of(input logic [127:0] head);
  lacks_of = {1'b0, head[51:48], head[63:56]};
  if (lacks_of == '0) lacks_of = 13'd4096;
endfunction

// Bytes of its DWs behind the first one that is meant.
function automatic logic [12:0] room_of(input logic [127:0] head);
  room_of = 13'(length_of(head)) * 13'd4 - 13'(head[89:88]);
endfunction

// It is for this interface and of a tag that there is.
function automatic logic of_mine(input logic [127:0] head);
  of_mine = {sent(head, 4'd8), sent(head, 4'd9)} >> FunctionWidth == 16'(device)
      && 32'(head[87:80]) < 2 ** TagWidth;
endfunction

// A piece that its read can lack: it begins where the end of the read says, and has no DW too many.
function automatic logic of_piece(input logic [127:0] head, input logic [6:0] its_end);
  of_piece = head[7:0] == 8'h4a && of_mine(head) && head[55:53] == 3'd0
      && 7'(13'(head[94:88]) + lacks_of(head)) == its_end
      && 14'(room_of(head)) < 14'(lacks_of(head)) + 14'd4;
endfunction

function automatic logic of_failure(input logic [127:0] head, input logic [6:0] its_end);
  of_failure = of_mine(head) && ((head[7:0] == 8'h0a && head[55:53] != 3'd0)
      || (of_piece(head, its_end) && head[22] && room_of(head) >= lacks_of(head)));
endfunction

function automatic logic of_good(input logic [127:0] head, input logic [6:0] its_end);
  of_good = of_piece(head, its_end) && !head[22];
endfunction

// DWs by which its payload moves towards the beginning.
function automatic count_t moves_of(input logic [127:0] head);
  if (of_store(head)) moves_of = header_of(head) - count_t'(address_of(head) >> 2 & 64'd3);
  else moves_of = 12'd3 - count_t'(head[91:90]);
endfunction

// Of a completion only those with the followed tag are looked at: `f_end` is its read's.
wire f_is_what = f_head[87:80] == 8'(what);
wire f_known = g_mid ? g_begun_known : g_known;
wire [6:0] f_end = g_mid ? g_begun_end : g_end;
wire f_is_store = of_store(f_head);
wire f_is_completion = f_head[7:0] == 8'h4a || f_head[7:0] == 8'h0a;
wire f_followed = !f_is_completion || (f_is_what && f_known) || !of_mine(f_head);
wire f_is_piece = of_good(f_head, f_end);
wire f_fails = of_failure(f_head, f_end);
wire f_asks = of_asker(f_head);

// DWs that came up to this beat, and whether these are those that the header says.
wire count_t f_came = 12'd4 * f_beats - count_t'(in_empty);
wire f_is_right = f_beats < 12'd300 && f_came == total_of(f_head);

// ---- What must leave. The beat that was taken last was the last one of its TLP, which had as many
// DWs as its header says; a TLP ended in the cycle before; beats of it are at the outputs.

logic g_right, g_followed, g_ended, g_asks, g_out, g_out_tail;
logic [DroppedWidth-1:0] g_dropped;
logic [DeviceWidth-1:0] g_device;
logic [63-WindowWidth:0] g_base;
always_comb if (past_reset) assume (device == g_device && base == g_base);

// Nothing is taken, and no request waits: last DWs make a beat of their own.
wire f_tail = !in_ready && !request_valid;

wire g_is_store = of_store(g_head);
wire g_is_piece = of_good(g_head, g_begun_end);
wire g_fails = of_failure(g_head, g_begun_end);
wire g_is_asker = of_asker(g_head);
wire count_t g_total = total_of(g_head);
wire count_t g_moves = moves_of(g_head);
// Beats that it has at the outputs, by its header; those that it came with.
wire count_t g_leaves = (g_total - g_moves + 12'd3) >> 2;
wire count_t g_comes = (g_total + 12'd3) >> 2;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_device   <= device;
  g_base     <= base;
  if (read_valid && read_tag == what) begin
    g_known <= 1'b1;
    g_end   <= read_end;
  end
  if (f_takes) begin
    g_mid <= !in_last;
    g_head <= f_head;
    g_beats <= f_beats;
    g_begun_known <= f_known;
    g_begun_end <= f_end;
    {g_data_before, g_data} <= {g_data, in_data};
    g_right <= f_is_right;
    g_followed <= f_followed;
  end
  g_ended <= f_takes && in_last;
  g_asks <= (f_takes && in_last && f_asks && f_is_right) || (g_asks && !request_ready);
  g_out <= f_takes && g_mid && (f_is_store || f_is_piece);
  g_out_tail <= f_tail;
  if (dropped_valid) g_dropped <= g_dropped + DroppedWidth'(1);
  if (rst) begin
    {g_known, g_mid, g_ended, g_asks, g_out, g_out_tail} <= '0;
    g_dropped <= '0;
  end
end

// ---- The beat at the outputs, and the followed lane: where its DW came in.

wire f_leaves = completion_valid || store_valid;
wire count_t f_number = g_out_tail ? g_beats - 12'd1 : g_beats - 12'd2;
wire count_t f_place = 12'd4 * f_number + count_t'(lane) + g_moves;
wire [31:0] f_dword = out_data[32*lane+:32];

// ---- What a read of the host wants: from its first byte that is meant to its last one.

logic [12:0] f_first, f_behind;
always_comb begin
  f_first  = '0;
  f_behind = '0;
  for (int unsigned at = 0; at < 4; at++) begin
    if (g_head[56+3-at]) f_first = 13'(3 - at);
    if (length_of(g_head) == 11'd1 ? g_head[56+at] : g_head[60+at])
      f_behind = 13'(length_of(g_head)) * 13'd4 - 13'd3 + 13'(at);
  end
  // No byte is meant: one counts, as the standard has it.
  if (f_behind == '0) f_behind = 13'(length_of(g_head)) * 13'd4 - 13'd3;
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // Nothing is taken while a request waits, nor while last DWs leave; all else is at once.
    p_ready : assert (!in_ready || !request_valid);
    p_work : assert (in_ready || request_valid || g_ended);
    // A TLP that nobody gets whole is told as dropped, and each is counted once.
    if (g_ended && g_followed)
      p_dropped :
      assert (dropped_valid
          == (!g_right || !(g_is_store || g_is_piece || g_fails || g_is_asker)));
    if (!g_ended) p_silent : assert (!dropped_valid);
    p_counted : assert (dropped == g_dropped + DroppedWidth'(dropped_valid));

    // A request that wants an answer is told once, as it came, and stays until it is taken.
    p_asks : assert (request_valid == g_asks);
    // It stands there from its first beat on.
    if (request_valid || (g_mid && g_is_asker)) begin
      p_asker :
      assert (request_requester == {sent(g_head, 4'd4), sent(g_head, 4'd5)}
          && request_tag == sent(g_head, 4'd6)
          && request_class == g_head[14:12]
          && request_attributes == {g_head[10], g_head[21:20]});
      p_read :
      assert (request_is_read == (g_head[4:0] == 5'd0 && length_of(g_head) == 11'd1
          && (address_of(g_head) >> WindowWidth) == 64'(base)));
      if (g_head[4:0] == 5'd0) begin
        p_count :
        assert (request_address == {address_of(g_head) >> 2, 2'b0} % 2 ** WindowWidth
            && 13'(request_count) == (f_behind - f_first) % 13'd4096
            && request_lower == 7'({address_of(g_head) >> 2, 2'b0}) + 7'(f_first));
      end else p_other : assert (request_count == 12'd4 && request_lower == '0);
    end

    // Each beat of a completion and of a store leaves once: when the next one has come, or, if DWs
    // are left then, behind the last one.
    if (g_followed) begin
      p_leaves : assert (f_leaves == (g_out || g_out_tail));
      p_kind : assert (!(completion_valid && store_valid) && (!store_valid || g_is_store));
      if (g_ended && g_right)
        p_tail :
        assert (f_tail == (g_fails || ((g_is_store || g_is_piece) && g_leaves == g_comes)));
      if (f_leaves) p_last : assert (out_last == (g_out_tail || (g_ended && !f_tail)));
      // One that has other DWs than its header says has other beats, too.
      if (f_leaves && out_last && !g_right) p_whole : assert (f_number + 12'd1 != g_leaves);
      // Each DW stands on the lane of its address.
      if (f_leaves && !g_fails && f_place >= header_of(g_head) && f_place < g_total && g_right)
        p_data :
        assert (f_dword == (((f_place >> 2) + 12'd1 == g_beats)
            ? g_data[32*f_place[1:0]+:32] : g_data_before[32*f_place[1:0]+:32]));
    end
    if (completion_valid && g_followed) begin
      p_completion : assert (completion_tag == what && completion_failed == g_fails);
      p_lacks : assert (completion_remaining == lacks_of(g_head));
      if (!completion_failed)
        p_bytes :
        assert (completion_bytes
            == (room_of(g_head) < lacks_of(g_head) ? room_of(g_head) : lacks_of(g_head)));
    end
    if (store_valid) begin
      p_place : assert (store_address == {address_of(g_head) >> 2, 2'b0} % 2 ** WindowWidth);
      // A store has bytes only if all of its bytes are meant, and right.
      p_stored :
      assert (store_bytes == ((g_head[59:56] == 4'hf && !g_head[22]
          && (length_of(g_head) == 11'd1 || g_head[63:60] == 4'hf))
          ? 13'(length_of(g_head)) * 13'd4 : 13'd0));
    end
    if ($past(rst)) p_starts : assert (in_ready && !f_leaves && dropped == '0);

    // So that induction needs no bound.
    if (g_known) i_end : assert (end_of[what] == g_end);
    i_mid : assert (mid == g_mid && (!tail || (g_ended && !g_mid)) && !(tail && g_asks));
    if (g_mid || g_ended || g_out || g_out_tail || g_asks) begin
      i_beats : assert (g_beats != '0);
      i_followed :
      assert (g_followed == (!(g_head[7:0] == 8'h4a || g_head[7:0] == 8'h0a)
          || (g_head[87:80] == 8'(what) && g_begun_known) || !of_mine(g_head)));
    end
    if ((g_ended || g_out_tail) && g_right)
      i_right : assert (g_beats < 12'd300 && g_beats == g_comes);
    if (tail && g_followed && !g_fails && !g_right) i_whole : assert (g_beats != g_leaves);
    if (tail && g_followed && g_fails) i_fails : assert (g_right);
    if (tail && g_followed) i_sends : assert (g_is_store || g_is_piece || g_fails);
    if (g_mid || tail) begin
      i_held : assert (held == g_data && is_store == g_is_store);
      i_shift : assert (count_t'(shift) == g_moves || !(g_is_store || g_is_piece));
      i_tag : assert (tag == g_head[80+:TagWidth] && piece_remaining == lacks_of(g_head));
      i_place :
      assert (place == {address_of(g_head) >> 2, 2'b0} % 2 ** WindowWidth
          && stored == ((g_head[59:56] == 4'hf && !g_head[22]
          && (length_of(g_head) == 11'd1 || g_head[63:60] == 4'hf))
          ? 13'(length_of(g_head)) * 13'd4 : 13'd0));
      if (g_is_piece)
        i_bytes :
        assert (piece_bytes
            == (room_of(g_head) < lacks_of(g_head) ? room_of(g_head) : lacks_of(g_head)));
      if (g_followed)
        i_kind : assert (goes == (g_is_store || g_is_piece) && fails == g_fails);
      i_asks : assert (asks == g_is_asker);
    end
    if (g_mid) begin
      i_left :
      assert (12'(left) == ((g_beats >= 12'd300 || 12'd4 * g_beats >= g_total)
          ? 12'd0 : g_total - 12'd4 * g_beats));
      i_first : assert (g_beats != 12'd1 || g_head == g_data);
    end
  end
end
