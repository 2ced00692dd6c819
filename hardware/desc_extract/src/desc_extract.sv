// Takes descriptors apart: reads and moves, beats of data, or a report (C-25, C-28, C-29, C-34).
//
// A descriptor is stored as it comes, and checked as a whole before anything of it leaves. It lies
// in two memories, so that its sources and its destinations are looked up side by side: data goes
// on being asked for while the packer waits, and the other way round.
//
// If the last word of a descriptor is taken in cycle t, its report is offered from t + 2 on, its
// first move and beat of data from t + 4 on, and its first read from t + 5 on.
module desc_extract #(
    // Descriptors that are right and have not left; beats of 16 bytes of a descriptor and of a
    // read: powers of two. Reads end at multiples of the latter.
    parameter int unsigned Places = 2,
    parameter int unsigned Beats = 256,
    parameter int unsigned Request = 8,
    // Bytes of a NAP, at most.
    parameter int unsigned Longest = 2048,
    parameter int unsigned AddressWidth = 40,
    localparam int unsigned Width = 128,
    localparam int unsigned WordWidth = 64,
    localparam int unsigned LaneWidth = $clog2(Width / 8),
    localparam int unsigned SizeWidth = 13,
    localparam int unsigned CpuWidth = 4,
    localparam int unsigned FunctionWidth = 3,
    localparam int unsigned PairWidth = 2,
    localparam int unsigned EndWidth = CpuWidth + FunctionWidth + PairWidth,
    localparam int unsigned OperationWidth = 8
) (
    input logic clk,
    input logic rst,

    // The own processor, and how many there are.
    input logic [CpuWidth-1:0] cpu,
    input logic [  CpuWidth:0] cpus,

    // A word of a descriptor. What is said of the descriptor stands with each.
    input  logic                     in_valid,
    output logic                     in_ready,
    input  logic                     in_last,
    input  logic                     in_failed,
    input  logic                     in_refused,
    // It has come in a GET, which `in_peer` has sent to the own queue pair `in_pair`.
    input  logic                     in_remote,
    input  logic [FunctionWidth-1:0] in_function,
    input  logic [    PairWidth-1:0] in_pair,
    input  logic [     EndWidth-1:0] in_peer,
    input  logic [ AddressWidth-1:0] in_address,
    input  logic [    WordWidth-1:0] in_word,

    // Asks whether a source lies in the function's window; the answer counts in the next cycle.
    output logic                     source_valid,
    output logic [FunctionWidth-1:0] source_function,
    output logic [ AddressWidth-1:0] source_address,
    output logic [ AddressWidth-1:0] source_length,
    input  logic                     source_fits,

    // A read of data, and its function; the last one of its operation has `read_ends`.
    output logic                     read_valid,
    input  logic                     read_ready,
    output logic                     read_ends,
    output logic [FunctionWidth-1:0] read_function,
    output logic [ AddressWidth-1:0] read_address,
    output logic [    SizeWidth-1:0] read_bytes,

    // A move for the packer, or for that of GETs.
    output logic                      move_valid,
    input  logic                      move_ready,
    output logic                      move_last,
    output logic                      move_remote,
    output logic [               3:0] move_primitive,
    output logic [               2:0] move_traffic_class,
    output logic [               7:0] move_magic,
    output logic [      EndWidth-1:0] move_source,
    output logic [      EndWidth-1:0] move_destination,
    output logic                      move_wants_event,
    output logic [               4:0] move_tail_bytes,
    output logic [         Width-1:0] move_tail,
    output logic [OperationWidth-1:0] move_operation,
    output logic [  AddressWidth-1:0] move_address,
    output logic [  AddressWidth-1:0] move_bytes,
    output logic [  AddressWidth-1:0] move_total,
    output logic [  AddressWidth-1:0] move_descriptor,

    // A beat of immediate data, or of the descriptor of a GET.
    output logic                 data_valid,
    input  logic                 data_ready,
    output logic                 data_ends,
    output logic                 data_get,
    output logic [LaneWidth-1:0] data_to,
    output logic [    Width-1:0] data,

    // A descriptor that was refused; that of a GET from elsewhere is only counted.
    output logic                     report_valid,
    input  logic                     report_ready,
    output logic [              2:0] report_status,
    output logic [FunctionWidth-1:0] report_function,
    output logic [    PairWidth-1:0] report_pair,
    output logic [     EndWidth-1:0] report_peer,
    output logic [              3:0] report_primitive,
    output logic [ AddressWidth-1:0] report_address,
    output logic                     dropped
);

  localparam int unsigned PlaceWidth = (Places > 1) ? $clog2(Places) : 1;
  localparam int unsigned BeatWidth = (Beats > 1) ? $clog2(Beats) : 1;
  localparam int unsigned MostEntries = 254;
  localparam int unsigned MostTail = 16;
  localparam int unsigned RequestBytes = Request * (Width / 8);
  localparam logic [3:0] Nap = 4'b0101;
  localparam logic [3:0] Put = 4'b0110;
  localparam logic [3:0] Get = 4'b0111;
  localparam logic [2:0] Success = 3'd0;
  localparam logic [2:0] BadDescriptor = 3'd1;
  localparam logic [2:0] UnequalSums = 3'd2;
  localparam logic [2:0] SourceFault = 3'd3;
  localparam logic [2:0] Unreachable = 3'd5;

  if (Places != 2 ** PlaceWidth) begin : g_places
    $error("desc_extract: Places is a power of two, and at least 2");
  end
  if (Beats != 2 ** BeatWidth || Beats * (Width / 8) > 2 ** (SizeWidth - 1)) begin : g_beats
    $error("desc_extract: Beats is a power of two, at least 2, and at most 256");
  end
  if (Request < 1 || Request != 2 ** $clog2(
          Request
      ) || RequestBytes > 2 ** (SizeWidth - 1)) begin : g_request
    $error("desc_extract: Request is a power of two, and at most 256");
  end
  if (Longest > 2048 || AddressWidth < 8 || AddressWidth > 62) begin : g_longest
    $error("desc_extract: Longest is at most 2048, and AddressWidth from 8 to 62");
  end

  typedef logic [PlaceWidth-1:0] place_t;
  typedef logic [PlaceWidth:0] places_t;
  // The number of a beat, or of the first one behind all.
  typedef logic [BeatWidth:0] beats_t;
  // The number of a beat by what a header says, which may be more than there are.
  typedef logic [9:0] part_t;
  typedef logic [AddressWidth-1:0] address_t;
  typedef logic [AddressWidth:0] sum_t;
  typedef logic [EndWidth-1:0] end_t;

  localparam address_t RequestMask = address_t'(RequestBytes) - address_t'(1);

  // What a header says.
  typedef struct packed {
    logic [7:0] destinations;
    logic [7:0] sources;
    end_t       destination;
    logic [7:0] return_magic;
    logic [1:0] pair;
    logic [2:0] traffic_class;
    logic [7:0] magic;
    logic       wants_event;
    logic       is_immediate;
    logic [3:0] kind;
  } header_t;

  // A descriptor that is right. Sources and destinations end before the beats `from_end` and
  // `to_end`.
  typedef struct packed {
    logic                               remote;
    logic [3:0]                         kind;
    logic [2:0]                         traffic_class;
    logic [7:0]                         magic;
    logic [FunctionWidth+PairWidth-1:0] source;
    end_t                               destination;
    logic                               wants_event;
    logic [4:0]                         tail_bytes;
    logic                               is_data;
    logic                               is_single;
    beats_t                             from_end;
    beats_t                             to_begin;
    beats_t                             to_end;
    beats_t                             tail_at;
    address_t                           total;
    address_t                           descriptor;
  } operation_t;

  place_t oldest, newest;
  places_t kept;
  operation_t verdict;
  logic [$bits(verdict)-1:0] operations[Places];
  assign newest = oldest + place_t'(kept);

  // ---- The descriptor that comes: its beats so far, and what was seen of them.

  beats_t at;
  logic half, judging, bad, bad_tail, fault, asked;
  logic [WordWidth-1:0] low;
  header_t header;
  logic [4:0] tail_bytes;
  logic [11:0] immediate_bytes;
  // The last beat of the destinations, and of immediate data.
  part_t destinations_end, immediate_end;
  address_t sources_sum, destinations_sum;
  logic remote;
  logic [FunctionWidth-1:0] of_function;
  logic [PairWidth-1:0] of_pair;
  end_t peer;
  address_t descriptor;

  logic takes, is_full, is_source, is_destination, is_immediate, is_tail, has_tail, is_far;
  assign in_ready = kept != places_t'(Places) && !judging;
  assign takes = in_valid && in_ready;
  assign is_full = at == beats_t'(Beats);
  assign has_tail = tail_bytes != '0;
  assign is_source = at != '0 && part_t'(at) <= part_t'(header.sources);
  assign is_destination = part_t'(at) > part_t'(header.sources) && part_t'(at) <= destinations_end;
  assign is_immediate = at != '0 && part_t'(at) > destinations_end && part_t'(at) <= immediate_end;
  assign is_tail = at != '0 && has_tail && part_t'(at) == immediate_end + part_t'(1);

  // An entry must end in the memory that there is, and a list must not have as many bytes.
  logic [AddressWidth+1:0] entry_end;
  sum_t sources_next, destinations_next;
  logic is_outside;
  assign entry_end = {1'b0, low[AddressWidth:0]} + {1'b0, in_word[AddressWidth:0]};
  assign is_outside = low[WordWidth-1:AddressWidth+1] != '0
      || in_word[WordWidth-1:AddressWidth+1] != '0
      || entry_end > {2'b01, AddressWidth'(0)};
  assign sources_next = {1'b0, sources_sum} + in_word[AddressWidth:0];
  assign destinations_next = {1'b0, destinations_sum} + in_word[AddressWidth:0];

  // Bytes behind the last one of a part are zero.
  logic [4:0] used;
  logic has_padding;
  always_comb begin
    used = is_tail ? tail_bytes
        : (part_t'(at) != immediate_end || immediate_bytes[3:0] == '0) ? 5'd16
        : {1'b0, immediate_bytes[3:0]};
    has_padding = 1'b0;
    for (int unsigned lane = 0; lane < WordWidth / 8; lane++) begin
      if (in_word[8*lane+:8] != '0 && {1'b0, half, lane[2:0]} >= used) has_padding = 1'b1;
    end
  end

  // A function must have its sources in its window (C-39). Those of a GET lie elsewhere.
  assign is_far = header.kind == Get && !in_remote;
  assign source_valid = takes && half && is_source && !is_full && !is_far
      && in_word[AddressWidth-1:0] != '0;
  assign source_function = in_function;
  assign source_address = low[AddressWidth-1:0];
  assign source_length = in_word[AddressWidth-1:0];

  // ---- Its verdict, once it has come to its end.

  logic is_nap, is_put, is_get, is_chain, is_bad, faults;
  part_t beats_said;
  end_t far;
  logic [2:0] status;
  assign is_nap = header.kind == Nap;
  assign is_put = header.kind == Put;
  assign is_get = header.kind == Get;
  assign is_chain = is_put || is_get;
  assign beats_said = immediate_end + part_t'(1) + part_t'(has_tail);
  assign far = remote ? peer : header.destination;
  assign faults = fault || (asked && !source_fits);
  assign is_bad = bad || half || part_t'(at) != beats_said
      || destinations_end > part_t'(MostEntries)
      || 32'(immediate_bytes) > Longest || 32'(tail_bytes) > MostTail
      || !(is_nap || is_chain) || (remote && !is_get)
      || (is_nap && header.destinations != '0)
      || (is_nap && header.is_immediate && header.sources != '0)
      || (is_nap && !header.is_immediate && immediate_bytes != '0)
      || (is_nap && 64'(sources_sum) > 64'(Longest))
      || (is_chain && (header.is_immediate || immediate_bytes != '0))
      || (!is_get && header.return_magic != '0);
  always_comb begin
    status = Success;
    if (is_bad) status = BadDescriptor;
    // Nothing moves if the lists differ (C-29).
    else if (is_chain && sources_sum != destinations_sum) status = UnequalSums;
    else if (bad_tail) status = BadDescriptor;
    else if ({1'b0, far[EndWidth-1-:CpuWidth]} >= cpus) status = Unreachable;
    else if (faults) status = SourceFault;
  end

  logic keeps, reports, drops, finishes;
  assign keeps   = judging && status == Success;
  assign drops   = judging && status != Success && remote;
  assign reports = judging && status != Success && !remote && (!report_valid || report_ready);

  // A GET from here leaves as it is. One from elsewhere is answered by a PUT (C-25).
  // A PUT without bytes has one move, as its packet brings event and tail.
  logic sends_get, is_single;
  beats_t to_begin;
  assign sends_get = is_get && !remote;
  assign is_single = is_nap || sends_get || sources_sum == '0;
  assign to_begin = beats_t'(header.sources) + beats_t'(1);
  assign verdict.remote = remote;
  assign verdict.kind = remote ? Put : header.kind;
  assign verdict.traffic_class = header.traffic_class;
  assign verdict.magic = remote ? header.return_magic : header.magic;
  assign verdict.source = {of_function, remote ? of_pair : header.pair};
  assign verdict.destination = far;
  assign verdict.wants_event = is_nap || (header.wants_event && !sends_get);
  assign verdict.tail_bytes = sends_get ? '0 : tail_bytes;
  assign verdict.is_data = sends_get || header.is_immediate;
  assign verdict.is_single = is_single;
  assign verdict.from_end = sends_get ? at
      : header.is_immediate ? beats_t'(immediate_end) + beats_t'(1) : to_begin;
  assign verdict.to_begin = to_begin;
  assign verdict.to_end = is_single ? to_begin : beats_t'(destinations_end) + beats_t'(1);
  assign verdict.tail_at = at - beats_t'(1);
  assign verdict.total = sends_get ? address_t'({at, LaneWidth'(0)})
      : header.is_immediate ? address_t'(immediate_bytes) : sources_sum;
  assign verdict.descriptor = descriptor;

  always_ff @(posedge clk) begin
    if (takes) begin
      remote <= in_remote;
      of_function <= in_function;
      of_pair <= in_pair;
      peer <= in_peer;
      descriptor <= in_address;
      low <= in_word;
      if (at == '0 && !half) begin
        header <= {
          in_word[63:48],
          in_word[40:32],
          in_word[31:24],
          in_word[21:20],
          in_word[18:16],
          in_word[15:8],
          in_word[5:0]
        };
      end
      if (at == '0 && half) begin
        tail_bytes <= in_word[20:16];
        immediate_bytes <= in_word[11:0];
        destinations_end <= part_t'(header.sources) + part_t'(header.destinations);
        immediate_end <= part_t'(header.sources) + part_t'(header.destinations)
            + part_t'(in_word[11:4]) + part_t'(in_word[3:0] != '0);
      end
      if (half && is_source) sources_sum <= sources_next[AddressWidth-1:0];
      if (half && is_destination) destinations_sum <= destinations_next[AddressWidth-1:0];
      if (at == '0 && !half) begin
        sources_sum <= '0;
        destinations_sum <= '0;
      end
    end
    if (keeps) operations[newest] <= verdict;
    asked   <= source_valid;
    dropped <= drops && !rst;

    if (reports) begin
      report_status <= status;
      report_function <= of_function;
      report_pair <= (status == BadDescriptor) ? '0 : header.pair;
      report_peer <= (status == BadDescriptor) ? {cpu, of_function, PairWidth'(0)}
          : header.destination;
      report_primitive <= (status == BadDescriptor) ? Nap : header.kind;
      report_address <= descriptor;
    end

    if (rst) begin
      at <= '0;
      {half, judging, bad, bad_tail, fault, asked} <= '0;
      report_valid <= 1'b0;
    end else begin
      report_valid <= reports || (report_valid && !report_ready);
      fault <= faults;
      if (takes) begin
        judging <= in_last;
        if (is_full) bad <= 1'b1;
        else {at, half} <= {at, half} + (BeatWidth + 2)'(1);
        if (in_failed || in_refused) bad <= 1'b1;
        if (at == '0 && !half
            && (in_word[47:41] != '0 || in_word[23:22] != '0 || in_word[19] || in_word[7:6] != '0))
          bad <= 1'b1;
        if (at == '0 && half && (in_word[63:21] != '0 || in_word[15:12] != '0)) bad <= 1'b1;
        if (half && (is_source || is_destination) && is_outside) bad <= 1'b1;
        if (half && is_source && sources_next[AddressWidth]) bad <= 1'b1;
        if (half && is_destination && destinations_next[AddressWidth]) bad <= 1'b1;
        if (is_immediate && has_padding) bad <= 1'b1;
        if (is_tail && has_padding) bad_tail <= 1'b1;
      end
      if (keeps || drops || reports) begin
        at <= '0;
        {half, judging, bad, bad_tail, fault} <= '0;
      end
    end
  end

  // ---- The operation that leaves.

  logic busy, begins;
  operation_t current, next;
  logic [OperationWidth-1:0] number;
  assign begins = !busy && kept != '0;
  assign next   = operations[oldest];

  // These two count when it begins only.
  logic unused;
  assign unused = ^{current.is_single, current.to_begin};

  // A list or data: the next beat, and whether one has been fetched.
  beats_t from_at, to_at;
  logic from_ahead, to_ahead;
  logic [Width-1:0] from_beat, to_beat;
  // The tail is fetched before the destinations. The one move of an operation is to be made.
  logic tail_next, tail_ahead, single_next;
  // Bytes of the entry that is offered, and of all that were not taken.
  address_t read_length, read_left, move_left;

  logic from_has, to_has, from_takes, to_takes, from_fetches, to_fetches, read_gone, move_gone;
  address_t to_end;
  assign from_has = busy && from_at != current.from_end;
  assign to_has = busy && to_at != current.to_end;
  assign to_end = address_t'(RequestBytes) - (read_address & RequestMask);
  assign read_bytes = (64'(read_length) < 64'(to_end)) ? SizeWidth'(read_length)
      : SizeWidth'(to_end);
  assign read_ends = address_t'(read_bytes) == read_left;
  assign read_gone = read_valid && read_ready && address_t'(read_bytes) == read_length;
  assign move_last = move_bytes == move_left;
  assign move_gone = move_valid && move_ready;
  assign from_takes = from_ahead && (current.is_data ? data_ready : !read_valid || read_gone);
  assign to_takes = to_ahead && (!move_valid || move_gone);
  assign from_fetches = from_has && (!from_ahead || from_takes);
  assign to_fetches = busy && !tail_next && to_has && (!to_ahead || to_takes);
  assign finishes = busy && !from_has && !from_ahead && !read_valid && !to_has && !to_ahead
      && !move_valid && !tail_next && !single_next;

  assign data_valid = from_ahead && current.is_data;
  assign data_ends = !from_has;
  assign data_get = current.kind == Get;
  assign data_to = data_ends ? current.total[LaneWidth-1:0] - LaneWidth'(1) : '1;
  assign data = from_beat;

  assign read_function = current.source[PairWidth+:FunctionWidth];
  assign move_remote = current.remote;
  assign move_primitive = current.kind;
  assign move_traffic_class = current.traffic_class;
  assign move_magic = current.magic;
  assign move_source = {cpu, current.source};
  assign move_destination = current.destination;
  assign move_wants_event = current.wants_event;
  assign move_tail_bytes = current.tail_bytes;
  assign move_operation = number;
  assign move_total = current.total;
  assign move_descriptor = current.descriptor;

  always_ff @(posedge clk) begin
    if (rst) begin
      oldest <= '0;
      kept <= '0;
      number <= '0;
      {busy, from_ahead, to_ahead, tail_next, tail_ahead, single_next} <= '0;
      {read_valid, move_valid} <= '0;
    end else begin
      kept <= kept + places_t'(keeps) - places_t'(finishes);
      oldest <= oldest + place_t'(finishes);
      number <= number + OperationWidth'(finishes);
      busy <= begins || (busy && !finishes);
      from_ahead <= from_fetches || (from_ahead && !from_takes);
      to_ahead <= to_fetches || tail_next || (to_ahead && !to_takes);
      tail_ahead <= tail_next;
      tail_next <= begins && next.tail_bytes != '0;
      if (begins) single_next <= next.is_single;
      else if (!tail_next && !tail_ahead) single_next <= 1'b0;
      if (from_takes && !current.is_data) read_valid <= from_beat[WordWidth+:AddressWidth] != '0;
      else if (read_gone) read_valid <= 1'b0;
      if (to_takes && !tail_ahead) move_valid <= to_beat[WordWidth+:AddressWidth] != '0;
      else if (single_next && !tail_next && !tail_ahead) move_valid <= 1'b1;
      else if (move_gone) move_valid <= 1'b0;
    end

    if (begins) begin
      current <= next;
      from_at <= beats_t'(next.kind != Get);
      to_at <= next.to_begin;
      read_left <= next.total;
      move_left <= next.total;
      move_tail <= '0;
    end else begin
      from_at <= from_at + beats_t'(from_fetches);
      to_at   <= to_at + beats_t'(to_fetches);
      if (read_valid && read_ready) read_left <= read_left - address_t'(read_bytes);
      if (move_gone) move_left <= move_left - move_bytes;
      if (tail_ahead) move_tail <= to_beat;
    end

    if (read_valid && read_ready) begin
      read_address <= read_address + address_t'(read_bytes);
      read_length  <= read_length - address_t'(read_bytes);
    end
    if (from_takes) begin
      read_address <= from_beat[AddressWidth-1:0];
      read_length  <= from_beat[WordWidth+:AddressWidth];
    end
    if (to_takes) begin
      move_address <= to_beat[AddressWidth-1:0];
      move_bytes   <= to_beat[WordWidth+:AddressWidth];
    end
    if (single_next && !tail_next && !tail_ahead) begin
      move_address <= '0;
      move_bytes   <= current.total;
    end
  end

  // ---- The descriptors, twice.

  logic stores;
  logic [Width-1:0] beat;
  assign stores = takes && half && !is_full;
  assign beat   = {in_word, low};

`ifdef FORMAL
  // Proofs look at all beats.
  logic [Places*Beats-1:0][Width-1:0] f_from, f_to;
`endif

  ram_1w1r #(
      .Width(Width),
      .Depth(Places * Beats)
  ) u_from (
      .clk,
      .write(stores),
      .write_address({newest, at[BeatWidth-1:0]}),
      .write_data(beat),
      .read(from_fetches),
      .read_address({oldest, from_at[BeatWidth-1:0]}),
`ifdef FORMAL
      .probe_words(f_from),
`endif
      .read_data(from_beat)
  );

  ram_1w1r #(
      .Width(Width),
      .Depth(Places * Beats)
  ) u_to (
      .clk,
      .write(stores),
      .write_address({newest, at[BeatWidth-1:0]}),
      .write_data(beat),
      .read(to_fetches || tail_next),
      .read_address({oldest, tail_next ? current.tail_at[BeatWidth-1:0] : to_at[BeatWidth-1:0]}),
`ifdef FORMAL
      .probe_words(f_to),
`endif
      .read_data(to_beat)
  );

`ifdef PROVE_DESC_EXTRACT
  `include "desc_extract_formal.svh"
`endif

endmodule
