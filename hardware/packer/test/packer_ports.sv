// Written by `hardware layouts` from the model's structs of `packer`; change those.
package packer_ports;

  localparam int unsigned InBits = 448;
  typedef struct packed {
    logic [41:0] padding;
    logic sent_ready;
    logic out_ready;
    logic [127:0] in_data;
    logic [3:0] in_to;
    logic [3:0] in_from;
    logic in_failed;
    logic in_ends;
    logic in_valid;
    logic [39:0] move_bytes;
    logic [39:0] move_address;
    logic [7:0] move_operation;
    logic [7:0] move_route;
    logic [127:0] move_tail;
    logic [4:0] move_tail_bytes;
    logic move_wants_event;
    logic [8:0] move_destination;
    logic [8:0] move_source;
    logic [7:0] move_magic;
    logic [2:0] move_traffic_class;
    logic [3:0] move_primitive;
    logic move_last;
    logic move_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [13:0] padding;
    logic [7:0] sent_operation;
    logic sent_failed;
    logic sent_valid;
    logic [127:0] out_data;
    logic [7:0] out_route;
    logic [3:0] out_to;
    logic out_last;
    logic out_valid;
    logic [7:0] packets;
    logic [15:0] room;
    logic in_ready;
    logic move_ready;
  } out_t;

endpackage
