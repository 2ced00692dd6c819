// Written by `hardware layouts` from the model's structs of `tlp_unwrap`; change those.
package tlp_unwrap_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [57:0] padding;
    logic out_ready;
    logic [127:0] in_data;
    logic [1:0] in_empty;
    logic in_bad;
    logic in_last;
    logic in_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [55:0] padding;
    logic [127:0] out_data;
    logic [3:0] out_to;
    logic out_last;
    logic out_valid;
    logic dropped;
    logic in_ready;
  } out_t;

endpackage
