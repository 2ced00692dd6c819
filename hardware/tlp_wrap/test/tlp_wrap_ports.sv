// Written by `hardware layouts` from the model's structs of `tlp_wrap`; change those.
package tlp_wrap_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [56:0] padding;
    logic out_ready;
    logic [127:0] in_data;
    logic [3:0] in_to;
    logic in_last;
    logic in_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [59:0] padding;
    logic [127:0] out_data;
    logic out_last;
    logic out_valid;
    logic credit;
    logic in_ready;
  } out_t;

endpackage
