// Written by `hardware layouts` from the model's structs of `desc_fetch`; change those.
package desc_fetch_ports;

  localparam int unsigned InBits = 256;
  typedef struct packed {
    logic [2:0] padding;
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
    logic [7:0] read_tag;
    logic read_ready;
    logic bell_outside;
    logic [63:0] bell_word;
    logic [2:0] bell_function;
    logic bell_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [10:0] padding;
    logic [63:0] out_word;
    logic [39:0] out_address;
    logic [2:0] out_function;
    logic out_refused;
    logic out_failed;
    logic out_last;
    logic out_first;
    logic out_valid;
    logic [7:0] free_tag;
    logic free_valid;
    logic mismatched;
    logic unexpected;
    logic [12:0] read_bytes;
    logic [39:0] read_address;
    logic [2:0] read_function;
    logic read_valid;
    logic bell_ready;
  } out_t;

endpackage
