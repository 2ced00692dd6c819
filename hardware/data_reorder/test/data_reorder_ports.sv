// Written by `hardware layouts` from the model's structs of `data_reorder`; change those.
package data_reorder_ports;

  localparam int unsigned InBits = 256;
  typedef struct packed {
    logic [54:0] padding;
    logic out_ready;
    logic [7:0] lost_tag;
    logic lost_valid;
    logic [127:0] in_data;
    logic [12:0] in_remaining;
    logic [12:0] in_bytes;
    logic in_failed;
    logic [7:0] in_tag;
    logic in_last;
    logic in_valid;
    logic [12:0] read_bytes;
    logic [3:0] read_lane;
    logic [7:0] read_tag;
    logic read_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [8:0] padding;
    logic [127:0] out_data;
    logic [3:0] out_to;
    logic [3:0] out_from;
    logic out_failed;
    logic out_last;
    logic out_valid;
    logic [7:0] free_tag;
    logic free_valid;
    logic mismatched;
    logic unexpected;
    logic [15:0] reads;
    logic [15:0] room;
    logic read_ready;
  } out_t;

endpackage
