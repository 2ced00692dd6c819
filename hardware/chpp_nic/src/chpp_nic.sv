// The whole network interface of cHPP between raw TLPs and the network (C-31, C-32, C-36): its
// core, both halves of the PCIe boundary, what the host stores, and what it reads.
//
// No register stands between the blocks, and all outputs are registers' or depend on those only.
module chpp_nic #(
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

    // Straps: the own processor, and how many there are.
    input logic [3:0] cpu,
    input logic [4:0] cpus,

    // The hard block's: bus and device, the window's address, and that the host has room for one
    // more read.
    input logic [12:0] device,
    input logic [47:0] base,
    input logic        read_credit,

    // A beat of a TLP from the host, whose first byte is the lowest one, and DWs that it lacks.
    input  logic         rx_valid,
    output logic         rx_ready,
    input  logic         rx_last,
    input  logic [  1:0] rx_empty,
    input  logic [127:0] rx_data,

    // A beat of a TLP for the host.
    output logic         tx_valid,
    input  logic         tx_ready,
    output logic         tx_last,
    output logic [  1:0] tx_empty,
    output logic [127:0] tx_data,

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
    input  logic [  1:0] to_credit
);

  // Bytes of a read and of a write, at most, as every link allows; bytes of a slot's entry.
  localparam int unsigned Most = 128;
  localparam int unsigned EntryBytes = 8;
  if (16 * Request > Most || EntryBytes * Batch > Most || Write > Most) begin : g_most
    $error("chpp_nic: reads and writes have at most 128 bytes");
  end

  // ---- What comes from the host.

  logic came_last;
  logic [127:0] came_data;
  logic completion_valid, completion_failed;
  logic [TagWidth-1:0] completion_tag;
  logic [12:0] completion_bytes, completion_remaining;
  logic store_valid;
  logic [15:0] store_address;
  logic [12:0] store_bytes;
  logic request_valid, request_ready, request_is_read;
  logic [15:0] request_address, request_requester;
  logic [7:0] request_tag;
  logic [2:0] request_class, request_attributes;
  logic [11:0] request_count;
  logic [ 6:0] request_lower;
  logic tlp_dropped, tlp_refused;
  logic [31:0] rx_dropped;

  // ---- What goes there.

  logic read_valid, read_ready, write_valid, write_ready, write_last;
  logic [2:0] read_function, write_function;
  logic [39:0] read_address, write_address;
  logic [12:0] read_bytes, write_bytes;
  logic [TagWidth-1:0] read_tag;
  logic [127:0] write_data;
  logic answer_valid, answer_ready, answer_has_data;
  logic [15:0] answer_requester;
  logic [ 7:0] answer_tag;
  logic [2:0] answer_class, answer_attributes, answer_status;
  logic [11:0] answer_count;
  logic [ 6:0] answer_lower;
  logic [31:0] answer_data;

  pcie_rx #(
      .Tags(Tags)
  ) u_pcie_rx (
      .clk,
      .rst,
      .device,
      .base,
      .read_valid   (read_valid && read_ready),
      .read_tag,
      .read_end     (read_address[6:0] + read_bytes[6:0]),
      .in_valid     (rx_valid),
      .in_ready     (rx_ready),
      .in_last      (rx_last),
      .in_empty     (rx_empty),
      .in_data      (rx_data),
      .completion_valid,
      .completion_tag,
      .completion_failed,
      .completion_bytes,
      .completion_remaining,
      .store_valid,
      .store_address,
      .store_bytes,
      .out_last     (came_last),
      .out_data     (came_data),
      .request_valid,
      .request_ready,
      .request_is_read,
      .request_address,
      .request_requester,
      .request_tag,
      .request_class,
      .request_attributes,
      .request_count,
      .request_lower,
      .dropped_valid(tlp_dropped),
      .dropped      (rx_dropped)
  );

  // The physical function answers for all registers.
  pcie_tx #(
      .Tags      (Tags),
      .MaxRead   (Most),
      .MaxPayload(Most)
  ) u_pcie_tx (
      .clk,
      .rst,
      .device,
      .read_valid,
      .read_ready,
      .read_credit,
      .read_function,
      .read_address,
      .read_bytes,
      .read_tag,
      .write_valid,
      .write_ready,
      .write_last,
      .write_function,
      .write_address,
      .write_bytes,
      .write_data,
      .answer_valid,
      .answer_ready,
      .answer_function('0),
      .answer_requester,
      .answer_tag,
      .answer_class,
      .answer_attributes,
      .answer_status,
      .answer_count,
      .answer_lower,
      .answer_has_data,
      .answer_data,
      .out_valid      (tx_valid),
      .out_ready      (tx_ready),
      .out_last       (tx_last),
      .out_empty      (tx_empty),
      .out_data       (tx_data),
      .refused        (tlp_refused)
  );

  // ---- Registers of the host.

  logic bell_valid;
  logic keys_valid, keys_window, keys_opens;
  logic [ 2:0] keys_function;
  logic [27:0] keys_base;
  logic [28:0] keys_pages;
  logic [ 4:0] keys_pair;
  logic [ 7:0] keys_key;
  logic rings_valid, rings_opens;
  logic [ 5:0] rings_ring;
  logic [34:0] rings_base;
  logic [12:0] rings_count;
  logic slots_valid, slots_opens;
  logic [4:0] slots_pair;
  logic [27:0] slots_page;
  logic [8:0] slots_count;
  logic [2:0] refused;
  logic [25:0] told;
  logic [4:0][31:0] counts;
  logic [31:0] dropped, refusals, tlps_dropped, tlps_refused;

  host_regs u_host_regs (
      .clk,
      .rst,
      .store_valid,
      .store_last(came_last),
      .store_address,
      .store_bytes,
      .store_data(came_data),
      .bell_valid,
      .keys_valid,
      .keys_window,
      .keys_function,
      .keys_base,
      .keys_pages,
      .keys_pair,
      .keys_opens,
      .keys_key,
      .rings_valid,
      .rings_opens,
      .rings_ring,
      .rings_base,
      .rings_count,
      .slots_valid,
      .slots_opens,
      .slots_pair,
      .slots_page,
      .slots_count,
      .refused,
      .tlp_dropped,
      .tlp_refused,
      .dropped,
      .refusals,
      .tlps_dropped,
      .tlps_refused
  );

  completer #(
      .Registers(regs_pkg::Counts),
      .Page     (regs_pkg::Page)
  ) u_completer (
      .clk,
      .rst,
      .value({tlps_refused, tlps_dropped, counts, refusals, dropped, 32'(regs_pkg::Version)}),
      .request_valid,
      .request_ready,
      .request_is_read,
      .request_address,
      .request_requester,
      .request_tag,
      .request_class,
      .request_attributes,
      .request_count,
      .request_lower,
      .answer_valid,
      .answer_ready,
      .answer_requester,
      .answer_tag,
      .answer_class,
      .answer_attributes,
      .answer_status,
      .answer_count,
      .answer_lower,
      .answer_has_data,
      .answer_data
  );

  // ---- The core.

  nic_core #(
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
  ) u_nic_core (
      .clk,
      .rst,
      .cpu,
      .cpus,
      .keys_valid,
      .keys_window,
      .keys_function,
      .keys_base,
      .keys_pages,
      .keys_pair,
      .keys_opens,
      .keys_key,
      .rings_valid,
      .rings_opens,
      .rings_ring,
      .rings_base,
      .rings_count,
      .slots_valid,
      .slots_opens,
      .slots_pair,
      .slots_page,
      .slots_count,
      .store_valid (bell_valid),
      .store_last  (came_last),
      .store_address,
      .store_bytes,
      .store_data  (came_data),
      .read_valid,
      .read_ready,
      .read_function,
      .read_address,
      .read_bytes,
      .read_tag,
      .in_valid    (completion_valid),
      .in_last     (came_last),
      .in_tag      (completion_tag),
      .in_failed   (completion_failed),
      .in_bytes    (completion_bytes),
      .in_remaining(completion_remaining),
      .in_data     (came_data),
      .write_valid,
      .write_ready,
      .write_last,
      .write_function,
      .write_address,
      .write_bytes,
      .write_data,
      .from_valid,
      .from_ready,
      .from_class,
      .from_last,
      .from_to,
      .from_data,
      .from_credit,
      .to_valid,
      .to_ready,
      .to_class,
      .to_last,
      .to_to,
      .to_data,
      .to_credit,
      .refused,
      .told,
      .counts
  );

  // What the host is not shown one by one.
  logic unused;
  assign unused = ^{rx_dropped, told};

endmodule
