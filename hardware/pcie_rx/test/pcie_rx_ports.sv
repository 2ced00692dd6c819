// Written by `hardware layouts` from the model's structs of `pcie_rx`; change those.
package pcie_rx_ports;

  localparam int unsigned InBits = 256;
  typedef struct packed {
    logic [45:0] padding;
    logic request_ready;
    logic [127:0] in_data;
    logic [1:0] in_empty;
    logic in_last;
    logic in_valid;
    logic [6:0] read_end;
    logic [7:0] read_tag;
    logic read_valid;
    logic [47:0] base;
    logic [12:0] device;
  } in_t;

  localparam int unsigned OutBits = 320;
  typedef struct packed {
    logic [23:0] padding;
    logic [31:0] dropped;
    logic dropped_valid;
    logic [6:0] request_lower;
    logic [11:0] request_count;
    logic [2:0] request_attributes;
    logic [2:0] request_class;
    logic [7:0] request_tag;
    logic [15:0] request_requester;
    logic [15:0] request_address;
    logic request_is_read;
    logic request_valid;
    logic [127:0] out_data;
    logic out_last;
    logic [12:0] store_bytes;
    logic [15:0] store_address;
    logic store_valid;
    logic [12:0] completion_remaining;
    logic [12:0] completion_bytes;
    logic completion_failed;
    logic [7:0] completion_tag;
    logic completion_valid;
    logic in_ready;
  } out_t;

endpackage
