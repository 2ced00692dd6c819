// What is proved of `write_arb`, without bound, by k-induction.
//
// A shadow sees the ports only. It knows which write goes on, how far its record has come, whose
// turn is next and what must be offered. Nothing is assumed: any beat and any record may come at
// any time, and the boundary may be busy for ever.

logic past_reset = 1'b0;
always_comb assume (past_reset || rst);

// ---- The write that goes on, and beats of its record that were taken.

logic g_upload, g_event;
logic [BeatWidth:0] g_beats;

// ---- Turns: the record began no write since the last one of the upload module; writes of the
// other one that began while one waited.

logic g_event_next;
logic [1:0] g_upload_passed, g_event_passed;

// ---- What is offered, and that it was in the cycle before.

logic g_offers, g_last;
logic [FunctionWidth-1:0] g_function;
logic [AddressWidth-1:0] g_address;
logic [SizeWidth-1:0] g_bytes;
logic [Width-1:0] g_data;

wire f_free = !g_offers || out_ready;
wire f_upload = upload_valid && upload_ready;
// A record's beat is taken whenever the port is free, and neither a write of the upload module goes
// on nor a beat of it is taken.
wire f_event = event_valid && f_free && !g_upload && !f_upload;
wire f_between = !g_upload && !g_event;
wire f_upload_begins = f_upload && f_between;
wire f_event_begins = f_event && f_between;
wire f_event_ends = 32'(g_beats) == Beats - 1;

always_ff @(posedge clk) begin
  past_reset <= 1'b1;
  if (f_free) g_offers <= f_upload || f_event;
  if (f_upload) begin
    g_upload <= !upload_last;
    g_last <= upload_last;
    g_function <= upload_function;
    g_address <= upload_address;
    g_bytes <= upload_bytes;
    g_data <= upload_data;
  end
  if (f_event) begin
    g_event <= !f_event_ends;
    g_beats <= f_event_ends ? '0 : g_beats + (BeatWidth + 1)'(1);
    g_last <= f_event_ends;
    g_function <= event_function;
    g_address <= event_address;
    g_bytes <= SizeWidth'(EventWidth / 8);
    g_data <= Width'(event_record >> (32'(g_beats) * Width));
  end
  if (f_upload_begins) g_event_next <= 1'b1;
  if (f_event_begins) g_event_next <= 1'b0;
  if (f_event_begins) g_upload_passed <= g_upload_passed + 2'd1;
  if (f_upload_begins) g_event_passed <= g_event_passed + 2'd1;
  if (!upload_valid || f_upload) g_upload_passed <= '0;
  if (!event_valid || f_event) g_event_passed <= '0;
  if (rst) begin
    {g_upload, g_event, g_beats, g_event_next, g_offers} <= '0;
    {g_upload_passed, g_event_passed} <= '0;
  end
end

always_ff @(posedge clk) begin
  if (past_reset && !rst) begin
    // What is taken is offered once, as it came, and stays until it leaves.
    p_offers : assert (out_valid == g_offers);
    if (g_offers) begin
      p_write : assert (out_last == g_last && out_address == g_address && out_bytes == g_bytes);
      p_function : assert (out_function == g_function);
      p_data : assert (out_data == g_data);
    end
    // A beat is taken only if the output is free, and never within a record. So no beat is lost,
    // and none stands among those of another write.
    if (f_upload) p_free : assert (f_free);
    if (f_upload) p_whole : assert (!g_event);
    // A record is taken with its last beat, and only then.
    p_event_ready : assert (event_ready == (f_free && g_event && f_event_ends));
    if (event_valid && event_ready) p_record : assert (f_event);
    // The upload module is ready exactly if there is room, and no record goes on or goes before.
    p_ready :
    assert (upload_ready == (f_free && (g_upload || (f_between && !(g_event_next && event_valid)))));

    // Nothing waits for an idle port, if no write goes on that pauses.
    if (f_free && f_between && (upload_valid || event_valid)) p_work : assert (f_upload || f_event);
    // The upload module goes first. Then whole writes take turns if both wait.
    if ($past(rst) && upload_valid && f_free) p_starts : assert (f_upload);
    if (f_upload_begins && event_valid) p_turn : assert (!g_event_next);
    if (f_event_begins && upload_valid) p_event_turn : assert (g_event_next);
    // So one write of the other one begins at most while one waits.
    p_fair : assert (g_upload_passed < 2'd2 && g_event_passed < 2'd2);

    // So that induction needs no bound.
    i_mid : assert (mid == (g_upload || g_event) && !(g_upload && g_event));
    if (mid) i_upload : assert (mid_upload == g_upload);
    i_beats : assert ((BeatWidth + 1)'(beat) == g_beats && (g_beats != '0) == g_event);
    i_pointer : assert (f_from_pointer == (g_event_next ? 2'b10 : 2'b11));
    if (g_upload_passed != '0) i_upload_passed : assert (!g_event_next);
    if (g_event_passed != '0) i_event_passed : assert (g_event_next && !g_event);
  end
end
