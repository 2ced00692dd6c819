// Written by `hardware layouts` from the model's structs of `host_regs`; change those.
package host_regs_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [27:0] padding;
    logic tlp_refused;
    logic tlp_dropped;
    logic [2:0] refused;
    logic [127:0] store_data;
    logic [12:0] store_bytes;
    logic [15:0] store_address;
    logic store_last;
    logic store_valid;
  } in_t;

  localparam int unsigned OutBits = 320;
  typedef struct packed {
    logic [14:0] padding;
    logic [31:0] tlps_refused;
    logic [31:0] tlps_dropped;
    logic [31:0] refusals;
    logic [31:0] dropped;
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
    logic bell_valid;
  } out_t;

endpackage
