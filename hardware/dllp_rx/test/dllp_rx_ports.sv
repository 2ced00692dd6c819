// Written by `hardware layouts` from the model's structs of `dllp_rx`; change those.
package dllp_rx_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [61:0] padding;
    logic ack_ready;
    logic [63:0] dllp_data;
    logic dllp_valid;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [87:0] padding;
    logic unknown;
    logic damaged;
    logic [11:0] update_data;
    logic [7:0] update_headers;
    logic [1:0] update_stage;
    logic [1:0] update_valid;
    logic [11:0] ack_sequence;
    logic ack_nak;
    logic ack_valid;
  } out_t;

endpackage
