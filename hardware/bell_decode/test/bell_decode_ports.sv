// Written by `hardware layouts` from the model's structs of `bell_decode`; change those.
package bell_decode_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [32:0] padding;
    logic [127:0] store_data;
    logic [12:0] store_bytes;
    logic [15:0] store_address;
    logic store_last;
    logic store_valid;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [26:0] padding;
    logic [31:0] dropped;
    logic dropped_valid;
    logic [63:0] bell_word;
    logic [2:0] bell_function;
    logic bell_valid;
  } out_t;

endpackage
