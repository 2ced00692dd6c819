// Written by `hardware layouts` from the model's structs of `chpp_link_nic`; change those.
package chpp_link_nic_ports;

  localparam int unsigned InBits = 384;
  typedef struct packed {
    logic [35:0] padding;
    logic [127:0] lane_rx_data;
    logic [15:0] lane_rx_k;
    logic tx_ready;
    logic [127:0] rx_data;
    logic [1:0] rx_empty;
    logic rx_last;
    logic rx_valid;
    logic read_credit;
    logic [47:0] base;
    logic [12:0] device;
    logic [4:0] cpus;
    logic [3:0] cpu;
  } in_t;

  localparam int unsigned OutBits = 320;
  typedef struct packed {
    logic [33:0] padding;
    logic [127:0] lane_tx_data;
    logic [15:0] lane_tx_k;
    logic refused;
    logic [1:0] dropped;
    logic damaged;
    logic recovers;
    logic trained;
    logic [1:0] up;
    logic lanes_up;
    logic [127:0] tx_data;
    logic [1:0] tx_empty;
    logic tx_last;
    logic tx_valid;
    logic rx_ready;
  } out_t;

endpackage
