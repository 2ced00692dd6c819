// What is proved of `cdc_fifo_gray`, without bound, by k-induction.
//
// Both clocks rise and fall at any time, also together. Each bit that a clock catches while it
// changes is the old or the new one (`cdc_sync`).

// The reset holds until both clocks have risen under it.
logic in_was_reset = 1'b0, out_was_reset = 1'b0, runs = 1'b0;
always_ff @(posedge in_clk) in_was_reset <= 1'b1;
always_ff @(posedge out_clk) out_was_reset <= 1'b1;
always @($global_clock) if (in_was_reset && out_was_reset) runs <= 1'b1;
always_comb begin
  assume (in_rst == !runs);
  assume (out_rst == !runs);
end

// One word, chosen freely, is followed from its entry until it leaves. Numbers wrap as counts do.
(* anyconst *) logic [CountWidth-1:0] chosen;
(* anyseq *) logic is_it;
logic [Width-1:0] followed;
logic has_entered, has_left;
wire inside = has_entered && !has_left;
wire at_output = inside && out_valid && read == CountWidth'(chosen + 1'b1);

// The count of the reading side at the last two edges of the writing side.
logic [CountWidth-1:0] read_caught, read_known;
always_ff @(posedge in_clk) begin
  if (in_rst) {has_entered, read_caught, read_known} <= '0;
  else begin
    read_caught <= read;
    read_known  <= read_caught;
    if (enters && written == chosen && is_it && !has_entered) begin
      has_entered <= 1'b1;
      followed    <= in_data;
    end
  end
end

// Edges of the reading side since it entered, at most three; and words that left.
logic [1:0] edges;
logic [CountWidth-1:0] left;
always_ff @(posedge out_clk) begin
  if (out_rst) {has_left, edges, left} <= '0;
  else begin
    if (at_output && out_ready) has_left <= 1'b1;
    if (has_entered && edges != 2'd3) edges <= edges + 1'b1;
    left <= left + CountWidth'(out_valid && out_ready);
  end
end

function automatic logic [CountWidth-1:0] binary(input logic [CountWidth-1:0] code);
  binary = code;
  for (int unsigned shift = 1; shift < CountWidth; shift++) binary = binary ^ (code >> shift);
endfunction

// How many words entered after each of these counts.
wire [CountWidth-1:0] back_chosen = written - chosen;
wire [CountWidth-1:0] back_read = written - read;
wire [CountWidth-1:0] back_written_1 = written - binary(written_settled);
wire [CountWidth-1:0] back_written_2 = written - binary(written_seen);
wire [CountWidth-1:0] back_read_1 = written - binary(read_settled);
wire [CountWidth-1:0] back_read_2 = written - binary(read_seen);
wire [CountWidth-1:0] back_caught = written - read_caught;
wire [CountWidth-1:0] back_known = written - read_known;
wire in_memory = back_chosen != 0 && back_chosen <= back_read;

always @($global_clock) begin
  if (runs) begin
    // It holds no more than `Depth` words, and none that did not enter.
    p_bound : assert (back_read <= CountWidth'(Depth));
    // The followed word stays until it leaves.
    if (inside) p_kept : assert (at_output || in_memory);
    // It leaves as it came.
    if (at_output) p_same : assert (out_data == followed);
    // A word leaves once.
    p_once : assert (read == CountWidth'(left + CountWidth'(out_valid)));
    // A word that waits is offered after three edges of the reading side.
    if (inside && edges == 2'd3) p_offered : assert (out_valid);
    // A place that is free is offered after two edges of the writing side.
    if (read_known == read) p_freed : assert (in_ready == (back_read != CountWidth'(Depth)));

    // So that induction needs no bound: each count follows the one that it shows.
    i_written_gray : assert (written_gray == gray(written));
    i_read_gray : assert (read_gray == gray(read));
    i_written_1 : assert (back_written_1 <= back_written_2);
    i_written_2 : assert (back_written_2 <= back_read);
    i_read_1 : assert (back_read <= back_read_1 && back_read_1 <= back_read_2);
    i_read_2 : assert (back_read_2 <= CountWidth'(Depth));
    i_caught : assert (back_read_1 <= back_caught && back_caught <= CountWidth'(Depth));
    i_known : assert (back_read_2 <= back_known && back_known <= CountWidth'(Depth + 1));
    i_order : assert (back_caught <= back_known);
    if (inside && !at_output) i_word : assert (words[chosen[AddressWidth-1:0]] == followed);
    if (inside && edges >= 2'd1) i_edge_1 : assert (back_written_1 < back_chosen);
    if (inside && edges >= 2'd2) i_edge_2 : assert (back_written_2 < back_chosen);
    i_entered : assert (has_entered || (!has_left && edges == 0));
  end else begin
    if (in_was_reset) i_in_reset : assert (!{written, written_gray, read_seen, read_settled,
                                             read_caught, read_known, has_entered});
    if (out_was_reset) i_out_reset : assert (!{read, read_gray, written_seen, written_settled,
                                               out_valid, has_left, edges, left});
  end
end
