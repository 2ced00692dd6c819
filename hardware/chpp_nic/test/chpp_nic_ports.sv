// Written by `hardware layouts` from the model's structs of `chpp_nic`; change those.
package chpp_nic_ports;

  localparam int unsigned InBits = 384;
  typedef struct packed {
    logic [41:0] padding;
    logic [1:0] to_credit;
    logic to_ready;
    logic [127:0] from_data;
    logic [3:0] from_to;
    logic from_last;
    logic from_class;
    logic from_valid;
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
    logic [47:0] padding;
    logic [127:0] to_data;
    logic [3:0] to_to;
    logic to_last;
    logic to_class;
    logic to_valid;
    logic [1:0] from_credit;
    logic [1:0] from_ready;
    logic [127:0] tx_data;
    logic [1:0] tx_empty;
    logic tx_last;
    logic tx_valid;
    logic rx_ready;
  } out_t;

  typedef struct packed {
    logic [120:0] padding;
    logic upload;
    logic dispatch;
    logic pack;
    logic data;
    logic word;
    logic start;
    logic bell;
  } taps_t;

endpackage
