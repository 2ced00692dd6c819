// Written by `hardware layouts` from the model's structs of `lane_train`; change those.
package lane_train_ports;

  localparam int unsigned InBits = 320;
  typedef struct packed {
    logic [30:0] padding;
    logic [127:0] rx_data;
    logic [15:0] rx_k;
    logic [127:0] line_data;
    logic [15:0] line_k;
    logic retrain;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [44:0] padding;
    logic [127:0] tx_data;
    logic [15:0] tx_k;
    logic recovers;
    logic trained;
    logic up;
  } out_t;

endpackage
