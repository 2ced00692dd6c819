// What is proved of `key_window`, without bound, by k-induction.
//
// A shadow sees the ports only. It follows the key of one queue pair and the window of one
// function, both chosen freely, as the host has set them. Nothing is assumed: anything may be
// written and asked at any time.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *)logic [PairWidth-1:0] pair;
(* anyconst *)logic [FunctionWidth-1:0] one;

// ---- The key, and the window: its first byte, and the one behind its last.

logic g_has_key, g_has_window;
logic [KeyWidth-1:0] g_key;
end_t g_begin, g_end;

wire f_sets_key = host_valid && !host_window && host_pair == pair;
wire f_window_one = host_valid && host_window && host_function == one;
// The whole sum: it may be nearly thrice all of memory.
wire [AddressWidth+1:0] f_begin = {2'b00, host_base, PageShift'(0)};
wire [AddressWidth+1:0] f_end = f_begin + {1'b0, host_pages, PageShift'(0)};
wire f_fits = f_end <= {2'b01, AddressWidth'(0)};
wire f_sets_window = f_window_one && f_fits;

wire f_key = g_has_key && packet_key == g_key;
wire f_get_key = g_has_key && get_key == g_key;
wire end_t f_target = {1'b0, target_address};
wire end_t f_source = {1'b0, source_address};
// Bytes from there to the end of the window.
wire end_t f_target_room = g_end - f_target;
wire end_t f_source_room = g_end - f_source;
wire f_target_in = g_has_window && f_target >= g_begin && f_target <= g_end
    && end_t'(target_length) <= f_target_room;
wire f_source_in = g_has_window && f_source >= g_begin && f_source <= g_end
    && end_t'(source_length) <= f_source_room;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (f_sets_key) begin
    g_has_key <= host_opens;
    g_key <= host_key;
  end
  if (f_sets_window) begin
    g_has_window <= host_pages != '0;
    g_begin <= end_t'(f_begin);
    g_end <= end_t'(f_end);
  end
  if (rst) {g_has_key, g_has_window} <= '0;
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    if ($past(rst)) begin
      p_starts :
      assert ({packet_fits, packet_wrong, get_fits, get_wrong, target_fits, target_wrong,
               source_fits, source_wrong} == '0
          && wrong_packets == '0 && wrong_targets == '0 && !refused);
    end else begin
      // A packet fits exactly if its queue pair has a key, and it carries that.
      if ($past(packet_valid && packet_pair == pair)) begin
        p_key : assert (packet_fits == $past(f_key));
      end
      // So does a GET, in the same cycle.
      if ($past(get_valid && get_pair == pair)) begin
        p_get : assert (get_fits == $past(f_get_key));
      end
      // Bytes fit exactly if their function has a window, and all of them lie in it.
      if ($past(target_valid && target_function == one)) begin
        p_target : assert (target_fits == $past(f_target_in));
      end
      if ($past(source_valid && source_function == one)) begin
        // shows: C-39
        p_source : assert (source_fits == $past(f_source_in));
      end
      // What is asked fits or is wrong; nothing else is answered.
      p_packet_answer :
      assert (packet_wrong == ($past(packet_valid) && !packet_fits)
          && (!packet_fits || $past(packet_valid)));
      p_get_answer :
      assert (get_wrong == ($past(get_valid) && !get_fits) && (!get_fits || $past(get_valid)));
      p_target_answer :
      assert (target_wrong == ($past(target_valid) && !target_fits)
          && (!target_fits || $past(target_valid)));
      p_source_answer :
      assert (source_wrong == ($past(source_valid) && !source_fits)
          && (!source_fits || $past(source_valid)));
      // What is wrong is counted, and nothing else.
      p_packets :
      assert (wrong_packets == $past(wrong_packets) + CountWidth'(packet_wrong)
          + CountWidth'(get_wrong));
      p_targets : assert (wrong_targets == $past(wrong_targets) + CountWidth'(target_wrong));
      // A window behind the last address is refused, and nothing else.
      if ($past(f_window_one)) p_refused : assert (refused == !$past(f_fits));
      if (!$past(host_valid && host_window)) p_quiet : assert (!refused);
    end

    // So that induction needs no bound.
    i_key : assert (has_key[pair] == g_has_key);
    if (g_has_key) i_keys : assert (key_of[pair] == g_key);
    i_window : assert (has_window[one] == g_has_window);
    if (g_has_window) begin
      i_begin : assert ({1'b0, base_of[one], PageShift'(0)} == g_begin);
      i_end : assert ({end_of[one], PageShift'(0)} == g_end);
    end
  end
end
