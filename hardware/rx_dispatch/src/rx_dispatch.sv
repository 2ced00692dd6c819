// Takes packets from the crossbar and passes whole ones on by their type (C-25, C-27, C-37): PUTs
// and NAPs to `upload`, and the descriptors of GETs to what takes descriptors apart.
//
// Each class has a buffer of its own, so neither waits for the other. A packet is passed on when it
// has come whole and is right. Its first beat stands at the output two cycles after its last one
// has come, and one follows in every cycle. A GET gives a word in every cycle, and a beat has two.
module rx_dispatch #(
    // Places for packets of each class that the crossbar knows of.
    parameter int unsigned Packets = 4,
    // Places for GETs behind these: `remote_get_fifo`.
    parameter int unsigned Gets = 4,
    // Beats of a PUT or a NAP, at most: header and tail are among them. Those of a descriptor.
    parameter int unsigned DataBeats = 130,
    parameter int unsigned GetBeats = 256,
    localparam int unsigned Width = 128,
    localparam int unsigned WordWidth = 64,
    localparam int unsigned Lanes = Width / 8,
    localparam int unsigned LaneWidth = $clog2(Lanes),
    localparam int unsigned CpuWidth = 4,
    localparam int unsigned PairWidth = 5,
    localparam int unsigned EndWidth = CpuWidth + PairWidth,
    localparam int unsigned KeyWidth = 8
) (
    input logic clk,
    input logic rst,

    // The own processor.
    input logic [CpuWidth-1:0] cpu,

    // A beat of a packet, with the lane of the last byte of its last one. The class of its place
    // counts with the first beat: 1 for GETs.
    input  logic                 in_valid,
    output logic                 in_ready,
    input  logic                 in_class,
    input  logic                 in_last,
    input  logic [LaneWidth-1:0] in_to,
    input  logic [    Width-1:0] in_data,
    // By class: a place is free again.
    output logic [          1:0] credit,

    // Does the key of a GET fit? `key_window` answers in the next cycle.
    output logic                 packet_valid,
    output logic [PairWidth-1:0] packet_pair,
    output logic [ KeyWidth-1:0] packet_key,
    input  logic                 packet_fits,

    // PUTs and NAPs, for `upload`.
    output logic                 out_valid,
    input  logic                 out_ready,
    output logic                 out_last,
    output logic [LaneWidth-1:0] out_to,
    output logic [    Width-1:0] out_data,

    // Descriptors of GETs, with sender and own queue pair beside each word.
    output logic                 get_valid,
    input  logic                 get_ready,
    output logic                 get_last,
    output logic [WordWidth-1:0] get_word,
    output logic [ EndWidth-1:0] get_source,
    output logic [PairWidth-1:0] get_pair,

    // A packet was dropped in the cycle before: it is no PUT, NAP or GET or has a wrong form; its
    // type is not one of its class; it is longer than a place; it is a GET with a wrong key or for
    // another processor; it is longer or shorter than its header says.
    output logic unknown,
    output logic misrouted,
    output logic oversized,
    output logic refused,
    output logic mismatched
);

  if (Packets < 1 || Packets > 16 || Gets < 1 || Gets > 16) begin : g_places
    $error("rx_dispatch: Packets and Gets are 1 to 16");
  end
  if (DataBeats < 3 || DataBeats > 258 || GetBeats < 1 || GetBeats > 256) begin : g_beats
    $error("rx_dispatch: DataBeats is 3 to 258, and GetBeats 1 to 256");
  end

  localparam logic [3:0] Put = 4'b0110;
  localparam logic [3:0] Get = 4'b0111;
  // DWs of a beat, and DWs of payload that a place has room for.
  localparam int unsigned BeatDwords = Lanes / 4;
  localparam int unsigned DataDwords = BeatDwords * (DataBeats - 2);
  localparam int unsigned GetDwords = BeatDwords * GetBeats;

  localparam logic signed [13:0] BeatBytes = 14'(Lanes);

  // ---- The header. A GET has the form of a PUT to address zero.

  logic is_get, head_known;
  logic [Width-1:0] head;
  logic [KeyWidth-1:0] head_key;
  logic [EndWidth-1:0] head_source;
  logic [CpuWidth-1:0] head_cpu;
  logic [PairWidth-1:0] head_pair;
  logic [39:0] head_address;
  logic [12:0] head_bytes;
  logic [10:0] head_dwords;
  logic [1:0] unused_head;
  assign is_get = in_data[23:20] == Get;
  assign head   = {in_data[Width-1:24], is_get ? Put : in_data[23:20], in_data[19:0]};
  upload_header u_header (
      .header(head),
      .is_known(head_known),
      .is_nap(unused_head[0]),
      .wants_event(unused_head[1]),
      .magic(head_key),
      .source(head_source),
      .cpu(head_cpu),
      .pair(head_pair),
      .address(head_address),
      .bytes(head_bytes),
      .dwords(head_dwords)
  );

  // What is told is the first of what is wrong. Every packet has a DW behind its header, and a
  // descriptor whole beats.
  logic is_form, is_big, is_wrong;
  assign is_form = head_known
      && (!is_get || (head_address == '0 && head_bytes != '0 && head_bytes[3:0] == '0));
  assign is_big = 32'(head_dwords) > (is_get ? GetDwords : DataDwords);
  logic head_mismatched, head_unknown, head_misrouted, head_oversized, head_refused;
  assign head_mismatched = in_last;
  assign head_unknown = !head_mismatched && !is_form;
  assign head_misrouted = !head_mismatched && is_form && is_get != in_class;
  assign head_oversized = !head_mismatched && is_form && !head_misrouted && is_big;
  // `upload` looks at the others.
  assign head_refused = !head_mismatched && is_form && !head_misrouted && !is_big
      && is_get && head_cpu != cpu;
  assign is_wrong = head_mismatched || head_unknown || head_misrouted || head_oversized
      || head_refused;

  // ---- The packet that comes. It is right so far, or its rest is dropped.

  logic coming, right, asks, class_of;
  logic [EndWidth-1:0] source;
  logic [PairWidth-1:0] pair;
  // DWs of payload that have not come; below zero, those of the tail that have.
  logic signed [11:0] left;

  logic [1:0] has_place;
  logic enters, begins, goes_on, refuses;
  // Only the first beat of a packet can wait, for a place.
  assign in_ready = coming || has_place[in_class];
  assign enters = in_valid && in_ready;
  assign begins = enters && !coming;
  // The key is looked at before anything of a GET is passed on (C-09).
  assign refuses = asks && !packet_fits;
  assign goes_on = enters && coming && right && !refuses;
  assign packet_valid = begins && !is_wrong && is_get;
  assign packet_pair = head_pair;
  assign packet_key = head_key;

  // Bytes that lack, and those that come.
  logic signed [13:0] lacks, fill;
  logic is_short, is_long, mismatches, keeps, drops, payload, payload_ends;
  assign lacks = {left, 2'b00};
  assign fill = in_last ? 14'(in_to) + 14'd1 : BeatBytes;
  assign is_short = in_last && fill < lacks;
  assign is_long = in_last ? fill > lacks + BeatBytes : lacks <= 14'sd0;
  assign mismatches = goes_on && (is_short || is_long);
  assign keeps = goes_on && in_last && !mismatches;
  assign drops = refuses || mismatches;
  assign payload = lacks > 14'sd0;
  assign payload_ends = lacks <= BeatBytes;

  always_ff @(posedge clk) begin
    if (rst) begin
      coming <= 1'b0;
      asks <= 1'b0;
      unknown <= 1'b0;
      misrouted <= 1'b0;
      oversized <= 1'b0;
      refused <= 1'b0;
      mismatched <= 1'b0;
    end else begin
      if (enters) coming <= !in_last;
      asks <= packet_valid;
      unknown <= begins && head_unknown;
      misrouted <= begins && head_misrouted;
      oversized <= begins && head_oversized;
      refused <= (begins && head_refused) || refuses;
      mismatched <= (begins && head_mismatched) || mismatches;
    end
    if (begins) begin
      right <= !is_wrong;
      class_of <= in_class;
      source <= head_source;
      pair <= head_pair;
      left <= {1'b0, head_dwords};
    end else begin
      if (drops) right <= 1'b0;
      if (goes_on) left <= left - 12'(BeatDwords);
    end
  end

  // ---- The buffers. Of a GET only the payload is kept, with both ends beside each beat.

  logic [1:0] buf_begins, buf_stores, buf_lasts, buf_keeps, buf_drops;
  logic [EndWidth+PairWidth+Width-1:0] get_beat;
  assign buf_begins = {begins && in_class, begins && !in_class};
  assign buf_stores = {goes_on && class_of && payload, buf_begins[0] || (goes_on && !class_of)};
  assign buf_lasts  = {payload_ends, in_last};
  assign buf_keeps  = {keeps && class_of, keeps && !class_of};
  assign buf_drops  = (buf_begins & {2{is_wrong}}) | {drops && class_of, drops && !class_of};
  assign get_beat   = {source, pair, in_data};

  rx_buf #(
      .Packets(Packets),
      .Behind (0),
      .Beats  (DataBeats),
      .Width  (LaneWidth + Width)
  ) u_data (
      .clk,
      .rst,
      .begins(buf_begins[0]),
      .stores(buf_stores[0]),
      .store_last(buf_lasts[0]),
      .store_data({in_to, in_data}),
      .keeps(buf_keeps[0]),
      .drops(buf_drops[0]),
      .has_place(has_place[0]),
      .credit(credit[0]),
      .out_valid,
      .out_ready,
      .out_last,
      .out_data({out_to, out_data})
  );

  // The second word of the beat at the output is the next one.
  logic upper, takes_beat, beat_last;
  logic [Width-1:0] beat;
  assign takes_beat = get_ready && upper;
  rx_buf #(
      .Packets(Packets),
      .Behind (Gets),
      .Beats  (GetBeats),
      .Width  (EndWidth + PairWidth + Width)
  ) u_gets (
      .clk,
      .rst,
      .begins(buf_begins[1]),
      .stores(buf_stores[1]),
      .store_last(buf_lasts[1]),
      .store_data(get_beat),
      .keeps(buf_keeps[1]),
      .drops(buf_drops[1]),
      .has_place(has_place[1]),
      .credit(credit[1]),
      .out_valid(get_valid),
      .out_ready(takes_beat),
      .out_last(beat_last),
      .out_data({get_source, get_pair, beat})
  );
  assign get_last = beat_last && upper;
  assign get_word = upper ? beat[Width-1:WordWidth] : beat[WordWidth-1:0];

  always_ff @(posedge clk) begin
    if (rst) upper <= 1'b0;
    else if (get_valid && get_ready) upper <= !upper;
  end

  logic unused;
  assign unused = ^unused_head;

`ifdef PROVE_RX_DISPATCH
  `include "rx_dispatch_formal.svh"
`endif

endmodule
