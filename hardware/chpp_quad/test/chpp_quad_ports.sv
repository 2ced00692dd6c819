// Written by `hardware layouts` from the model's structs of `chpp_quad`; change those.
package chpp_quad_ports;

  localparam int unsigned InBits = 832;
  typedef struct packed {
    logic [51:0] padding;
    logic [3:0] tx_ready;
    logic [511:0] rx_data;
    logic [7:0] rx_empty;
    logic [3:0] rx_last;
    logic [3:0] rx_valid;
    logic [3:0] read_credit;
    logic [191:0] base;
    logic [51:0] device;
  } in_t;

  localparam int unsigned OutBits = 576;
  typedef struct packed {
    logic [39:0] padding;
    logic [3:0] crosses;
    logic [511:0] tx_data;
    logic [7:0] tx_empty;
    logic [3:0] tx_last;
    logic [3:0] tx_valid;
    logic [3:0] rx_ready;
  } out_t;

endpackage
