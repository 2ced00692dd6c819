// Written by `hardware layouts` from the model's structs of `slot_read`; change those.
package slot_read_ports;

  localparam int unsigned InBits = 256;
  typedef struct packed {
    logic [44:0] padding;
    logic entry_ready;
    logic lost_valid;
    logic [127:0] in_data;
    logic [12:0] in_remaining;
    logic [12:0] in_bytes;
    logic in_failed;
    logic in_last;
    logic in_valid;
    logic ask_ready;
    logic [4:0] read_count;
    logic [39:0] read_address;
    logic [4:0] read_pair;
    logic read_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [57:0] padding;
    logic [63:0] entry_word;
    logic entry_failed;
    logic [4:0] entry_pair;
    logic entry_valid;
    logic mismatched;
    logic unexpected;
    logic free_valid;
    logic [12:0] ask_bytes;
    logic [39:0] ask_address;
    logic [4:0] ask_pair;
    logic ask_valid;
    logic read_ready;
  } out_t;

endpackage
