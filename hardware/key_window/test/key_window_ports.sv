// Written by `hardware layouts` from the model's structs of `key_window`; change those.
package key_window_ports;

  localparam int unsigned InBits = 320;
  typedef struct packed {
    logic [47:0] padding;
    logic [39:0] source_length;
    logic [39:0] source_address;
    logic [2:0] source_function;
    logic source_valid;
    logic [39:0] target_length;
    logic [39:0] target_address;
    logic [2:0] target_function;
    logic target_valid;
    logic [7:0] get_key;
    logic [4:0] get_pair;
    logic get_valid;
    logic [7:0] packet_key;
    logic [4:0] packet_pair;
    logic packet_valid;
    logic [7:0] host_key;
    logic host_opens;
    logic [4:0] host_pair;
    logic [28:0] host_pages;
    logic [27:0] host_base;
    logic [2:0] host_function;
    logic host_window;
    logic host_valid;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [54:0] padding;
    logic [31:0] wrong_targets;
    logic [31:0] wrong_packets;
    logic source_wrong;
    logic source_fits;
    logic target_wrong;
    logic target_fits;
    logic get_wrong;
    logic get_fits;
    logic packet_wrong;
    logic packet_fits;
    logic refused;
  } out_t;

endpackage
