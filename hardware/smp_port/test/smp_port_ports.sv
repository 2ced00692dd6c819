// Written by `hardware layouts` from the model's structs of `smp_port`; change those.
package smp_port_ports;

  localparam int unsigned InBits = 448;
  typedef struct packed {
    logic [41:0] padding;
    logic [127:0] rx_data;
    logic [15:0] rx_k;
    logic [1:0] out_ready;
    logic [255:0] in_data;
    logic [1:0] in_last;
    logic [1:0] in_valid;
  } in_t;

  localparam int unsigned OutBits = 512;
  typedef struct packed {
    logic [50:0] padding;
    logic [127:0] tx_data;
    logic [15:0] tx_k;
    logic refused;
    logic damaged;
    logic recovers;
    logic trained;
    logic lanes_up;
    logic [23:0] left_data;
    logic [15:0] left_headers;
    logic [1:0] up;
    logic [255:0] out_data;
    logic [3:0] out_empty;
    logic [1:0] out_bad;
    logic [1:0] out_last;
    logic [1:0] out_valid;
    logic [1:0] malformed;
    logic [1:0] in_ready;
  } out_t;

endpackage
