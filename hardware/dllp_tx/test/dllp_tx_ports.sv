// Written by `hardware layouts` from the model's structs of `dllp_tx`; change those.
package dllp_tx_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [66:0] padding;
    logic dllp_ready;
    logic [23:0] update_data;
    logic [15:0] update_headers;
    logic [3:0] update_stage;
    logic [1:0] update_valid;
    logic [11:0] ack_sequence;
    logic ack_nak;
    logic ack_valid;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [59:0] padding;
    logic [63:0] dllp_data;
    logic dllp_valid;
    logic [1:0] update_ready;
    logic ack_ready;
  } out_t;

endpackage
