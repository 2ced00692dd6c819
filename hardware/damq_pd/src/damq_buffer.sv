// The descriptor buffer of DAMQ-PD: one memory for all virtual ports, two lists for each.
//
// A word that comes in cycle t stands in the input register. It is written in t + 1 and takes part
// in arbitration in t + 2. It is read in t + 3 at the earliest and leaves in t + 4. Writes go back
// to back, and so do reads (D-04, D-05). Credits guarantee room for each word (D-13).
//
// The address queue has, at the address of a word, all that the next word of its list needs: its
// address, whether it is the last of its descriptor, and its ticket. So one clocked read gives a
// word's successor, and its output addresses the next read.
module damq_buffer #(
    parameter int unsigned Ports = 4,
    // Words for descriptors that come by PIO, and behind them for those that come by DMA.
    parameter int unsigned Depth = 1024,
    parameter int unsigned Landing = 128,
    parameter int unsigned Width = 256,
    parameter int unsigned TicketWidth = 16,
    localparam int unsigned PortWidth = (Ports > 1) ? $clog2(Ports) : 1,
    localparam int unsigned Words = Depth + Landing,
    localparam int unsigned AddressWidth = $clog2(Words)
) (
    input logic clk,
    input logic rst,

    // A doorbell; a word in the same cycle comes after it.
    input logic                 bell_valid,
    input logic [PortWidth-1:0] bell_port,

    // A word; `word_way` is 1 for DMA.
    input logic                 word_valid,
    input logic [PortWidth-1:0] word_port,
    input logic                 word_way,
    input logic                 word_last,
    input logic [    Width-1:0] word_data,

    // A descriptor may begin to leave; one does, from the next cycle but one on.
    input  logic ready,
    output logic selected,

    // A word that leaves.
    output logic                 valid,
    output logic [PortWidth-1:0] port,
    output logic                 way,
    output logic                 last,
    output logic [    Width-1:0] data,

    // Words inside and free words, by way; a word that found no room.
    output logic [AddressWidth:0] inside_pio,
    output logic [AddressWidth:0] inside_dma,
    output logic [AddressWidth:0] free_pio,
    output logic [AddressWidth:0] free_dma,
    output logic                  overflow
);

  if (Ports < 1 || Ports > 64 || Depth < 1 || Landing < 1) begin : g_parameters
    $error("damq_buffer: 1 to 64 ports, and words for both ways");
  end

  typedef struct packed {
    logic [TicketWidth-1:0]  ticket;
    logic                    last;
    logic [AddressWidth-1:0] address;
  } link_t;

`ifdef FORMAL
  `include "damq_buffer_probes.svh"
`endif

  // ---- The input register, and the word that is put.

  logic in_valid, in_way, in_last;
  logic [PortWidth-1:0] in_port;
  logic [Width-1:0] in_data;
  logic [TicketWidth-1:0] in_ticket, ticket;

  always_ff @(posedge clk) begin
    in_valid  <= word_valid && !rst;
    in_port   <= word_port;
    in_way    <= word_way;
    in_last   <= word_last;
    in_data   <= word_data;
    in_ticket <= ticket;
  end

  logic put, first, pio_valid, dma_valid;
  logic [AddressWidth-1:0] put_address, put_tail, pio_address, dma_address;

  assign put = in_valid && (in_way ? dma_valid : pio_valid);
  assign overflow = in_valid && !put;
  assign put_address = in_way ? dma_address : pio_address;

  // ---- The descriptor that is read.

  logic run, run_way, run_begins, run_last, ends, emptied;
  logic [PortWidth-1:0] run_port;
  logic [AddressWidth-1:0] run_address, begin_address, head_address;
  logic begin_last, head_last;
  link_t link;

  // Its first word is known from the pointers, all others from the address queue.
  assign run_address = run_begins ? begin_address : link.address;
  assign run_last = run_begins ? begin_last : link.last;
  assign ends = run && run_last;

  logic select_way;
  logic [PortWidth-1:0] select_port;
  // A list that goes on with its next descriptor finds that one's head in the address queue, too.
  logic goes_on;
  assign goes_on = ends && select_port == run_port && select_way == run_way;

  // What the address queue says of a list that ended: its new head.
  logic settle, settle_way, undecided;
  logic [PortWidth-1:0] settle_port;

  always_ff @(posedge clk) begin
    if (rst) begin
      run <= 1'b0;
      run_begins <= 1'b0;
      settle <= 1'b0;
      undecided <= 1'b0;
      valid <= 1'b0;
    end else begin
      run <= selected || (run && !ends);
      run_begins <= selected && !goes_on;
      settle <= ends && !emptied;
      undecided <= ends && defers;
      valid <= run;
    end
    if (selected) begin
      run_port <= select_port;
      run_way <= select_way;
      begin_address <= head_address;
      begin_last <= head_last;
    end
    settle_port <= run_port;
    settle_way <= run_way;
    port <= run_port;
    way <= run_way;
    last <= run_last;
  end

  // ---- Memories.

  ram_1w1r #(
      .Width(Width),
      .Depth(Words)
  ) u_data_memory (
`ifdef FORMAL
      .probe_words(f_data),
`endif
      .clk,
      .write(put),
      .write_address(put_address),
      .write_data(in_data),
      .read(run),
      .read_address(run_address),
      .read_data(data)
  );

  link_t put_link;
  assign put_link.ticket  = in_ticket;
  assign put_link.last    = in_last;
  assign put_link.address = put_address;

  ram_1w1r #(
      .Width(TicketWidth + 1 + AddressWidth),
      .Depth(Words)
  ) u_address_queue (
`ifdef FORMAL
      .probe_words(f_links),
`endif
      .clk,
      .write(put && !first),
      .write_address(put_tail),
      .write_data(put_link),
      .read(run),
      .read_address(run_address),
      .read_data(link)
  );

  localparam int unsigned PioCountWidth = $clog2(Depth > 1 ? Depth : 2) + 1;
  localparam int unsigned DmaCountWidth = $clog2(Landing > 1 ? Landing : 2) + 1;
  logic [PioCountWidth-1:0] pio_count;
  logic [DmaCountWidth-1:0] dma_count;
  assign free_pio = (AddressWidth + 1)'(pio_count);
  assign free_dma = (AddressWidth + 1)'(dma_count);

  damq_free_list #(
      .First(0),
      .Count(Depth),
      .AddressWidth(AddressWidth)
  ) u_free_pio (
`ifdef FORMAL
      .probe_fresh(f_pio_fresh),
      .probe_written(f_pio_written),
      .probe_read(f_pio_read),
      .probe_words(f_pio_words),
`endif
      .clk,
      .rst,
      .give(run && !run_way),
      .give_address(run_address),
      .take(put && !in_way),
      .valid(pio_valid),
      .address(pio_address),
      .count(pio_count)
  );

  damq_free_list #(
      .First(Depth),
      .Count(Landing),
      .AddressWidth(AddressWidth)
  ) u_free_dma (
`ifdef FORMAL
      .probe_fresh(f_dma_fresh),
      .probe_written(f_dma_written),
      .probe_read(f_dma_read),
      .probe_words(f_dma_words),
`endif
      .clk,
      .rst,
      .give(run && run_way),
      .give_address(run_address),
      .take(put && in_way),
      .valid(dma_valid),
      .address(dma_address),
      .count(dma_count)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      inside_pio <= '0;
      inside_dma <= '0;
    end else begin
      inside_pio <= inside_pio + (AddressWidth + 1)'(put && !in_way)
          - (AddressWidth + 1)'(run && !run_way);
      inside_dma <= inside_dma + (AddressWidth + 1)'(put && in_way)
          - (AddressWidth + 1)'(run && run_way);
    end
  end

  // ---- Pointers and order.

  localparam int unsigned Lists = 2 ** (PortWidth + 1);
  logic [Lists-1:0] occupied;
  logic [Lists-1:0][AddressWidth:0] whole;

  damq_pointers #(
      .Ports(Ports),
      .AddressWidth(AddressWidth)
  ) u_pointers (
`ifdef FORMAL
      .probe_tails(f_tails),
      .probe_heads(f_heads),
`endif
      .clk,
      .rst,
      .put,
      .put_list({in_port, in_way}),
      .put_address,
      .put_last(in_last),
      .first,
      .put_tail,
      .selected,
      .select_list({select_port, select_way}),
      .head_address,
      .head_last,
      .ends,
      .end_list({run_port, run_way}),
      .end_address(run_address),
      .emptied,
      .settle,
      .settle_list({settle_port, settle_way}),
      .settle_address(link.address),
      .settle_last(link.last),
      .occupied,
      .whole
  );

  logic end_settled, end_due, settle_due, ask_due;

  damq_order #(
      .Ports(Ports),
      .TicketWidth(TicketWidth)
  ) u_order (
`ifdef FORMAL
      .probe_rung(f_rung),
      .probe_left(f_left),
      .probe_tickets(f_tickets),
`endif
      .clk,
      .rst,
      .bell_valid,
      .bell_port,
      .word_port,
      .ticket,
      .head(put && !in_way && first),
      .head_port(in_port),
      .head_ticket(in_ticket),
      .settle(settle && !settle_way),
      .settle_port,
      .settle_ticket(link.ticket),
      .settle_due,
      .ends,
      .end_port(run_port),
      .end_dma(run_way),
      .end_settled,
      .end_due,
      .ask_port(in_port),
      .ask_due
  );

  // ---- Which descriptor is next.

  // At the end of a descriptor: the list whose turn it is. The ticket of a new PIO head is not yet
  // known. If all doorbells of the port are served, any ticket is due. Otherwise the port defers.
  logic again, again_way, defers;
  always_comb begin
    if (run_way) again_way = !(occupied[{run_port, 1'b0}] && end_due);
    else again_way = emptied;
    defers = !run_way && !emptied && !end_settled;
    again  = whole[{run_port, again_way}] != '0 && !defers;
  end

  // The port whose word is put is looked at with all that happens in this cycle.
  logic ask_pio, ask_way, ask_reads, ask_defers;
  logic [AddressWidth:0] ask_whole;
  assign ask_reads  = selected ? select_port == in_port : run && !ends && run_port == in_port;
  assign ask_defers = ends && defers && run_port == in_port;
  always_comb begin
    ask_pio = occupied[{in_port, 1'b0}];
    if (ends && emptied && !run_way && run_port == in_port) ask_pio = 1'b0;
    if (!in_way) ask_pio = 1'b1;
    ask_way   = !(ask_pio && ask_due);
    ask_whole = whole[{in_port, ask_way}];
    if (in_last && in_way == ask_way) ask_whole = ask_whole + (AddressWidth + 1)'(1);
  end

  // A port that deferred: nothing of it is read, and its ticket is known now.
  logic decide_way;
  assign decide_way = !settle_due;

  damq_arbiter #(
      .Ports(Ports)
  ) u_arbiter (
`ifdef FORMAL
      .probe_eligible(f_eligible),
      .probe_by_dma(f_by_dma),
`endif
      .clk,
      .rst,
      .may(ready && (!run || ends)),
      .selected,
      .select_port,
      .select_way,
      .ends,
      .again,
      .end_port(run_port),
      .again_way,
      .decide(undecided),
      .decide_port(settle_port),
      .decide_way,
      .decide_eligible(whole[{settle_port, decide_way}] != '0),
      .update(put),
      .update_port(in_port),
      .update_way(ask_way),
      .update_eligible(!ask_reads && !ask_defers && ask_whole != '0)
  );

`ifdef PROVE_DAMQ_BUFFER
  `include "damq_buffer_formal.svh"
`endif

endmodule
