// Written by `hardware layouts` from the model's structs of `slot_cache`; change those.
package slot_cache_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [5:0] padding;
    logic [63:0] in_word;
    logic in_failed;
    logic [4:0] in_pair;
    logic in_valid;
    logic read_ready;
    logic [4:0] take_pair;
    logic take_valid;
    logic [8:0] host_count;
    logic [27:0] host_page;
    logic [4:0] host_pair;
    logic host_opens;
    logic host_valid;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [17:0] padding;
    logic [4:0] told_pair;
    logic misplaced;
    logic failed;
    logic unexpected;
    logic in_ready;
    logic [4:0] read_count;
    logic [39:0] read_address;
    logic [4:0] read_pair;
    logic read_valid;
    logic [39:0] slot;
    logic [5:0] cached;
    logic lacks_slot;
    logic lacks_list;
    logic take_ready;
    logic refused;
  } out_t;

endpackage
