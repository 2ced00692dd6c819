// `data_reorder` with the ports that the model has, packed.
module data_reorder_bench #(
    parameter int unsigned Beats = 512,
    parameter int unsigned Reads = 32,
    parameter int unsigned Tags  = 32
) (
    input  logic                                   clk,
    input  logic                                   rst,
    input  logic [ data_reorder_ports::InBits-1:0] in,
    output logic [data_reorder_ports::OutBits-1:0] out
);

  data_reorder_ports::in_t  i;
  data_reorder_ports::out_t o;
  assign i   = in;
  assign out = o;

  localparam int unsigned TagWidth = (Tags > 1) ? $clog2(Tags) : 1;
  localparam int unsigned LaneWidth = $bits(o.out_from);
  localparam int unsigned Width = $bits(o.out_data);
  logic [$clog2(Beats > 1 ? Beats : 2):0] room;
  logic [$clog2(Reads > 1 ? Reads : 2):0] reads;
  logic [TagWidth-1:0] free_tag;
  logic out_last, out_failed, has_bytes;
  logic [LaneWidth-1:0] out_from, out_to;
  logic [Width-1:0] out_data;

  data_reorder #(
      .Width(Width),
      .LaneWidth(LaneWidth),
      .Beats(Beats),
      .Reads(Reads),
      .Tags(Tags),
      .SizeWidth($bits(i.read_bytes))
  ) u_dut (
      .clk,
      .rst,
      .read_valid  (i.read_valid),
      .read_ready  (o.read_ready),
      .read_tag    (i.read_tag[TagWidth-1:0]),
      .read_lane   (i.read_lane),
      .read_bytes  (i.read_bytes),
      .room        (room),
      .reads       (reads),
      .in_valid    (i.in_valid),
      .in_last     (i.in_last),
      .in_tag      (i.in_tag[TagWidth-1:0]),
      .in_failed   (i.in_failed),
      .in_bytes    (i.in_bytes),
      .in_remaining(i.in_remaining),
      .in_data     (i.in_data),
      .unexpected  (o.unexpected),
      .mismatched  (o.mismatched),
      .lost_valid  (i.lost_valid),
      .lost_tag    (i.lost_tag[TagWidth-1:0]),
      .free_valid  (o.free_valid),
      .free_tag    (free_tag),
      .out_valid   (o.out_valid),
      .out_ready   (i.out_ready),
      .out_last    (out_last),
      .out_failed  (out_failed),
      .out_from    (out_from),
      .out_to      (out_to),
      .out_data    (out_data)
  );

  assign has_bytes    = o.out_valid && !out_failed;
  assign o.room       = 16'(room);
  assign o.reads      = 16'(reads);
  assign o.free_tag   = o.free_valid ? 8'(free_tag) : '0;
  assign o.out_last   = o.out_valid && out_last;
  assign o.out_failed = o.out_valid && out_failed;
  assign o.out_from   = has_bytes ? out_from : '0;
  assign o.out_to     = has_bytes ? out_to : '0;
  assign o.out_data   = has_bytes ? out_data : '0;
  assign o.padding    = '0;

  logic unused;
  assign unused = ^{i.padding, i.read_tag, i.in_tag, i.lost_tag};

endmodule
