// Written by `hardware layouts` from the model's structs of `get_packer`; change those.
package get_packer_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [0:0] padding;
    logic sent_ready;
    logic out_ready;
    logic [127:0] in_data;
    logic in_ends;
    logic in_valid;
    logic [7:0] move_operation;
    logic [7:0] move_route;
    logic [12:0] move_bytes;
    logic [8:0] move_destination;
    logic [8:0] move_source;
    logic [7:0] move_magic;
    logic [2:0] move_traffic_class;
    logic move_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [41:0] padding;
    logic [7:0] sent_operation;
    logic sent_valid;
    logic [127:0] out_data;
    logic [7:0] out_route;
    logic out_last;
    logic out_valid;
    logic credit;
    logic in_ready;
    logic move_ready;
  } out_t;

endpackage
