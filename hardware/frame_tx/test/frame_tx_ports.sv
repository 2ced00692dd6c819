// Written by `hardware layouts` from the model's structs of `frame_tx`; change those.
package frame_tx_ports;

  localparam int unsigned InBits = 256;
  typedef struct packed {
    logic [47:0] padding;
    logic line_ready;
    logic [63:0] dllp_data;
    logic dllp_valid;
    logic [127:0] in_data;
    logic [11:0] in_sequence;
    logic in_last;
    logic in_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [44:0] padding;
    logic [127:0] line_data;
    logic [15:0] line_k;
    logic line_valid;
    logic dllp_ready;
    logic in_ready;
  } out_t;

endpackage
