// Written by `hardware layouts` from the model's structs of `nic_core`; change those.
package nic_core_ports;

  localparam int unsigned InBits = 704;
  typedef struct packed {
    logic [54:0] padding;
    logic [1:0] to_credit;
    logic to_ready;
    logic [127:0] from_data;
    logic [3:0] from_to;
    logic from_last;
    logic from_class;
    logic from_valid;
    logic write_ready;
    logic [127:0] in_data;
    logic [12:0] in_remaining;
    logic [12:0] in_bytes;
    logic in_failed;
    logic [7:0] in_tag;
    logic in_last;
    logic in_valid;
    logic read_ready;
    logic [127:0] store_data;
    logic [12:0] store_bytes;
    logic [15:0] store_address;
    logic store_last;
    logic store_valid;
    logic [8:0] slots_count;
    logic [27:0] slots_page;
    logic [4:0] slots_pair;
    logic slots_opens;
    logic slots_valid;
    logic [12:0] rings_count;
    logic [34:0] rings_base;
    logic [5:0] rings_ring;
    logic rings_opens;
    logic rings_valid;
    logic [7:0] keys_key;
    logic keys_opens;
    logic [4:0] keys_pair;
    logic [28:0] keys_pages;
    logic [27:0] keys_base;
    logic [2:0] keys_function;
    logic keys_window;
    logic keys_valid;
    logic [4:0] cpus;
    logic [3:0] cpu;
  } in_t;

  localparam int unsigned OutBits = 640;
  typedef struct packed {
    logic [60:0] padding;
    logic [159:0] counts;
    logic [25:0] told;
    logic [2:0] refused;
    logic [127:0] to_data;
    logic [3:0] to_to;
    logic to_last;
    logic to_class;
    logic to_valid;
    logic [1:0] from_credit;
    logic [1:0] from_ready;
    logic [127:0] write_data;
    logic [12:0] write_bytes;
    logic [39:0] write_address;
    logic [2:0] write_function;
    logic write_last;
    logic write_valid;
    logic [7:0] read_tag;
    logic [12:0] read_bytes;
    logic [39:0] read_address;
    logic [2:0] read_function;
    logic read_valid;
  } out_t;

endpackage
