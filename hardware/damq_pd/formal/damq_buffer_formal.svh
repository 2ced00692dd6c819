// What is proved of `damq_buffer`, without bound, by k-induction.
//
// A shadow remembers of each address whether it is in use, by which list, and which word of that
// list it has: its number, counted from reset. Properties speak of the shadow and of the ports.
// Invariants tie pointers, links, free lists, counters and flags to the shadow.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);
always_ff @(posedge clk) past_reset <= 1'b1;

// ---- The shadow.

localparam int unsigned Seq = 4;
logic [Words-1:0] g_used, g_last;
logic [Words-1:0][PortWidth:0] g_list;
logic [Words-1:0][Seq-1:0] g_seq;
logic [Words-1:0][TicketWidth-1:0] g_ticket;
logic [Words-1:0][Width-1:0] g_data;
// The numbers of the next word to leave, and to come.
logic [Lists-1:0][Seq-1:0] g_head, g_tail;
// DMA descriptors that came in full, of each port.
logic [PlacesF-1:0][TicketWidth-1:0] g_came;
// A descriptor that is being written, of each port.
logic [PlacesF-1:0] g_writes;
// Words that may come, of each way.
logic [AddressWidth:0] g_room_pio, g_room_dma;

wire [PortWidth:0] f_run_list = {run_port, run_way};
wire [PortWidth:0] f_put_list = {in_port, in_way};
wire [PortWidth:0] f_settle_list = {settle_port, settle_way};

always_ff @(posedge clk) begin
  if (rst) begin
    g_used <= '0;
    g_head <= '0;
    g_tail <= '0;
    g_came <= '0;
    g_writes <= '0;
    g_room_pio <= (AddressWidth + 1)'(Depth);
    g_room_dma <= (AddressWidth + 1)'(Landing);
  end else begin
    if (run) begin
      g_used[run_address] <= 1'b0;
      g_head[f_run_list]  <= g_head[f_run_list] + Seq'(1);
    end
    if (put) begin
      g_used[put_address] <= 1'b1;
      g_list[put_address] <= f_put_list;
      g_seq[put_address] <= g_tail[f_put_list];
      g_last[put_address] <= in_last;
      g_ticket[put_address] <= in_ticket;
      g_data[put_address] <= in_data;
      g_tail[f_put_list] <= g_tail[f_put_list] + Seq'(1);
    end
    if (word_valid && word_way && word_last) begin
      g_came[word_port] <= g_came[word_port] + TicketWidth'(1);
    end
    if (word_valid && !word_way) g_writes[word_port] <= !word_last;
    g_room_pio <= g_room_pio - (AddressWidth + 1)'(word_valid && !word_way)
        + (AddressWidth + 1)'(valid && !way);
    g_room_dma <= g_room_dma - (AddressWidth + 1)'(word_valid && word_way)
        + (AddressWidth + 1)'(valid && way);
  end
end

// ---- What processes and prefetcher promise.

always_comb begin
  // Credits: a word comes only if there is room.
  if (word_valid) assume (word_way ? g_room_dma != 0 : g_room_pio != 0);
  // A descriptor comes by DMA after its doorbell.
  if (word_valid && word_way) assume (g_came[word_port] != f_rung[word_port]);
  // A process ends a descriptor before it rings for another. Counters do not overtake themselves.
  if (bell_valid) begin
    assume (!g_writes[bell_port]);
    assume (f_rung[bell_port] - f_left[bell_port] < TicketWidth'(2 ** (TicketWidth - 1) - 1));
  end
end

// ---- The word whose turn it is in the list that is read.

logic f_found, f_found_last;
logic [Width-1:0] f_found_data;
logic [TicketWidth-1:0] f_found_ticket, f_found_ahead;
always_comb begin
  f_found = 1'b0;
  f_found_last = 1'b0;
  f_found_data = '0;
  f_found_ticket = '0;
  for (int unsigned a = 0; a < Words; a++) begin
    if (g_used[a] && g_list[a] == f_run_list && g_seq[a] == g_head[f_run_list]) begin
      f_found = 1'b1;
      f_found_last = g_last[a];
      f_found_data = g_data[a];
      f_found_ticket = g_ticket[a];
    end
  end
  f_found_ahead = f_left[run_port] - f_found_ticket;
end

// Of each port: the list whose turn it is by the shadow, and whether it has a whole descriptor.
logic [PlacesF-1:0] f_turn_dma, f_is_whole;
logic [PlacesF-1:0][TicketWidth-1:0] f_ahead;
logic [Lists-1:0][AddressWidth:0] f_lasts, f_words;
always_comb begin
  f_ahead = '0;
  f_lasts = '0;
  f_words = '0;
  for (int unsigned p = 0; p < PlacesF; p++) begin
    f_turn_dma[p] = 1'b1;
    for (int unsigned a = 0; a < Words; a++) begin
      if (g_used[a] && g_list[a] == {PortWidth'(p), 1'b0} && g_seq[a] == g_head[2*p]) begin
        f_ahead[p] = f_left[p] - g_ticket[a];
        f_turn_dma[p] = f_ahead[p][TicketWidth-1];
      end
    end
  end
  for (int unsigned l = 0; l < Lists; l++) begin
    for (int unsigned a = 0; a < Words; a++) begin
      if (g_used[a] && g_list[a] == (PortWidth + 1)'(l)) begin
        f_words[l] = f_words[l] + (AddressWidth + 1)'(1);
        if (g_last[a]) f_lasts[l] = f_lasts[l] + (AddressWidth + 1)'(1);
      end
    end
  end
  for (int unsigned p = 0; p < PlacesF; p++) begin
    f_is_whole[p] = f_lasts[2*p+32'(f_turn_dma[p])] != 0;
  end
end

wire f_settles_run = settle && !settle_way && settle_port == run_port;
wire [TicketWidth-1:0] f_kept_ahead =
    f_left[run_port] - (f_settles_run ? link.ticket : f_tickets[run_port]);

// ---- Properties.

logic f_selected, f_cut, f_cut_way, f_expect_last;
logic [PortWidth-1:0] f_cut_port;
logic [Width-1:0] f_expect_data;
always_ff @(posedge clk) begin
  f_selected <= selected && !rst;
  f_cut <= valid && !last && !rst;
  f_cut_port <= port;
  f_cut_way <= way;
  f_expect_last <= f_found_last;
  f_expect_data <= f_found_data;

  if (past_reset && !rst) begin
    // Under credits each word finds room.
    // shows: D-13
    p_overflow : assert (!overflow);
    // Every word is inside or its place is free: none is lost or doubled.
    // shows: D-03
    p_conserved :
    assert (inside_pio + free_pio == (AddressWidth + 1)'(Depth) &&
            inside_dma + free_dma == (AddressWidth + 1)'(Landing));
    // What is read is there, and what leaves is the next word of its list, as it came.
    if (run) p_exists : assert (f_found);
    // shows: D-02
    if (valid) p_same : assert (data == f_expect_data && last == f_expect_last);
    // Descriptors leave whole.
    // shows: D-06
    if (f_cut) p_whole : assert (valid && port == f_cut_port && way == f_cut_way);
    // A descriptor by PIO leaves when those by DMA before it have left, and one by DMA only if none
    // by PIO is due.
    if (run && f_selected) begin
      // shows: D-19
      p_ways : assert (run_way == f_turn_dma[run_port]);
    end
    // Nothing waits without need: with a whole descriptor whose turn it is, a ready output selects.
    if (ready && !run && !undecided && (f_is_whole != 0)) p_work : assert (selected);

`ifdef INVARIANTS
    for (int unsigned a = 0; a < Words; a++) begin
      if (g_used[a]) begin
        assert (g_list[a][0] == (a >= Depth));
        assert (Seq'(g_seq[a] - g_head[g_list[a]]) < Seq'(g_tail[g_list[a]] - g_head[g_list[a]]));
        assert (f_data[a] == g_data[a]);
        if (Seq'(g_seq[a] + Seq'(1)) == g_tail[g_list[a]]) begin
          assert (f_tails[g_list[a]] == AddressWidth'(a));
        end
        for (int unsigned b = 0; b < Words; b++) begin
          if (g_used[b] && g_list[a] == g_list[b]) begin
            if (a != b) assert (g_seq[a] != g_seq[b]);
            if (g_seq[b] == Seq'(g_seq[a] + Seq'(1))) begin
              assert (f_links[a] == {g_ticket[b], g_last[b], AddressWidth'(b)});
            end
            // Tickets do not fall from one word to the next.
            if (!g_list[a][0] && Seq'(g_seq[a] - g_head[g_list[a]]) <
                Seq'(g_seq[b] - g_head[g_list[a]])) begin
              assert (TicketWidth'(f_rung[g_list[a][PortWidth:1]] - g_ticket[a]) >=
                                 TicketWidth'(f_rung[g_list[a][PortWidth:1]] - g_ticket[b]));
            end
          end
        end
        if (!g_list[a][0]) begin
          assert (TicketWidth'(f_rung[g_list[a][PortWidth:1]] - g_ticket[a]) <=
              TicketWidth'(f_rung[g_list[a][PortWidth:1]] - f_left[g_list[a][PortWidth:1]]));
          if (in_valid && !in_way && in_port == g_list[a][PortWidth:1]) begin
            assert (TicketWidth'(f_rung[in_port] - g_ticket[a]) >=
                                  TicketWidth'(f_rung[in_port] - in_ticket));
          end
          // While a descriptor by DMA is read, no word by PIO of its port is due.
          if (run && run_way && run_port == g_list[a][PortWidth:1]) begin
            assert (g_ticket[a] != f_left[run_port]);
          end
        end
      end
    end
    for (int unsigned l = 0; l < Lists; l++) begin
      assert (f_words[l] == (AddressWidth + 1)'(Seq'(g_tail[l] - g_head[l])));
      assert (whole[l] <= Words);
      assert (occupied[l] == (g_tail[l] != g_head[l]));
      assert (whole[l] + (AddressWidth + 1)'(run && f_run_list == (PortWidth + 1)'(l)) ==
              f_lasts[l]);
    end
    for (int unsigned p = 0; p < PlacesF; p++) begin
      assert (TicketWidth'(f_rung[p] - f_left[p]) < TicketWidth'(2 ** (TicketWidth - 1)));
      assert (TicketWidth'(g_came[p] - f_left[p]) ==
          TicketWidth'(f_lasts[2*p+1]) +
          TicketWidth'(in_valid && in_way && in_last && in_port == PortWidth'(p)));
      assert (TicketWidth'(g_came[p] - f_left[p]) <= TicketWidth'(f_rung[p] - f_left[p]));
      assert (f_eligible[p] == (f_is_whole[p] && !(run && run_port == PortWidth'(p)) &&
                                !(undecided && settle_port == PortWidth'(p))));
      if (f_eligible[p]) assert (f_by_dma[p] == f_turn_dma[p]);
    end
    if (in_valid && !in_way) begin
      // What came by DMA before a word by PIO is counted in its ticket.
      assert (TicketWidth'(g_came[in_port] - f_left[in_port]) <=
              TicketWidth'(in_ticket - f_left[in_port]));
      assert (TicketWidth'(f_rung[in_port] - in_ticket) <=
                            TicketWidth'(f_rung[in_port] - f_left[in_port]));
      if (run && run_way && run_port == in_port) assert (in_ticket != f_left[in_port]);
    end
    // Where the head of each list is known from.
    for (int unsigned a = 0; a < Words; a++) begin
      if (g_used[a] && g_seq[a] == g_head[g_list[a]]) begin
        if (run && f_run_list == g_list[a]) begin
          assert (run_address == AddressWidth'(a) && run_last == g_last[a]);
        end else if (settle && f_settle_list == g_list[a]) begin
          assert (link == {g_ticket[a], g_last[a], AddressWidth'(a)});
        end else begin
          assert (f_heads[g_list[a]] == {g_last[a], AddressWidth'(a)});
          if (!g_list[a][0]) assert (f_tickets[g_list[a][PortWidth:1]] == g_ticket[a]);
        end
      end
    end
    if (run) assert (f_found && run_last == f_found_last);
    if (settle && !(run && f_run_list == f_settle_list)) begin
      assert (occupied[f_settle_list]);
    end
    // The ticket that is kept of a PIO list stays due while the list is read.
    if (run && !run_way) assert (!f_kept_ahead[TicketWidth-1]);
    // While a PIO head settles, no descriptor by DMA of its port is read: its ticket is known.
    if (settle && !settle_way && run && run_way) assert (run_port != settle_port);
    if (undecided) begin
      assert (settle && !settle_way && !(run && run_port == settle_port));
    end
    // Free addresses: in the FIFO, each once, or never used.
    assert (f_pio_fresh <= Depth && f_dma_fresh <= Landing);
    assert ((PioBits + 1)'(f_pio_written - f_pio_read) + (PioBits + 1)'(inside_pio) == f_pio_fresh &&
            (DmaBits + 1)'(f_dma_written - f_dma_read) + (DmaBits + 1)'(inside_dma) == f_dma_fresh);
    for (int unsigned i = 0; i < 2 ** PioBits; i++) begin
      if (PioBits'(i - 32'(f_pio_read)) < (PioBits + 1)'(f_pio_written - f_pio_read)) begin
        assert (f_pio_words[i] < f_pio_fresh && !g_used[f_pio_words[i]]);
        for (int unsigned j = 0; j < i; j++) begin
          if (PioBits'(j - 32'(f_pio_read)) < (PioBits + 1)'(f_pio_written - f_pio_read)) begin
            assert (f_pio_words[i] != f_pio_words[j]);
          end
        end
      end
    end
    for (int unsigned i = 0; i < 2 ** DmaBits; i++) begin
      if (DmaBits'(i - 32'(f_dma_read)) < (DmaBits + 1)'(f_dma_written - f_dma_read)) begin
        assert (f_dma_words[i] >= Depth && f_dma_words[i] - Depth < f_dma_fresh &&
                             !g_used[f_dma_words[i]]);
        for (int unsigned j = 0; j < i; j++) begin
          if (DmaBits'(j - 32'(f_dma_read)) < (DmaBits + 1)'(f_dma_written - f_dma_read)) begin
            assert (f_dma_words[i] != f_dma_words[j]);
          end
        end
      end
    end
    for (int unsigned a = 0; a < Words; a++) begin
      if (g_used[a] && a < Depth) assert (a < f_pio_fresh);
      if (g_used[a] && a >= Depth) assert (a - Depth < f_dma_fresh);
    end
    // Counters.
    assert (g_room_pio <= Depth && g_room_dma <= Landing && inside_pio <= Depth && inside_dma <= Landing);
    assert (inside_pio == f_words[0] + f_words[2] && inside_dma == f_words[1] + f_words[3]);
    assert (g_room_pio + inside_pio + (AddressWidth + 1)'(in_valid && !in_way) +
            (AddressWidth + 1)'(valid && !way) == (AddressWidth + 1)'(Depth));
    assert (g_room_dma + inside_dma + (AddressWidth + 1)'(in_valid && in_way) +
            (AddressWidth + 1)'(valid && way) == (AddressWidth + 1)'(Landing));
    // A run that has begun goes on in the next cycle.
    if (valid && !last) assert (run && run_port == port && run_way == way && !f_selected);
    if (valid && f_cut) assert (port == f_cut_port && way == f_cut_way);
`endif
  end
end
