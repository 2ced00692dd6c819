// Written by `hardware layouts` from the model's structs of `frame_rx`; change those.
package frame_rx_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [46:0] padding;
    logic [127:0] line_data;
    logic [15:0] line_k;
    logic line_valid;
  } in_t;

  localparam int unsigned OutBits = 256;
  typedef struct packed {
    logic [44:0] padding;
    logic [63:0] dllp_data;
    logic dllp_valid;
    logic [11:0] frame_sequence;
    logic frame_damaged;
    logic frame_valid;
    logic [127:0] out_data;
    logic [1:0] out_empty;
    logic out_last;
    logic out_valid;
  } out_t;

endpackage
