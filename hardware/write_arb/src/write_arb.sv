// The arbiter of writes to host memory (C-13, C-14): those of the upload module, which come
// as beats, and records of events, which are cut into beats here.
//
// Whole writes take turns, and no beat of one stands among those of another. A beat that is taken
// in cycle t is offered to the PCIe boundary from t + 1 on, and one is taken in every cycle. So
// writes keep the order in which they were taken.
module write_arb #(
    // Bits of a beat and of a record, powers of two. A record has two beats at least.
    parameter int unsigned Width = 128,
    parameter int unsigned EventWidth = 256,
    parameter int unsigned FunctionWidth = 3,
    parameter int unsigned AddressWidth = 40,
    // Bits of a count of bytes.
    parameter int unsigned SizeWidth = 13
) (
    input logic clk,
    input logic rst,

    // A beat of the upload module; function, address and bytes are those of its write.
    input  logic                     upload_valid,
    output logic                     upload_ready,
    input  logic                     upload_last,
    input  logic [FunctionWidth-1:0] upload_function,
    input  logic [ AddressWidth-1:0] upload_address,
    input  logic [    SizeWidth-1:0] upload_bytes,
    input  logic [        Width-1:0] upload_data,

    // A record, which is taken with its last beat.
    input  logic                     event_valid,
    output logic                     event_ready,
    input  logic [FunctionWidth-1:0] event_function,
    input  logic [ AddressWidth-1:0] event_address,
    input  logic [   EventWidth-1:0] event_record,

    // A beat for the PCIe boundary; function, address and bytes are those of its write.
    output logic                     out_valid,
    input  logic                     out_ready,
    output logic                     out_last,
    output logic [FunctionWidth-1:0] out_function,
    output logic [ AddressWidth-1:0] out_address,
    output logic [    SizeWidth-1:0] out_bytes,
    output logic [        Width-1:0] out_data
);

  localparam int unsigned Beats = EventWidth / Width;
  localparam int unsigned BeatWidth = (Beats > 1) ? $clog2(Beats) : 1;

  if (Width < 8 || Width != 2 ** $clog2(Width) || Beats < 2 || Beats != 2 ** BeatWidth) begin : g_w
    $error("write_arb: Width and EventWidth are powers of two, and EventWidth is the longer one");
  end
  if (EventWidth != Width * Beats || EventWidth / 8 >= 2 ** SizeWidth) begin : g_event
    $error("write_arb: EventWidth is a multiple of Width, and SizeWidth can count its bytes");
  end
  if (FunctionWidth < 1 || AddressWidth < 1) begin : g_address
    $error("write_arb: FunctionWidth and AddressWidth are at least 1");
  end

  typedef logic [BeatWidth-1:0] beat_t;

  // Beats of a write have been taken, and its last one has not: of which, and the next one of a
  // record. That is the first one outside of a record.
  logic mid, mid_upload;
  beat_t beat;

  logic first_index, first_valid;
  logic has_output, upload_goes, takes_upload, takes_event, begins, is_last_beat;

`ifdef FORMAL
  logic [1:0] f_from_pointer;
`endif

  // Who would be served if the upload module asked: so it is ready whether it asks or not.
  rr_arb #(
      .Requests(2)
  ) u_rr_arb (
      .clk,
      .rst,
      .request({event_valid, 1'b1}),
      .advance(begins),
      .behind(takes_event),
`ifdef FORMAL
      .probe_from_pointer(f_from_pointer),
`endif
      .valid(first_valid),
      .index(first_index)
  );

  assign has_output = !out_valid || out_ready;
  assign upload_goes = mid ? mid_upload : !first_index;
  assign upload_ready = has_output && upload_goes;
  assign takes_upload = upload_valid && upload_ready;
  assign takes_event = event_valid && has_output && !(mid && mid_upload) && !takes_upload;
  assign begins = !mid && (takes_upload || takes_event);
  assign is_last_beat = beat == beat_t'(Beats - 1);
  assign event_ready = has_output && is_last_beat;

  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid <= 1'b0;
      mid <= 1'b0;
      beat <= '0;
    end else begin
      if (has_output) out_valid <= takes_upload || takes_event;
      if (takes_upload) mid <= !upload_last;
      if (takes_event) begin
        mid  <= !is_last_beat;
        beat <= beat + beat_t'(1);
      end
    end
    if (begins) mid_upload <= takes_upload;
    if (has_output) begin
      out_last <= takes_upload ? upload_last : is_last_beat;
      out_function <= takes_upload ? upload_function : event_function;
      out_address <= takes_upload ? upload_address : event_address;
      out_bytes <= takes_upload ? upload_bytes : SizeWidth'(EventWidth / 8);
      out_data <= takes_upload ? upload_data : event_record[32'(beat)*Width+:Width];
    end
  end

  // The upload module itself is there.
  logic unused;
  assign unused = first_valid;

`ifdef PROVE_WRITE_ARB
  `include "write_arb_formal.svh"
`endif

endmodule
