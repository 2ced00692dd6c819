// The bench of `chpp_nic`, and what moves between blocks of the core: for the device rtl:chpp.
module chpp_nic_taps #(
    parameter int unsigned Bells = 4,
    parameter int unsigned Tags = 8,
    parameter int unsigned Timeout = 1500,
    parameter int unsigned Beats = 64,
    parameter int unsigned Reads = 8,
    parameter int unsigned Request = 8,
    parameter int unsigned Longest = 32,
    parameter int unsigned Fetches = 4,
    parameter int unsigned Places = 2,
    parameter int unsigned Events = 4,
    parameter int unsigned Gets = 2,
    parameter int unsigned PackBeats = 32,
    parameter int unsigned PackPackets = 4,
    parameter int unsigned Payload = 128,
    parameter int unsigned LongestNap = 256,
    parameter int unsigned Packets = 2,
    parameter int unsigned Depth = 4,
    parameter int unsigned Room = 128,
    parameter int unsigned Write = 128,
    parameter int unsigned Slots = 4,
    parameter int unsigned Batch = 2
) (
    input  logic                                      clk,
    input  logic                                      rst,
    input  logic [        chpp_nic_ports::InBits-1:0] in,
    output logic [       chpp_nic_ports::OutBits-1:0] out,
    output logic [$bits(chpp_nic_ports::taps_t)-1:0] taps
);

  chpp_nic_ports::taps_t t;
  assign taps = t;

  chpp_nic_bench #(
      .Bells      (Bells),
      .Tags       (Tags),
      .Timeout    (Timeout),
      .Beats      (Beats),
      .Reads      (Reads),
      .Request    (Request),
      .Longest    (Longest),
      .Fetches    (Fetches),
      .Places     (Places),
      .Events     (Events),
      .Gets       (Gets),
      .PackBeats  (PackBeats),
      .PackPackets(PackPackets),
      .Payload    (Payload),
      .LongestNap (LongestNap),
      .Packets    (Packets),
      .Depth      (Depth),
      .Room       (Room),
      .Write      (Write),
      .Slots      (Slots),
      .Batch      (Batch)
  ) u_bench (
      .clk,
      .rst,
      .in,
      .out
  );

  assign t.bell = u_bench.u_dut.u_nic_core.bell_valid;
  assign t.start = u_bench.u_dut.u_nic_core.fetch_bell_valid
      && u_bench.u_dut.u_nic_core.fetch_bell_ready;
  assign t.word = u_bench.u_dut.u_nic_core.fetch_valid && u_bench.u_dut.u_nic_core.fetch_ready;
  assign t.data = u_bench.u_dut.u_nic_core.join_valid && u_bench.u_dut.u_nic_core.join_ready;
  assign t.pack = u_bench.u_dut.u_nic_core.goes_valid;
  assign t.dispatch = u_bench.u_dut.u_nic_core.came_valid && u_bench.u_dut.u_nic_core.came_ready;
  assign t.upload = u_bench.u_dut.u_nic_core.upload_valid
      && u_bench.u_dut.u_nic_core.upload_ready;
  assign t.padding = '0;

endmodule
