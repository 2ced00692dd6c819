// Written by `hardware layouts` from the model's structs of `op_arb`; change those.
package op_arb_ports;

  localparam int unsigned InBits = 1024;
  typedef struct packed {
    logic [28:0] padding;
    logic get_data_ready;
    logic get_ready;
    logic put_ready;
    logic ask_ready;
    logic pack_ready;
    logic [6:0] place;
    logic place_ready;
    logic [255:0] data;
    logic [7:0] data_to;
    logic data_get;
    logic [1:0] data_ends;
    logic [1:0] data_valid;
    logic [25:0] read_bytes;
    logic [79:0] read_address;
    logic [5:0] read_function;
    logic [1:0] read_ends;
    logic [1:0] read_valid;
    logic [511:0] move_says;
    logic [79:0] move_total;
    logic move_get;
    logic [1:0] move_last;
    logic [1:0] move_valid;
  } in_t;

  localparam int unsigned OutBits = 512;
  typedef struct packed {
    logic [44:0] padding;
    logic get_data_valid;
    logic get_valid;
    logic [127:0] put_data;
    logic [3:0] put_to;
    logic put_ends;
    logic put_valid;
    logic [12:0] ask_bytes;
    logic [39:0] ask_address;
    logic [2:0] ask_function;
    logic ask_ends;
    logic ask_valid;
    logic [255:0] pack_says;
    logic [7:0] pack_operation;
    logic pack_last;
    logic pack_valid;
    logic place_valid;
    logic [1:0] data_ready;
    logic [1:0] read_ready;
    logic [1:0] move_ready;
  } out_t;

endpackage
