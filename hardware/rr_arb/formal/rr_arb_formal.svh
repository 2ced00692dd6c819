// What is proved of `rr_arb`, without bound, by k-induction.

// A request, chosen freely, and how often others were granted while it waited.
(* anyconst *) logic [IndexWidth-1:0] who;
logic [IndexWidth:0] waited;
logic past_reset = 1'b0;

// The pointer as a number: how many requests lie before it.
logic [IndexWidth:0] pointer, distance;
always_comb begin
  pointer = '0;
  for (int unsigned at = 0; at < Requests; at++) begin
    if (!from_pointer[at]) pointer = pointer + (IndexWidth + 1)'(1);
  end
  // Requests from the pointer up to `who`, cyclically.
  if ((IndexWidth + 1)'(who) >= pointer) distance = (IndexWidth + 1)'(who) - pointer;
  else distance = (IndexWidth + 1)'(who) + (IndexWidth + 1)'(Requests) - pointer;
end

always_comb assume (past_reset || rst);
always_comb begin
  assume (who < Requests);
  assume (behind < Requests);
  // The user grants what is granted.
  if (advance && valid) assume (behind == index);
end

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (rst || !request[who] || (advance && valid && index == who)) waited <= '0;
  else if (advance && valid) waited <= waited + (IndexWidth + 1)'(1);

  if (past_reset && !rst) begin
    // Something is granted exactly if something is requested, and it is a request.
    p_valid : assert (valid == (request != '0));
    if (valid) p_request : assert (index < Requests && request[index]);
    // Fairness: at most all others are granted before a request that stays.
    if (request[who]) p_fair : assert (waited < Requests);
    // The pointer alone decides: the first request at or after it.
    if (valid && request[who] && (IndexWidth + 1)'(who) == pointer)
      p_first : assert (index == who);

`ifdef INVARIANTS
    i_pointer : assert (from_pointer == ({Requests{1'b1}} << pointer) && pointer < Requests);
    i_distance : assert (waited + distance < Requests);
`endif
  end
end
