// Written by `hardware layouts` from the model's structs of `read_arb`; change those.
package read_arb_ports;

  localparam int unsigned InBits = 320;
  typedef struct packed {
    logic [58:0] padding;
    logic [7:0] lost_tag;
    logic lost_valid;
    logic [3:0] free_valid;
    logic [7:0] in_tag;
    logic in_last;
    logic in_valid;
    logic read_ready;
    logic [7:0] tag;
    logic tag_valid;
    logic [51:0] ask_bytes;
    logic [159:0] ask_address;
    logic [11:0] ask_function;
    logic [3:0] ask_valid;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [39:0] padding;
    logic [7:0] release_tag;
    logic release_valid;
    logic unexpected;
    logic [3:0] own_lost;
    logic [3:0] own_valid;
    logic [7:0] read_tag;
    logic [12:0] read_bytes;
    logic [39:0] read_address;
    logic [2:0] read_function;
    logic read_valid;
    logic tag_ready;
    logic [3:0] ask_ready;
  } out_t;

endpackage
