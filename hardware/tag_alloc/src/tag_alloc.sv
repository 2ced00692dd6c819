// The central allocator of PCIe tags (C-36): the tag that was free longest goes first.
//
// One tag is taken and one comes back in every cycle. A tag that comes back in cycle t is offered
// from t + 2 on. One tag is looked at in every cycle in which none comes back. If its completions
// are late, it is freed and reported. So no tag leaks, whatever the completer does.
module tag_alloc #(
    parameter int unsigned Tags = 32,
    // Completions are late after one to two times as many cycles: 10 ms at 250 MHz.
    parameter int unsigned Timeout = 2500000,
    localparam int unsigned TagWidth = (Tags > 1) ? $clog2(Tags) : 1,
    localparam int unsigned CountWidth = TagWidth + 1
) (
    input logic clk,
    input logic rst,

    // A free tag.
    output logic                tag_valid,
    input  logic                tag_ready,
    output logic [TagWidth-1:0] tag,

    // A tag comes back, because its read has ended.
    input  logic                release_valid,
    input  logic [TagWidth-1:0] release_tag,
    // What came back in the cycle before is not in use.
    output logic                refused,

    // This tag was freed in the cycle before, because its completions did not come in time.
    output logic                lost_valid,
    output logic [TagWidth-1:0] lost_tag,

    output logic [CountWidth-1:0] in_use
);

  if (Tags < 1 || Timeout < 1) begin : g_parameters
    $error("tag_alloc: Tags and Timeout are at least 1");
  end

  // Numbers of tags, some of which may not exist.
  localparam int unsigned Places = 2 ** TagWidth;
  typedef logic [TagWidth-1:0] tag_t;
  typedef logic [CountWidth-1:0] count_t;

  logic [Places-1:0] used;
  logic takes, returns, expires, frees;
  tag_t freed;

  // Tags that were never taken go first: all others became free later.
  tag_t fresh, old_tag;
  logic all_taken, is_fresh, old_valid;
  assign is_fresh = !all_taken;
  assign tag_valid = is_fresh || old_valid;
  assign tag = is_fresh ? fresh : old_tag;
  assign takes = tag_valid && tag_ready;

`ifdef FORMAL
  logic [2**TagWidth-1:0][TagWidth-1:0] f_free;
  count_t f_written, f_read;
`endif

  logic   unused_ready;
  count_t unused_count;
  stream_fifo #(
      .Width(TagWidth),
      .Depth(Tags)
  ) u_free (
      .clk,
      .rst,
      .in_valid     (frees),
      .in_ready     (unused_ready),
      .in_data      (freed),
      .out_valid    (old_valid),
      .out_ready    (tag_ready && !is_fresh),
      .out_data     (old_tag),
`ifdef FORMAL
      .probe_words  (f_free),
      .probe_written(f_written),
      .probe_read   (f_read),
`endif
      .count        (unused_count)
  );
  // Each tag has its place there.
  logic unused;
  assign unused = ^{unused_ready, unused_count};

  // Ticks come every `Timeout` cycles. A tag is late with the second one after it was taken.
  localparam int unsigned TimerWidth = (Timeout > 1) ? $clog2(Timeout) : 1;
  logic [TimerWidth-1:0] timer;
  logic ticks;
  logic [Places-1:0] aged, late;
  assign ticks = timer == TimerWidth'(Timeout - 1);

  // The tag that is looked at.
  tag_t probe;
  assign returns = release_valid && used[release_tag];
  assign expires = !release_valid && used[probe] && late[probe];
  assign frees   = returns || expires;
  assign freed   = release_valid ? release_tag : probe;

  always_ff @(posedge clk) begin
    if (rst) begin
      fresh <= '0;
      all_taken <= 1'b0;
      used <= '0;
      in_use <= '0;
      timer <= '0;
      probe <= '0;
      refused <= 1'b0;
      lost_valid <= 1'b0;
    end else begin
      if (takes && is_fresh) begin
        fresh <= fresh + tag_t'(1);
        all_taken <= fresh == tag_t'(Tags - 1);
      end
      if (frees) used[freed] <= 1'b0;
      if (takes) used[tag] <= 1'b1;
      in_use <= in_use + count_t'(takes) - count_t'(frees);
      timer  <= ticks ? '0 : timer + TimerWidth'(1);
      if (!release_valid) probe <= probe + tag_t'(1);
      refused <= release_valid && !returns;
      lost_valid <= expires;
    end
    lost_tag <= probe;
  end

  // Those of free tags say nothing.
  always_ff @(posedge clk) begin
    if (ticks) begin
      late <= aged;
      aged <= '1;
    end
    if (takes) begin
      late[tag] <= 1'b0;
      aged[tag] <= 1'b0;
    end
  end

`ifdef PROVE_TAG_ALLOC
  `include "tag_alloc_formal.svh"
`endif

endmodule
