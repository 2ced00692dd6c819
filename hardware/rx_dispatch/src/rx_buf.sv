// The packets of one class: a ring for beats, in which each packet takes as many as it has. One is
// read when it has come whole; what was stored of a packet that is dropped is written over.
//
// A beat that is stored in cycle t can stand at the output from t + 2 on, if its packet is kept in
// t. One is stored and one leaves in every cycle.
module rx_buf #(
    // Places that the crossbar knows of, and places behind them.
    parameter int unsigned Packets = 4,
    parameter int unsigned Behind  = 0,
    // Beats of a packet, at most.
    parameter int unsigned Beats   = 130,
    parameter int unsigned Width   = 132
) (
    input logic clk,
    input logic rst,

    // A packet takes a place; a beat of it is stored; it has come whole, or is dropped.
    input logic             begins,
    input logic             stores,
    input logic             store_last,
    input logic [Width-1:0] store_data,
    input logic             keeps,
    input logic             drops,

    // One may begin. A place is free that the crossbar takes for taken.
    output logic has_place,
    output logic credit,

    output logic             out_valid,
    input  logic             out_ready,
    output logic             out_last,
    output logic [Width-1:0] out_data
);

  localparam int unsigned Places = Packets + Behind;
  localparam int unsigned Words = Places * Beats;
  localparam int unsigned AddressWidth = (Words > 1) ? $clog2(Words) : 1;
  localparam int unsigned CountWidth = $clog2(Places + 1);

  if (Packets < 1 || Beats < 1 || Width < 1) begin : g_parameters
    $error("rx_buf: Packets, Beats and Width are at least 1");
  end

  // The number of a word in the ring, below the parity of the rounds so far.
  typedef logic [AddressWidth:0] at_t;
  typedef logic [CountWidth-1:0] count_t;

  // ---- Places: packets with the one that comes, and those that the crossbar knows of. The
  // packet that comes is among these. Each has room for the longest one, so no beat waits.

  count_t packets, held;
  logic coming, leaves, ends;
  assign has_place = held != count_t'(Packets);
  assign credit = held + count_t'(Behind) > packets && held > count_t'(coming);
  assign leaves = out_valid && out_ready;
  assign ends = leaves && out_last;

  // ---- The ring: the next word that is stored, the first one that is not kept, the next one that
  // is read.

  at_t store_at, stored_at, kept_at, read_at;
  logic reads;
  assign reads = read_at != kept_at && (!out_valid || out_ready);

  function automatic at_t after(input at_t at);
    after = at + at_t'(1);
    if (at[AddressWidth-1:0] == AddressWidth'(Words - 1)) begin
      after = {!at[AddressWidth], AddressWidth'(0)};
    end
  endfunction
  assign stored_at = stores ? after(store_at) : store_at;

  always_ff @(posedge clk) begin
    if (rst) begin
      packets <= '0;
      held <= '0;
      coming <= 1'b0;
      store_at <= '0;
      kept_at <= '0;
      read_at <= '0;
      out_valid <= 1'b0;
    end else begin
      packets <= packets + count_t'(begins) - count_t'(drops) - count_t'(ends);
      held <= held + count_t'(begins) - count_t'(credit);
      coming <= (coming || begins) && !keeps && !drops;
      store_at <= drops ? kept_at : stored_at;
      if (keeps) kept_at <= stored_at;
      if (reads) read_at <= after(read_at);
      out_valid <= reads || (out_valid && !out_ready);
    end
  end

`ifdef FORMAL
  // Proofs look at all words.
  logic [Words-1:0][Width:0] f_words;
`endif

  ram_1w1r #(
      .Width(Width + 1),
      .Depth(Words)
  ) u_beats (
      .clk,
      .write(stores),
      .write_address(store_at[AddressWidth-1:0]),
      .write_data({store_last, store_data}),
      .read(reads),
      .read_address(read_at[AddressWidth-1:0]),
`ifdef FORMAL
      .probe_words(f_words),
`endif
      .read_data({out_last, out_data})
  );

`ifdef PROVE_RX_BUF
  `include "rx_buf_formal.svh"
`endif

endmodule
