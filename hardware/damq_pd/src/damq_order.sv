// The order between PIO and DMA of each port (D-19): tickets.
//
// A word that comes by PIO has as its ticket the number of doorbells that its port rang before it.
// The head of a PIO list may leave when as many DMA descriptors have left. Counters wrap: less than
// 2 ^ (`TicketWidth` - 1) descriptors of a port are under way.
module damq_order #(
    parameter int unsigned Ports = 4,
    parameter int unsigned TicketWidth = 16,
    localparam int unsigned PortWidth = (Ports > 1) ? $clog2(Ports) : 1
) (
    input logic clk,
    input logic rst,

    // A doorbell, and the ticket of a word that comes in the same cycle.
    input  logic                   bell_valid,
    input  logic [  PortWidth-1:0] bell_port,
    input  logic [  PortWidth-1:0] word_port,
    output logic [TicketWidth-1:0] ticket,

    // The head of this port's PIO list gets this ticket.
    input logic                   head,
    input logic [  PortWidth-1:0] head_port,
    input logic [TicketWidth-1:0] head_ticket,

    // The same for a head that was read from the address queue; another head is newer.
    input  logic                   settle,
    input  logic [  PortWidth-1:0] settle_port,
    input  logic [TicketWidth-1:0] settle_ticket,
    // That ticket is due.
    output logic                   settle_due,

    // A descriptor of this port ends, by DMA or not.
    input  logic                 ends,
    input  logic [PortWidth-1:0] end_port,
    input  logic                 end_dma,
    // All doorbells of this port are served.
    output logic                 end_settled,
    // The ticket of its PIO list is due once this descriptor has left.
    output logic                 end_due,

`ifdef FORMAL
    // Proofs look at all counters and tickets.
    output logic [2**PortWidth-1:0][TicketWidth-1:0] probe_rung,
    output logic [2**PortWidth-1:0][TicketWidth-1:0] probe_left,
    output logic [2**PortWidth-1:0][TicketWidth-1:0] probe_tickets,
`endif
    // The ticket of the PIO list of this port is due, after all that happens in this cycle.
    input  logic [   PortWidth-1:0]                  ask_port,
    output logic                                     ask_due
);

  localparam int unsigned Places = 2 ** PortWidth;

  logic [Places-1:0][TicketWidth-1:0] rung, left;

  // As for heads: the ticket of a list's head came with its word, or was read with the link to it.
  logic [TicketWidth-1:0] tickets_put[Places], tickets_settled[Places];
  logic [Places-1:0] ticket_is_put;

  logic rings_word, rings_end, ends_dma;
  assign rings_word = bell_valid && bell_port == word_port;
  assign rings_end = bell_valid && bell_port == end_port;
  assign ends_dma = ends && end_dma;

  assign ticket = rung[word_port] + TicketWidth'(rings_word);
  assign end_settled = rung[end_port] == left[end_port] && !rings_end;

  // How far the descriptors that left are ahead; negative if a ticket is not due.
  logic [TicketWidth-1:0] end_ahead, end_ticket, settle_ahead, ask_ahead, ask_left, ask_ticket;
  assign end_ticket = ticket_is_put[end_port] ? tickets_put[end_port] : tickets_settled[end_port];
  assign end_ahead = left[end_port] + TicketWidth'(1) - end_ticket;
  assign end_due = !end_ahead[TicketWidth-1];

  assign settle_ahead = left[settle_port] - settle_ticket;
  assign settle_due = !settle_ahead[TicketWidth-1];

  assign ask_left = left[ask_port] + TicketWidth'(ends_dma && end_port == ask_port);
  always_comb begin
    ask_ticket = ticket_is_put[ask_port] ? tickets_put[ask_port] : tickets_settled[ask_port];
    if (settle && settle_port == ask_port) ask_ticket = settle_ticket;
    if (head && head_port == ask_port) ask_ticket = head_ticket;
  end
  assign ask_ahead = ask_left - ask_ticket;
  assign ask_due   = !ask_ahead[TicketWidth-1];

  always_ff @(posedge clk) begin
    if (rst) begin
      rung <= '0;
      left <= '0;
    end else begin
      if (bell_valid) rung[bell_port] <= rung[bell_port] + TicketWidth'(1);
      if (ends_dma) left[end_port] <= left[end_port] + TicketWidth'(1);
      // The later assignment wins: a first word is the head, whatever ended before it.
      if (settle) ticket_is_put[settle_port] <= 1'b0;
      if (head) ticket_is_put[head_port] <= 1'b1;
    end
  end

  always_ff @(posedge clk) begin
    if (head) tickets_put[head_port] <= head_ticket;
    if (settle) tickets_settled[settle_port] <= settle_ticket;
  end

`ifdef FORMAL
  assign probe_rung = rung;
  assign probe_left = left;
  always_comb begin
    for (int unsigned at = 0; at < Places; at++) begin
      probe_tickets[at] = ticket_is_put[at] ? tickets_put[at] : tickets_settled[at];
    end
  end
`endif

endmodule
