// Written by `hardware layouts` from the model's structs of `vc_rx_buf`; change those.
package vc_rx_buf_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [55:0] padding;
    logic update_ready;
    logic out_ready;
    logic in_deliver;
    logic in_early;
    logic [127:0] in_data;
    logic [1:0] in_empty;
    logic in_last;
    logic in_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [35:0] padding;
    logic [11:0] update_data;
    logic [7:0] update_headers;
    logic update_valid;
    logic [127:0] out_data;
    logic [1:0] out_empty;
    logic out_bad;
    logic out_last;
    logic out_valid;
    logic refused;
    logic kept;
  } out_t;

endpackage
