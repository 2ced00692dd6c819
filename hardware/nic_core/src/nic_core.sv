// The interface of cHPP between the PCIe boundary and the network (Fig. 10 to 12): all of its
// blocks, and the wires between them. The README says what is more than a wire.
module nic_core #(
    // Doorbells of a function that wait.
    parameter int unsigned Bells = 32,
    // Tags, and cycles after which one is lost, at least.
    parameter int unsigned Tags = 32,
    parameter int unsigned Timeout = 2500000,
    // Beats of the re-order memory, and reads of data under way.
    parameter int unsigned Beats = 512,
    parameter int unsigned Reads = 32,
    // Beats of a read, and of a descriptor, at most.
    parameter int unsigned Request = 8,
    parameter int unsigned Longest = 256,
    // Descriptors from here that are being fetched, and those that are being taken apart.
    parameter int unsigned Fetches = 4,
    parameter int unsigned Places = 2,
    // Operations of a function whose events wait, and GETs that wait for the crossbar.
    parameter int unsigned Events = 16,
    parameter int unsigned Gets = 2,
    // The packer: beats, packets, and the bytes of a PUT and of a NAP.
    parameter int unsigned PackBeats = 256,
    parameter int unsigned PackPackets = 16,
    parameter int unsigned Payload = 128,
    parameter int unsigned LongestNap = 2048,
    // Packets of each class that the crossbar may send without hearing of a free place. Packets
    // in a channel of it, and beats.
    parameter int unsigned Packets = 4,
    parameter int unsigned Depth = 32,
    parameter int unsigned Room = 598,
    // Bytes of a write, at most.
    parameter int unsigned Write = 128,
    // Slots in the cache of a queue pair, and those that are read at once.
    parameter int unsigned Slots = 32,
    parameter int unsigned Batch = 16,
    localparam int unsigned TagWidth = (Tags > 1) ? $clog2(Tags) : 1
) (
    input logic clk,
    input logic rst,

    // The own processor, and how many there are.
    input logic [3:0] cpu,
    input logic [4:0] cpus,

    // The host sets a window or a key: `host_` of `key_window`.
    input logic        keys_valid,
    input logic        keys_window,
    input logic [ 2:0] keys_function,
    input logic [27:0] keys_base,
    input logic [28:0] keys_pages,
    input logic [ 4:0] keys_pair,
    input logic        keys_opens,
    input logic [ 7:0] keys_key,

    // The host opens a ring or reports: `host_` of `event_ring`.
    input logic        rings_valid,
    input logic        rings_opens,
    input logic [ 5:0] rings_ring,
    input logic [34:0] rings_base,
    input logic [12:0] rings_count,

    // The host opens a list or reports: `host_` of `slot_cache`.
    input logic        slots_valid,
    input logic        slots_opens,
    input logic [ 4:0] slots_pair,
    input logic [27:0] slots_page,
    input logic [ 8:0] slots_count,

    // A beat of a store into the doorbell window.
    input logic         store_valid,
    input logic         store_last,
    input logic [ 15:0] store_address,
    input logic [ 12:0] store_bytes,
    input logic [127:0] store_data,

    // A read of host memory.
    output logic                read_valid,
    input  logic                read_ready,
    output logic [         2:0] read_function,
    output logic [        39:0] read_address,
    output logic [        12:0] read_bytes,
    output logic [TagWidth-1:0] read_tag,

    // A beat of a completion.
    input logic                in_valid,
    input logic                in_last,
    input logic [TagWidth-1:0] in_tag,
    input logic                in_failed,
    input logic [        12:0] in_bytes,
    input logic [        12:0] in_remaining,
    input logic [       127:0] in_data,

    // A beat of a write to host memory.
    output logic         write_valid,
    input  logic         write_ready,
    output logic         write_last,
    output logic [  2:0] write_function,
    output logic [ 39:0] write_address,
    output logic [ 12:0] write_bytes,
    output logic [127:0] write_data,

    // A beat of a packet from the network. By class: it is taken; a place is free again.
    input  logic         from_valid,
    output logic [  1:0] from_ready,
    input  logic         from_class,
    input  logic         from_last,
    input  logic [  3:0] from_to,
    input  logic [127:0] from_data,
    output logic [  1:0] from_credit,

    // A beat of a packet for the network. By class: a place there is free again.
    output logic         to_valid,
    input  logic         to_ready,
    output logic         to_class,
    output logic         to_last,
    output logic [  3:0] to_to,
    output logic [127:0] to_data,
    input  logic [  1:0] to_credit,

    // What the host wrote in the cycle before cannot be: about keys, rings or slots. What blocks
    // tell of the cycle before. What they count since reset: dropped stores, doorbells of full
    // FIFOs, events of closed rings, packets with a wrong key, targets outside of their window.
    output logic [ 2:0]       refused,
    output logic [25:0]       told,
    output logic [ 4:0][31:0] counts
);

  localparam int unsigned EventIndexWidth = (Events > 1) ? $clog2(Events) : 1;
  localparam int unsigned PlaceWidth = 3 + EventIndexWidth;
  // Moves that wait for the packer: as many operations as the event-driven model has commands.
  localparam int unsigned Moves = 4;
  localparam int unsigned BatchWidth = $clog2(Batch + 1);
  localparam int unsigned LongestPacket = (Payload > LongestNap) ? Payload : LongestNap;
  localparam int unsigned DataBeats = 3 + (LongestPacket + 15) / 16;
  localparam int unsigned XbarBeats = (DataBeats > 1 + Longest) ? DataBeats : 1 + Longest;
  localparam int unsigned CountWidth = $clog2(Depth + 1);

  // Bits of what a move says beside its operation.
  localparam int unsigned SaysWidth = 4 + 3 + 8 + 9 + 9 + 1 + 5 + 128 + 40 + 40;

  // ---- Doorbells.

  logic bell_valid, bell_dropped, fifo_dropped;
  logic [2:0] bell_function, fifo_dropped_function;
  logic [63:0] bell_word, word;
  logic [31:0] bell_count, fifo_count;
  logic [7:0][$clog2(Bells > 1 ? Bells : 2):0] fifo_waiting;
  logic [7:0] waits, may_ring;
  logic take, rung_valid, rung_ready, fetch_bell_valid, fetch_bell_ready, bell_outside;
  logic [2:0] take_function, rung_function;

  bell_decode u_bell_decode (
      .clk,
      .rst,
      .store_valid,
      .store_last,
      .store_address,
      .store_bytes,
      .store_data,
      .bell_valid,
      .bell_function,
      .bell_word,
      .dropped_valid(bell_dropped),
      .dropped      (bell_count)
  );

  doorbell_fifo #(
      .Depth(Bells)
  ) u_doorbell_fifo (
      .clk,
      .rst,
      .in_valid        (bell_valid),
      .in_function     (bell_function),
      .in_word         (bell_word),
      .dropped_valid   (fifo_dropped),
      .dropped_function(fifo_dropped_function),
      .dropped         (fifo_count),
      .waits,
      .count           (fifo_waiting),
      .take,
      .take_function,
      .word
  );

  doorbell_arb u_doorbell_arb (
      .clk,
      .rst,
      .waits       (may_ring),
      .take,
      .take_function,
      .out_valid   (rung_valid),
      .out_ready   (rung_ready),
      .out_function(rung_function)
  );

  // ---- Tags and reads: descriptors, data and slot addresses, in this order.

  logic tag_valid, tag_ready, release_valid, lost_valid, tag_refused, unexpected;
  logic [TagWidth-1:0] tag, release_tag, lost_tag, fetch_free_tag, data_free_tag;
  logic [TagWidth:0] in_use;
  logic [2:0] ask_valid, ask_ready, own_valid, own_lost, free_valid;
  logic [2:0][ 2:0] ask_function;
  logic [2:0][39:0] ask_address;
  logic [2:0][12:0] ask_bytes;

  tag_alloc #(
      .Tags   (Tags),
      .Timeout(Timeout)
  ) u_tag_alloc (
      .clk,
      .rst,
      .tag_valid,
      .tag_ready,
      .tag,
      .release_valid,
      .release_tag,
      .refused(tag_refused),
      .lost_valid,
      .lost_tag,
      .in_use
  );

  read_arb #(
      .Requesters(3),
      .Tags      (Tags)
  ) u_read_arb (
      .clk,
      .rst,
      .ask_valid,
      .ask_ready,
      .ask_function,
      .ask_address,
      .ask_bytes,
      .tag_valid,
      .tag_ready,
      .tag,
      .read_valid,
      .read_ready,
      .read_function,
      .read_address,
      .read_bytes,
      .read_tag,
      .in_valid,
      .in_last,
      .in_tag,
      .own_valid,
      .unexpected,
      .free_valid,
      .release_valid,
      .release_tag,
      .lost_valid,
      .lost_tag,
      .own_lost
  );

  // ---- Descriptors from here, up to their gate.

  logic fetch_unexpected, fetch_mismatched;
  logic fetch_valid, fetch_ready, fetch_first, fetch_last, fetch_failed, fetch_refused;
  logic [2:0] fetch_function;
  logic [39:0] fetch_address;
  logic [63:0] fetch_word;
  logic [7:0][EventIndexWidth:0] room;
  logic gate_valid, move_taken, is_get, get_credit, report_taken;
  logic [1:0] word_ready;
  logic [2:0] move_function;

  desc_fetch #(
      .Places (Fetches),
      .Beats  (Longest),
      .Request(Request),
      .Tags   (Tags)
  ) u_desc_fetch (
      .clk,
      .rst,
      .bell_valid   (fetch_bell_valid),
      .bell_ready   (fetch_bell_ready),
      .bell_function(rung_function),
      .bell_word    (word),
      .bell_outside,
      .read_valid   (ask_valid[0]),
      .read_ready   (ask_ready[0]),
      .read_tag     (tag),
      .read_function(ask_function[0]),
      .read_address (ask_address[0]),
      .read_bytes   (ask_bytes[0]),
      .in_valid     (own_valid[0]),
      .in_last,
      .in_tag,
      .in_failed,
      .in_bytes,
      .in_remaining,
      .in_data,
      .unexpected   (fetch_unexpected),
      .mismatched   (fetch_mismatched),
      .lost_valid   (own_lost[0]),
      .lost_tag,
      .free_valid   (free_valid[0]),
      .free_tag     (fetch_free_tag),
      .out_valid    (fetch_valid),
      .out_ready    (fetch_ready),
      .out_first    (fetch_first),
      .out_last     (fetch_last),
      .out_failed   (fetch_failed),
      .out_refused  (fetch_refused),
      .out_function (fetch_function),
      .out_address  (fetch_address),
      .out_word     (fetch_word)
  );

  desc_gate #(
      .Depth(Events),
      .Gets (Gets)
  ) u_desc_gate (
      .clk,
      .rst,
      .waits,
      .may_ring,
      .take,
      .take_function,
      .room,
      .move_valid     (move_taken),
      .move_get       (is_get),
      .move_function,
      .report_valid   (report_taken),
      .report_function(x_report_function[0]),
      .credit         (get_credit),
      .word_valid     (fetch_valid),
      .word_ready     (fetch_ready),
      .word_last      (fetch_last),
      .word_void      (fetch_failed || fetch_refused),
      .word_primitive (fetch_word[3:0]),
      .to_valid       (gate_valid),
      .to_ready       (word_ready[0])
  );

  // ---- Both that take descriptors apart: those from here, and GETs from elsewhere.

  logic [1:0] x_in_valid, x_in_ready, x_in_last, x_in_failed, x_in_refused, x_in_remote;
  logic [1:0][2:0] x_in_function;
  logic [1:0][1:0] x_in_pair;
  logic [1:0][8:0] x_in_peer;
  logic [1:0][39:0] x_in_address;
  logic [1:0][63:0] x_in_word;
  logic [1:0] x_source_valid;
  logic [1:0][2:0] x_source_function;
  logic [1:0][39:0] x_source_address, x_source_length;
  logic [1:0] x_read_valid, x_read_ready, x_read_ends;
  logic [1:0][ 2:0] x_read_function;
  logic [1:0][39:0] x_read_address;
  logic [1:0][12:0] x_read_bytes;
  logic [1:0] x_move_valid, x_move_ready, x_move_last, x_move_remote;
  logic [1:0][3:0] x_kind;
  logic [1:0][2:0] x_traffic_class;
  logic [1:0][7:0] x_magic;
  logic [1:0][8:0] x_source;
  logic [1:0][8:0] x_destination;
  logic [1:0] x_wants_event;
  logic [1:0][4:0] x_tail_bytes;
  logic [1:0][127:0] x_tail;
  logic [1:0][39:0] x_address;
  logic [1:0][39:0] x_bytes;
  logic [1:0][SaysWidth-1:0] x_says;
  logic [1:0][7:0] x_move_operation;
  logic [1:0][39:0] x_move_total, x_move_descriptor;
  logic [1:0] x_data_valid, x_data_ready, x_data_ends, x_data_get;
  logic [1:0][  3:0] x_data_to;
  logic [1:0][127:0] x_data;
  logic [1:0] x_report_valid, x_report_ready, x_dropped;
  logic [1:0][2:0] x_report_status, x_report_function;
  logic [1:0][ 1:0] x_report_pair;
  logic [1:0][ 8:0] x_report_peer;
  logic [1:0][ 3:0] x_report_primitive;
  logic [1:0][39:0] x_report_address;
  logic get_valid, get_last, source_valid, source_fits;
  logic [63:0] get_word;
  logic [ 8:0] get_source;
  logic [ 4:0] get_pair;
  logic [ 2:0] source_function;
  logic [39:0] source_address, source_length;

  source_arb u_source_arb (
      .clk,
      .rst,
      .word_valid   ({get_valid, gate_valid}),
      .word_ready,
      .to_valid     (x_in_valid),
      .to_ready     (x_in_ready),
      .ask_valid    (x_source_valid),
      .ask_function (x_source_function),
      .ask_address  (x_source_address),
      .ask_length   (x_source_length),
      .bell_valid   (rung_valid),
      .bell_ready   (rung_ready),
      .bell_function(rung_function),
      .bell_word    (word),
      .source_valid,
      .source_function,
      .source_address,
      .source_length,
      .source_fits,
      .out_valid    (fetch_bell_valid),
      .out_ready    (fetch_bell_ready),
      .out_outside  (bell_outside)
  );

  assign x_in_last = {get_last, fetch_last};
  assign x_in_failed = {1'b0, fetch_failed};
  assign x_in_refused = {1'b0, fetch_refused};
  assign x_in_remote = 2'b10;
  assign x_in_function = {get_pair[4:2], fetch_function};
  assign x_in_pair = {get_pair[1:0], 2'd0};
  assign x_in_peer = {get_source, 9'd0};
  assign x_in_address = {40'd0, fetch_address};
  assign x_in_word = {get_word, fetch_word};

  for (genvar each = 0; each < 2; each++) begin : g_extract
    assign x_says[each] = {
      x_kind[each],
      x_traffic_class[each],
      x_magic[each],
      x_source[each],
      x_destination[each],
      x_wants_event[each],
      x_tail_bytes[each],
      x_tail[each],
      x_address[each],
      x_bytes[each]
    };
    desc_extract #(
        .Places (Places),
        .Beats  (Longest),
        .Request(Request)
    ) u_desc_extract (
        .clk,
        .rst,
        .cpu,
        .cpus,
        .in_valid          (x_in_valid[each]),
        .in_ready          (x_in_ready[each]),
        .in_last           (x_in_last[each]),
        .in_failed         (x_in_failed[each]),
        .in_refused        (x_in_refused[each]),
        .in_remote         (x_in_remote[each]),
        .in_function       (x_in_function[each]),
        .in_pair           (x_in_pair[each]),
        .in_peer           (x_in_peer[each]),
        .in_address        (x_in_address[each]),
        .in_word           (x_in_word[each]),
        .source_valid      (x_source_valid[each]),
        .source_function   (x_source_function[each]),
        .source_address    (x_source_address[each]),
        .source_length     (x_source_length[each]),
        .source_fits,
        .read_valid        (x_read_valid[each]),
        .read_ready        (x_read_ready[each]),
        .read_ends         (x_read_ends[each]),
        .read_function     (x_read_function[each]),
        .read_address      (x_read_address[each]),
        .read_bytes        (x_read_bytes[each]),
        .move_valid        (x_move_valid[each]),
        .move_ready        (x_move_ready[each]),
        .move_last         (x_move_last[each]),
        .move_remote       (x_move_remote[each]),
        .move_primitive    (x_kind[each]),
        .move_traffic_class(x_traffic_class[each]),
        .move_magic        (x_magic[each]),
        .move_source       (x_source[each]),
        .move_destination  (x_destination[each]),
        .move_wants_event  (x_wants_event[each]),
        .move_tail_bytes   (x_tail_bytes[each]),
        .move_tail         (x_tail[each]),
        .move_operation    (x_move_operation[each]),
        .move_address      (x_address[each]),
        .move_bytes        (x_bytes[each]),
        .move_total        (x_move_total[each]),
        .move_descriptor   (x_move_descriptor[each]),
        .data_valid        (x_data_valid[each]),
        .data_ready        (x_data_ready[each]),
        .data_ends         (x_data_ends[each]),
        .data_get          (x_data_get[each]),
        .data_to           (x_data_to[each]),
        .data              (x_data[each]),
        .report_valid      (x_report_valid[each]),
        .report_ready      (x_report_ready[each]),
        .report_status     (x_report_status[each]),
        .report_function   (x_report_function[each]),
        .report_pair       (x_report_pair[each]),
        .report_peer       (x_report_peer[each]),
        .report_primitive  (x_report_primitive[each]),
        .report_address    (x_report_address[each]),
        .dropped           (x_dropped[each])
    );
  end

  // ---- Operations: their moves, their data, and the places for their events.

  logic place_valid, place_ready;
  logic [PlaceWidth-1:0] place;
  logic pack_valid, pack_ready, pack_last;
  logic [PlaceWidth:0] pack_operation, sent_operation, sent_get;
  typedef struct packed {
    logic last;
    logic [3:0] kind;
    logic [2:0] traffic_class;
    logic [7:0] magic;
    logic [8:0] source;
    logic [8:0] destination;
    logic wants_event;
    logic [4:0] tail_bytes;
    logic [127:0] tail;
    logic route;
    logic [PlaceWidth:0] operation;
    logic [39:0] address;
    logic [39:0] bytes;
  } move_t;
  logic [3:0] pack_kind;
  logic [2:0] pack_traffic_class;
  logic [7:0] pack_magic;
  logic [8:0] pack_source;
  logic [8:0] pack_destination;
  logic pack_wants_event;
  logic [4:0] pack_tail_bytes;
  logic [127:0] pack_tail;
  logic [39:0] pack_address;
  logic [39:0] pack_bytes;
  logic [SaysWidth-1:0] pack_says;
  logic op_valid, op_ready, op_ends;
  logic [ 2:0] op_function;
  logic [39:0] op_address;
  logic [12:0] op_bytes;
  logic put_valid, put_ready, put_ends;
  logic [  3:0] put_to;
  logic [127:0] put_data;
  logic get_move_valid, get_move_ready, get_data_valid, get_data_ready;
  logic memory_ready, queue_ready, data_unexpected, data_mismatched;
  logic [$clog2(Beats > 1 ? Beats : 2):0] memory_room;
  logic [$clog2(Reads > 1 ? Reads : 2):0] memory_reads;
  logic data_valid, data_ready, data_last, data_failed;
  logic [3:0] data_from, data_to;
  logic [127:0] data;
  logic join_valid, join_ready, join_ends, join_failed;
  logic [3:0] join_from, join_to;
  logic [127:0] join_data;

  assign is_get = x_kind[0] == 4'd7;
  assign move_function = x_source[0][4:2];
  assign move_taken = place_valid && place_ready;
  assign report_taken = x_report_valid[0] && x_report_ready[0];
  assign x_report_ready[1] = 1'b0;

  op_arb #(
      .PlaceWidth(PlaceWidth),
      .SaysWidth (SaysWidth)
  ) u_op_arb (
      .clk,
      .rst,
      .move_valid   (x_move_valid),
      .move_ready   (x_move_ready),
      .move_last    (x_move_last),
      .move_get     (is_get),
      .move_total   (x_move_total),
      .move_says    (x_says),
      .read_valid   (x_read_valid),
      .read_ready   (x_read_ready),
      .read_ends    (x_read_ends),
      .read_function(x_read_function),
      .read_address (x_read_address),
      .read_bytes   (x_read_bytes),
      .data_valid   (x_data_valid),
      .data_ready   (x_data_ready),
      .data_ends    (x_data_ends),
      .data_get     (x_data_get[0]),
      .data_to      (x_data_to),
      .data         (x_data),
      .place_valid,
      .place_ready,
      .place,
      .pack_valid,
      .pack_ready,
      .pack_last,
      .pack_operation,
      .pack_says,
      .ask_valid    (op_valid),
      .ask_ready    (op_ready),
      .ask_ends     (op_ends),
      .ask_function (op_function),
      .ask_address  (op_address),
      .ask_bytes    (op_bytes),
      .put_valid,
      .put_ready,
      .put_ends,
      .put_to,
      .put_data,
      .get_valid    (get_move_valid),
      .get_ready    (get_move_ready),
      .get_data_valid,
      .get_data_ready
  );

  assign {
    pack_kind,
    pack_traffic_class,
    pack_magic,
    pack_source,
    pack_destination,
    pack_wants_event,
    pack_tail_bytes,
    pack_tail,
    pack_address,
    pack_bytes
  } = pack_says;

  // A read of data is taken if all three that take it are ready.
  assign op_ready = ask_ready[1] && memory_ready && queue_ready;
  assign ask_valid[1] = op_valid && memory_ready && queue_ready;
  assign ask_function[1] = op_function;
  assign ask_address[1] = op_address;
  assign ask_bytes[1] = op_bytes;

  data_reorder #(
      .Beats(Beats),
      .Reads(Reads),
      .Tags (Tags)
  ) u_data_reorder (
      .clk,
      .rst,
      .read_valid(op_valid && ask_ready[1] && queue_ready),
      .read_ready(memory_ready),
      .read_tag  (tag),
      .read_lane (op_address[3:0]),
      .read_bytes(op_bytes),
      .room      (memory_room),
      .reads     (memory_reads),
      .in_valid  (own_valid[1]),
      .in_last,
      .in_tag,
      .in_failed,
      .in_bytes,
      .in_remaining,
      .in_data,
      .unexpected(data_unexpected),
      .mismatched(data_mismatched),
      .lost_valid(own_lost[1]),
      .lost_tag,
      .free_valid(free_valid[1]),
      .free_tag  (data_free_tag),
      .out_valid (data_valid),
      .out_ready (data_ready),
      .out_last  (data_last),
      .out_failed(data_failed),
      .out_from  (data_from),
      .out_to    (data_to),
      .out_data  (data)
  );

  data_join #(
      .Reads(Reads)
  ) u_data_join (
      .clk,
      .rst,
      .read_valid(op_valid && ask_ready[1] && memory_ready),
      .read_ready(queue_ready),
      .read_ends (op_ends),
      .data_valid,
      .data_ready,
      .data_last,
      .data_failed,
      .data_from,
      .data_to,
      .data,
      .put_valid,
      .put_ready,
      .put_ends,
      .put_to,
      .put_data,
      .out_valid (join_valid),
      .out_ready (join_ready),
      .out_ends  (join_ends),
      .out_failed(join_failed),
      .out_from  (join_from),
      .out_to    (join_to),
      .out_data  (join_data)
  );

  // ---- Packers, and the crossbar. Of both, number 0 is for PUTs and NAPs, and number 1 for GETs.

  logic [1:0] packet_valid, packet_ready, packet_last, packet_route;
  logic [1:0][3:0] packet_to;
  logic [1:0][127:0] packet_data;
  logic [$clog2(PackBeats):0] pack_room;
  logic [$clog2(PackPackets):0] pack_packets;
  logic [1:0] sent_valid;
  logic sent_failed;
  logic goes_valid, goes_last, goes_channel, goes_route;
  logic [  3:0] goes_to;
  logic [127:0] goes_data;

  // A packet's way through the crossbar: to the own dispatch module, or into the network.
  logic pack_route, get_route;
  assign pack_route = pack_destination[8:5] != cpu;
  assign get_route  = x_destination[0][8:5] != cpu;

  // Moves wait for the packer, so that reads of the next operations are under way while the data of
  // one comes.
  move_t waiting_move, first_move;
  logic first_valid, first_ready;
  logic [$clog2(Moves):0] moves_count;
  assign waiting_move = {
    pack_last,
    pack_kind,
    pack_traffic_class,
    pack_magic,
    pack_source,
    pack_destination,
    pack_wants_event,
    pack_tail_bytes,
    pack_tail,
    pack_route,
    pack_operation,
    pack_address,
    pack_bytes
  };

  stream_fifo #(
      // What it says, whether it is the last, its way, and its operation.
      .Width(SaysWidth + 1 + 1 + PlaceWidth + 1),
      .Depth(Moves)
  ) u_moves (
      .clk,
      .rst,
      .in_valid (pack_valid),
      .in_ready (pack_ready),
      .in_data  (waiting_move),
      .out_valid(first_valid),
      .out_ready(first_ready),
      .out_data (first_move),
      .count    (moves_count)
  );

  packer #(
      .Beats         (PackBeats),
      .Packets       (PackPackets),
      .Payload       (Payload),
      .Longest       (LongestNap),
      .RouteWidth    (1),
      .OperationWidth(PlaceWidth + 1)
  ) u_packer (
      .clk,
      .rst,
      .move_valid        (first_valid),
      .move_ready        (first_ready),
      .move_last         (first_move.last),
      .move_primitive    (first_move.kind),
      .move_traffic_class(first_move.traffic_class),
      .move_magic        (first_move.magic),
      .move_source       (first_move.source),
      .move_destination  (first_move.destination),
      .move_wants_event  (first_move.wants_event),
      .move_tail_bytes   (first_move.tail_bytes),
      .move_tail         (first_move.tail),
      .move_route        (first_move.route),
      .move_operation    (first_move.operation),
      .move_address      (first_move.address),
      .move_bytes        (first_move.bytes),
      .in_valid          (join_valid),
      .in_ready          (join_ready),
      .in_ends           (join_ends),
      .in_failed         (join_failed),
      .in_from           (join_from),
      .in_to             (join_to),
      .in_data           (join_data),
      .room              (pack_room),
      .packets           (pack_packets),
      .out_valid         (packet_valid[0]),
      .out_ready         (packet_ready[0]),
      .out_last          (packet_last[0]),
      .out_to            (packet_to[0]),
      .out_route         (packet_route[0]),
      .out_data          (packet_data[0]),
      .sent_valid        (sent_valid[0]),
      .sent_ready        (1'b1),
      .sent_failed,
      .sent_operation
  );

  assign packet_to[1] = 4'd15;

  get_packer #(
      .Gets          (Gets),
      .GetBeats      (Longest),
      .RouteWidth    (1),
      .OperationWidth(PlaceWidth + 1)
  ) u_get_packer (
      .clk,
      .rst,
      .move_valid        (get_move_valid),
      .move_ready        (get_move_ready),
      .move_traffic_class(x_traffic_class[0]),
      .move_magic        (x_magic[0]),
      .move_source       (x_source[0]),
      .move_destination  (x_destination[0]),
      .move_bytes        (x_bytes[0][12:0]),
      .move_route        (get_route),
      .move_operation    ({1'b0, place}),
      .in_valid          (get_data_valid),
      .in_ready          (get_data_ready),
      .in_ends           (x_data_ends[0]),
      .in_data           (x_data[0]),
      .credit            (get_credit),
      .out_valid         (packet_valid[1]),
      .out_ready         (packet_ready[1]),
      .out_last          (packet_last[1]),
      .out_route         (packet_route[1]),
      .out_data          (packet_data[1]),
      .sent_valid        (sent_valid[1]),
      .sent_ready        (1'b1),
      .sent_operation    (sent_get)
  );

  logic [1:0][1:0] xbar_ready;
  logic [1:0] xbar_granted, xbar_valid, xbar_last, xbar_class;
  logic [1:0][131:0] xbar_data;
  logic [1:0][1:0][$clog2(Packets+1)-1:0] xbar_credits;
  logic [1:0][1:0][CountWidth-1:0] xbar_packets;
  logic dispatch_ready;
  logic [1:0] dispatch_credit;

  packet_arb #(
      .Inputs    (2),
      .Channels  (2),
      .RouteWidth(1)
  ) u_packet_arb (
      .clk,
      .rst,
      .in_valid   (packet_valid),
      .in_ready   (packet_ready),
      .in_last    (packet_last),
      .in_to      (packet_to),
      .in_channel (2'b10),
      .in_route   (packet_route),
      .in_data    (packet_data),
      .out_ready  (xbar_ready[0]),
      .out_valid  (goes_valid),
      .out_last   (goes_last),
      .out_to     (goes_to),
      .out_channel(goes_channel),
      .out_route  (goes_route),
      .out_data   (goes_data)
  );

  // Port 0 is the interface itself, and port 1 the network.
  logic from_taken;
  assign from_ready = xbar_ready[1];
  assign from_taken = from_valid && from_ready[from_class];

  xbar #(
      .Ports   (2),
      .Channels(2),
      .Depth   (Depth),
      .Room    (Room),
      .Beats   (XbarBeats),
      .Width   (132),
      .Classes (2),
      .Credits (Packets)
  ) u_xbar (
      .clk,
      .rst,
      .in_valid  ({from_taken, goes_valid}),
      .in_ready  (xbar_ready),
      .in_channel({from_class, goes_channel}),
      .in_output ({1'b0, goes_route}),
      .in_class  ({from_class, goes_channel}),
      .in_last   ({from_last, goes_last}),
      .in_data   ({from_to, from_data, goes_to, goes_data}),
      .granted   (xbar_granted),
      .out_valid (xbar_valid),
      .out_ready ({to_ready, dispatch_ready}),
      .out_class (xbar_class),
      .out_last  (xbar_last),
      .out_data  (xbar_data),
      .credit    ({to_credit, dispatch_credit}),
      .credits   (xbar_credits),
      .packets   (xbar_packets)
  );

  assign to_valid = xbar_valid[1];
  assign to_class = xbar_class[1];
  assign to_last = xbar_last[1];
  assign {to_to, to_data} = xbar_data[1];

  net_credit #(
      .CountWidth(CountWidth)
  ) u_net_credit (
      .clk,
      .rst,
      .in_taken(from_taken),
      .in_class(from_class),
      .in_last (from_last),
      .packets (xbar_packets[1]),
      .credit  (from_credit)
  );

  // ---- Packets that come: GETs go to the second extract, and others to host memory.

  logic get_asks, get_fits, get_wrong, came_valid, came_ready, came_last;
  logic [4:0] get_asks_pair, upload_pair, take_pair;
  logic [7:0] get_asks_key, upload_key;
  logic [  3:0] came_to;
  logic [127:0] came_data;
  logic [  4:0] dispatch_told;
  logic [  5:0] upload_told;
  logic upload_asks, upload_fits, upload_wrong, target_valid, target_fits, target_wrong;
  logic [2:0] target_function;
  logic [39:0] target_address, slot;
  logic [12:0] target_length;
  logic take_valid, take_ready, lacks_list, lacks_slot;
  logic upload_event_valid, upload_event_ready, upload_lacks_ring, upload_lacks_place;
  logic [5:0] upload_ring, event_ring;
  logic [254:0] upload_record, event_record;
  logic upload_valid, upload_ready, upload_last;
  logic [  2:0] upload_function;
  logic [ 39:0] upload_address;
  logic [ 12:0] upload_bytes;
  logic [127:0] upload_data;

  rx_dispatch #(
      .Packets  (Packets),
      .Gets     (Gets),
      .DataBeats(DataBeats),
      .GetBeats (Longest)
  ) u_rx_dispatch (
      .clk,
      .rst,
      .cpu,
      .in_valid    (xbar_valid[0]),
      .in_ready    (dispatch_ready),
      .in_class    (xbar_class[0]),
      .in_last     (xbar_last[0]),
      .in_to       (xbar_data[0][131:128]),
      .in_data     (xbar_data[0][127:0]),
      .credit      (dispatch_credit),
      .packet_valid(get_asks),
      .packet_pair (get_asks_pair),
      .packet_key  (get_asks_key),
      .packet_fits (get_fits),
      .out_valid   (came_valid),
      .out_ready   (came_ready),
      .out_last    (came_last),
      .out_to      (came_to),
      .out_data    (came_data),
      .get_valid,
      .get_ready   (word_ready[1]),
      .get_last,
      .get_word,
      .get_source,
      .get_pair,
      .unknown     (dispatch_told[0]),
      .misrouted   (dispatch_told[1]),
      .oversized   (dispatch_told[2]),
      .refused     (dispatch_told[3]),
      .mismatched  (dispatch_told[4])
  );

  upload #(
      .MaxPayload(Write)
  ) u_upload (
      .clk,
      .rst,
      .cpu,
      .in_valid    (came_valid),
      .in_ready    (came_ready),
      .in_last     (came_last),
      .in_to       (came_to),
      .in_data     (came_data),
      .packet_valid(upload_asks),
      .packet_pair (upload_pair),
      .packet_key  (upload_key),
      .packet_fits (upload_fits),
      .target_valid,
      .target_function,
      .target_address,
      .target_length,
      .target_fits,
      .take_valid,
      .take_ready,
      .take_pair,
      .lacks_list,
      .slot,
      .event_valid (upload_event_valid),
      .event_ready (upload_event_ready),
      .event_ring  (upload_ring),
      .event_record(upload_record),
      .lacks_ring  (upload_lacks_ring),
      .lacks_place (upload_lacks_place),
      .out_valid   (upload_valid),
      .out_ready   (upload_ready),
      .out_last    (upload_last),
      .out_function(upload_function),
      .out_address (upload_address),
      .out_bytes   (upload_bytes),
      .out_data    (upload_data),
      .unknown     (upload_told[0]),
      .refused     (upload_told[1]),
      .outside     (upload_told[2]),
      .closed      (upload_told[3]),
      .passed_over (upload_told[4]),
      .mismatched  (upload_told[5])
  );

  logic [31:0] wrong_packets, wrong_targets;
  logic source_wrong;

  key_window u_key_window (
      .clk,
      .rst,
      .host_valid   (keys_valid),
      .host_window  (keys_window),
      .host_function(keys_function),
      .host_base    (keys_base),
      .host_pages   (keys_pages),
      .host_pair    (keys_pair),
      .host_opens   (keys_opens),
      .host_key     (keys_key),
      .refused      (refused[0]),
      .packet_valid (upload_asks),
      .packet_pair  (upload_pair),
      .packet_key   (upload_key),
      .packet_fits  (upload_fits),
      .packet_wrong (upload_wrong),
      .get_valid    (get_asks),
      .get_pair     (get_asks_pair),
      .get_key      (get_asks_key),
      .get_fits,
      .get_wrong,
      .target_valid,
      .target_function,
      .target_address,
      .target_length(40'(target_length)),
      .target_fits,
      .target_wrong,
      .source_valid,
      .source_function,
      .source_address,
      .source_length,
      .source_fits,
      .source_wrong,
      .wrong_packets,
      .wrong_targets
  );

  // ---- Slots.

  logic slots_read_valid, slots_read_ready, entry_valid, entry_ready, entry_failed;
  logic [4:0] slots_read_pair, slots_ask_pair, entry_pair, slots_told_pair;
  logic [39:0] slots_read_address;
  logic [BatchWidth-1:0] slots_read_count;
  logic [63:0] entry_word;
  logic [$clog2(Slots > 1 ? Slots : 2):0] cached;
  logic [4:0] slots_told;

  slot_cache #(
      .Slots(Slots),
      .Batch(Batch)
  ) u_slot_cache (
      .clk,
      .rst,
      .host_valid  (slots_valid),
      .host_opens  (slots_opens),
      .host_pair   (slots_pair),
      .host_page   (slots_page),
      .host_count  (slots_count),
      .refused     (refused[2]),
      .take_valid,
      .take_ready,
      .take_pair,
      .lacks_list,
      .lacks_slot,
      .cached,
      .slot,
      .read_valid  (slots_read_valid),
      .read_ready  (slots_read_ready),
      .read_pair   (slots_read_pair),
      .read_address(slots_read_address),
      .read_count  (slots_read_count),
      .in_valid    (entry_valid),
      .in_ready    (entry_ready),
      .in_pair     (entry_pair),
      .in_failed   (entry_failed),
      .in_word     (entry_word),
      .unexpected  (slots_told[0]),
      .failed      (slots_told[1]),
      .misplaced   (slots_told[2]),
      .told_pair   (slots_told_pair)
  );

  slot_read #(
      .Batch(Batch)
  ) u_slot_read (
      .clk,
      .rst,
      .read_valid  (slots_read_valid),
      .read_ready  (slots_read_ready),
      .read_pair   (slots_read_pair),
      .read_address(slots_read_address),
      .read_count  (slots_read_count),
      .ask_valid   (ask_valid[2]),
      .ask_ready   (ask_ready[2]),
      .ask_pair    (slots_ask_pair),
      .ask_address (ask_address[2]),
      .ask_bytes   (ask_bytes[2]),
      .in_valid    (own_valid[2]),
      .in_last,
      .in_failed,
      .in_bytes,
      .in_remaining,
      .in_data,
      .lost_valid  (own_lost[2]),
      .free_valid  (free_valid[2]),
      .unexpected  (slots_told[3]),
      .mismatched  (slots_told[4]),
      .entry_valid,
      .entry_ready,
      .entry_pair,
      .entry_failed,
      .entry_word
  );

  // A function has four queue pairs, and each of these two rings.
  assign ask_function[2] = slots_ask_pair[4:2];

  // ---- Events and writes.

  logic event_valid, event_ready, lacks_ring, lacks_place, events_dropped;
  logic [ 2:0] events_dropped_function;
  logic [31:0] events_count;
  logic [12:0] ask_room;
  logic ring_valid, ring_ready;
  logic [  5:0] ring;
  logic [ 39:0] ring_address;
  logic [255:0] ring_event;

  send_event #(
      .Depth(Events)
  ) u_send_event (
      .clk,
      .rst,
      .move_valid      (place_valid),
      .move_ready      (place_ready),
      .move_place      (place),
      .move_function,
      .move_pair       (x_source[0][1:0]),
      .move_peer       (x_destination[0]),
      .move_primitive  (x_kind[0]),
      .move_tail_bytes (x_tail_bytes[0]),
      .move_tail       (x_tail[0]),
      .move_total      (x_move_total[0]),
      .move_descriptor (x_move_descriptor[0]),
      .sent_valid      ({sent_valid[1], sent_valid[0] && !sent_operation[PlaceWidth]}),
      .sent_failed     ({1'b0, sent_failed}),
      .sent_place      ({sent_get[PlaceWidth-1:0], sent_operation[PlaceWidth-1:0]}),
      .report_valid    (x_report_valid[0]),
      .report_ready    (x_report_ready[0]),
      .report_status   (x_report_status[0]),
      .report_function (x_report_function[0]),
      .report_pair     (x_report_pair[0]),
      .report_peer     (x_report_peer[0]),
      .report_primitive(x_report_primitive[0]),
      .report_address  (x_report_address[0]),
      .room,
      .upload_valid    (upload_event_valid),
      .upload_ready    (upload_event_ready),
      .upload_ring,
      .upload_record,
      .upload_lacks_ring,
      .upload_lacks_place,
      .event_valid,
      .event_ready,
      .event_ring,
      .event_record,
      .lacks_ring,
      .lacks_place,
      .dropped_valid   (events_dropped),
      .dropped_function(events_dropped_function),
      .dropped         (events_count)
  );

  event_ring u_event_ring (
      .clk,
      .rst,
      .host_valid (rings_valid),
      .host_opens (rings_opens),
      .host_ring  (rings_ring),
      .host_base  (rings_base),
      .host_count (rings_count),
      .refused    (refused[1]),
      .in_valid   (event_valid),
      .in_ready   (event_ready),
      .in_ring    (event_ring),
      .in_event   (event_record),
      .lacks_ring,
      .lacks_place,
      .ask_ring   ('0),
      .ask_room,
      .out_valid  (ring_valid),
      .out_ready  (ring_ready),
      .out_ring   (ring),
      .out_address(ring_address),
      .out_event  (ring_event)
  );

  write_arb u_write_arb (
      .clk,
      .rst,
      .upload_valid,
      .upload_ready,
      .upload_last,
      .upload_function,
      .upload_address,
      .upload_bytes,
      .upload_data,
      .event_valid   (ring_valid),
      .event_ready   (ring_ready),
      .event_function(ring[5:3]),
      .event_address (ring_address),
      .event_record  (ring_event),
      .out_valid     (write_valid),
      .out_ready     (write_ready),
      .out_last      (write_last),
      .out_function  (write_function),
      .out_address   (write_address),
      .out_bytes     (write_bytes),
      .out_data      (write_data)
  );

  assign told = {
    tag_refused,
    unexpected,
    slots_told[4],
    slots_told[3],
    slots_told[2],
    slots_told[1],
    slots_told[0],
    events_dropped,
    upload_told,
    dispatch_told,
    data_mismatched,
    data_unexpected,
    x_dropped[1],
    fetch_mismatched,
    fetch_unexpected,
    fifo_dropped,
    bell_dropped
  };

  assign counts = {wrong_targets, wrong_packets, events_count, fifo_count, bell_count};

  // What nobody reads: counts of places, and what others say better.
  logic unused;
  assign unused = ^{
    fifo_dropped_function, fifo_waiting, in_use, fetch_free_tag, data_free_tag, fetch_first,
    x_move_remote, x_move_operation, x_data_get[1], x_dropped[0], x_report_valid[1],
    x_report_status[1], x_report_function[1], x_report_pair[1], x_report_peer[1],
    x_report_primitive[1], x_report_address[1], x_move_descriptor[1], memory_room, memory_reads,
    moves_count, pack_room, pack_packets, sent_get[PlaceWidth], xbar_granted, xbar_credits, get_wrong,
    upload_wrong, target_wrong, source_wrong, lacks_slot, cached, slots_told_pair,
    events_dropped_function, ask_room, xbar_packets[0], slots_ask_pair[1:0], ring[2:0]
  };

endmodule
