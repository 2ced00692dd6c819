// Written by `hardware layouts` from the model's structs of `rx_dispatch`; change those.
package rx_dispatch_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [49:0] padding;
    logic get_ready;
    logic out_ready;
    logic packet_fits;
    logic [127:0] in_data;
    logic [3:0] in_to;
    logic in_last;
    logic in_class;
    logic in_valid;
    logic [3:0] cpu;
  } in_t;

  localparam int unsigned OutBits = 256;
  typedef struct packed {
    logic [19:0] padding;
    logic mismatched;
    logic refused;
    logic oversized;
    logic misrouted;
    logic unknown;
    logic [4:0] get_pair;
    logic [8:0] get_source;
    logic [63:0] get_word;
    logic get_last;
    logic get_valid;
    logic [127:0] out_data;
    logic [3:0] out_to;
    logic out_last;
    logic out_valid;
    logic [7:0] packet_key;
    logic [4:0] packet_pair;
    logic packet_valid;
    logic [1:0] credit;
    logic in_ready;
  } out_t;

endpackage
