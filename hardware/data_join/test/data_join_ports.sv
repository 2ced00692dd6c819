// Written by `hardware layouts` from the model's structs of `data_join`; change those.
package data_join_ports;

  localparam int unsigned InBits = 320;
  typedef struct packed {
    logic [43:0] padding;
    logic out_ready;
    logic [127:0] put_data;
    logic [3:0] put_to;
    logic put_ends;
    logic put_valid;
    logic [127:0] data;
    logic [3:0] data_to;
    logic [3:0] data_from;
    logic data_failed;
    logic data_last;
    logic data_valid;
    logic read_ends;
    logic read_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [49:0] padding;
    logic [127:0] out_data;
    logic [3:0] out_to;
    logic [3:0] out_from;
    logic out_failed;
    logic out_ends;
    logic out_valid;
    logic put_ready;
    logic data_ready;
    logic read_ready;
  } out_t;

endpackage
