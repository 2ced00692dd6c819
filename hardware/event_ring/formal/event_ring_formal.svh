// What is proved of `event_ring`, without bound, by k-induction.
//
// A shadow sees the ports only. It follows one ring and in it one record, both chosen freely: what
// software has read, what stands in host memory, and what is on its way there. Software, events and
// the receiver of the writes are free: any count may come at any time.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

(* anyconst *)ring_t one;
(* anyconst *)count_t chosen;

// ---- The ring as software sees it.

logic g_open;
base_t g_base;
count_t g_entries;
// The count that software reported last, and its position: the next record that it reads, and the
// phase by which it tells that this is new.
count_t g_consumed, g_read;
logic g_read_phase;
// Where the next event goes; events that entered and were not reported.
count_t g_next, g_unread;
// Software has reported only what had left.
logic g_honest;
// An event stands at the chosen record that was not reported. The phase there in host memory.
logic g_keeps, g_memory;

// ---- The write at the output: there is one; it is for the followed ring, which was not opened
// anew since; where it must go.

logic g_holds, g_ours;
base_t g_out_base;
count_t g_out_index, g_out_entries;
ring_t g_out_ring;
logic [EventWidth-2:0] g_out_event;

wire f_opens_one = host_valid && host_opens && host_ring == one;
wire [BaseWidth:0] f_behind = {1'b0, host_base} + (BaseWidth + 1)'(host_count);
wire f_fits = !f_behind[BaseWidth] || f_behind[BaseWidth-1:0] == '0;
wire f_begins = f_opens_one && f_fits;
wire count_t f_news = host_count - g_consumed;
wire f_reports_one = host_valid && !host_opens && host_ring == one;
wire f_reports = f_reports_one && g_open && f_news <= g_unread;
wire f_enters = in_valid && in_ready;
wire f_enters_one = f_enters && in_ring == one;
wire f_leaves = out_valid && out_ready;
// Events of the ring that are not reported and have left.
wire count_t f_there = g_unread - count_t'(g_holds && g_ours);
// Records from the next one that software reads to the chosen one.
wire count_t f_distance = (chosen >= g_read) ? chosen - g_read : chosen + g_entries - g_read;
wire [CountWidth:0] f_read = {1'b0, g_read} + {1'b0, f_news};
wire f_read_wraps = f_read >= {1'b0, g_entries};

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  g_holds <= f_enters || (g_holds && !out_ready);
  if (f_enters) begin
    g_ours <= in_ring == one;
    g_out_base <= g_base;
    g_out_index <= g_next;
    g_out_entries <= g_entries;
    g_out_ring <= in_ring;
    g_out_event <= in_event;
  end
  if (f_leaves && g_ours && g_out_index == chosen) g_memory <= out_event[EventWidth-1];
  if (f_enters_one) begin
    g_next <= (g_next + count_t'(1) == g_entries) ? '0 : g_next + count_t'(1);
    if (g_next == chosen) g_keeps <= 1'b1;
  end
  if (f_reports) begin
    g_consumed <= host_count;
    g_read <= count_t'(f_read_wraps ? f_read - {1'b0, g_entries} : f_read);
    g_read_phase <= g_read_phase ^ f_read_wraps;
    if (f_distance < f_news) g_keeps <= 1'b0;
    if (f_news > f_there) g_honest <= 1'b0;
  end
  g_unread <= g_unread + count_t'(f_enters_one) - (f_reports ? f_news : '0);
  // Memory is zeroed before. What is still on its way goes to the ring that was there.
  if (f_begins) begin
    g_open <= host_count != '0;
    g_base <= host_base;
    g_entries <= host_count;
    {g_consumed, g_read, g_next, g_unread} <= '0;
    g_read_phase <= 1'b1;
    g_honest <= 1'b1;
    {g_keeps, g_memory, g_ours} <= '0;
  end
  if (rst) {g_open, g_holds} <= '0;
end

// ---- For induction: what will stand at the chosen record, and the position behind all events.

wire f_comes = g_holds && g_ours && g_out_index == chosen;
wire f_memory = f_comes ? out_event[EventWidth-1] : g_memory;
wire [CountWidth:0] f_next = {1'b0, g_read} + {1'b0, g_unread};
wire f_next_wraps = f_next >= {1'b0, g_entries};
wire f_lap = g_read_phase ^ f_next_wraps;

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // An event enters exactly if its ring is open and has a free record, no ring is opened, and the
    // output is free. What lacks is named.
    if (in_ring == one) begin
      p_ready :
      assert (in_ready == (g_open && g_unread != g_entries && !(host_valid && host_opens)
              && (!out_valid || out_ready)));
      p_lacks :
      assert (lacks_ring == !g_open && lacks_place == (g_open && g_unread == g_entries));
    end
    if (ask_ring == one) p_room : assert (ask_room == (g_open ? g_entries - g_unread : '0));

    if (g_open) begin
      // No more events wait for software than the ring has records, and none is overwritten.
      p_bound : assert (g_unread <= g_entries);
      // shows: C-16
      if (f_enters_one && g_next == chosen) p_kept : assert (!g_keeps);
    end

    if (out_valid) begin
      // Events of a ring go to one record after the other, and not beyond their ring.
      if (g_ours) begin
        // shows: C-15
        p_address : assert (out_address == {g_out_base + base_t'(g_out_index), OffsetWidth'(0)});
        p_inside :
        assert (out_address[AddressWidth-1:OffsetWidth] >= g_out_base
            && out_address[AddressWidth-1:OffsetWidth] - g_out_base < base_t'(g_out_entries));
      end
      // All of an event but its phase is as it came.
      p_same : assert (out_event[EventWidth-2:0] == g_out_event);
      p_ring : assert (out_ring == g_out_ring);
      // Each event changes the phase of its record.
      if (g_ours && g_out_index == chosen) begin
        p_phase : assert (out_event[EventWidth-1] == !g_memory);
      end
    end
    // So software sees its next record as new exactly if an event has left to it.
    if (g_open && g_honest && g_read == chosen) begin
      p_reader : assert ((g_memory == g_read_phase) == (f_there != '0));
    end

    // What enters is offered in the next cycle, until it is taken; nothing else is.
    p_offered : assert (out_valid == g_holds);
    if (!$past(rst)) begin
      if ($past(out_valid && !out_ready)) begin
        p_stays :
        assert (out_valid && out_address == $past(out_address) && out_event == $past(out_event));
      end
      // A report of what was not written, one to a closed ring, and a ring behind the last address
      // are refused, and nothing else.
      if ($past(host_valid && host_ring == one)) begin
        p_refused : assert (refused == !$past(f_begins || f_reports));
      end
      if (!$past(host_valid)) p_quiet : assert (!refused);
    end

    // So that induction needs no bound.
    i_open : assert (is_open[one] == g_open);
    if (g_open) begin
      i_ring : assert (base_of[one] == g_base && entries_of[one] == g_entries);
      i_entries : assert (g_entries != '0 && g_read < g_entries && g_next < g_entries);
      i_end : assert ({1'b0, g_base} + (BaseWidth + 1)'(g_entries) <= End);
      i_consumed : assert (consumed_of[one] == g_consumed);
      i_written : assert (written_of[one] - g_consumed == g_unread);
      i_position : assert (position_of[one] == {f_lap, g_next});
      i_next :
      assert ({1'b0, g_next} == (f_next_wraps ? f_next - {1'b0, g_entries} : f_next));
      if (chosen < g_entries) begin
        i_keeps : assert (g_keeps == (f_distance < g_unread));
        i_memory : assert (f_memory == (f_lap ^ (chosen >= g_next)));
      end
      if (g_holds && g_ours) begin
        i_ours : assert (g_out_base == g_base && g_out_entries == g_entries);
        i_before :
        assert (g_next == ((g_out_index + count_t'(1) == g_entries) ? '0
                : g_out_index + count_t'(1)));
        i_honest : assert (!g_honest || g_unread != '0);
      end
    end
    if (g_holds && g_ours) begin
      i_index : assert (g_out_index < g_out_entries);
      i_inside : assert ({1'b0, g_out_base} + (BaseWidth + 1)'(g_out_entries) <= End);
    end
  end
end
