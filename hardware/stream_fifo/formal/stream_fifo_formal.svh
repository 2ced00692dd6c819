// What is proved of `stream_fifo`, without bound, by k-induction.
//
// One word, chosen freely, is followed from its entry until it leaves. That it leaves in its own
// turn and unchanged, for every choice, says that nothing is lost, doubled or reordered.

// The word whose number is `chosen` is followed; numbers wrap as the pointers do.
(* anyconst *) logic [CountWidth-1:0] chosen;
logic [Width-1:0] followed;
logic inside;
logic past_reset = 1'b0;

wire [CountWidth-1:0] age = chosen - read;  // How many words leave before it.

always_comb assume (past_reset || rst);

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (rst) inside <= 1'b0;
  else if (enters && written == chosen) begin
    inside   <= 1'b1;
    followed <= in_data;
  end else if (leaves && inside && read == chosen) inside <= 1'b0;

  if (past_reset && !rst) begin
    // No overflow, and the count is what stands in the memory.
    p_bound : assert (count <= CountWidth'(Depth));
    // A word is offered only if there is one.
    p_not_empty : assert (!out_valid || count != 0);
    // The followed word leaves in its turn, and as it came.
    if (inside && leaves && read == chosen) p_same : assert (out_data == followed);
    // Liveness in the small: a word that waits is offered in the next cycle at the latest.
    if ($past(count) != 0 && !$past(rst) && !$past(leaves)) p_offered : assert (out_valid);

`ifdef INVARIANTS
    // So that induction needs no bound.
    if (inside) begin
      i_inside : assert (age < count);
      i_word : assert (probe_words[chosen[AddressWidth-1:0]] == followed);
      if (out_valid && read == chosen) i_output : assert (out_data == followed);
    end
`endif
  end
end
