// Written by `hardware layouts` from the model's structs of `send_vc`; change those.
package send_vc_ports;

  localparam int unsigned InBits = 320;
  typedef struct packed {
    logic [41:0] padding;
    logic [15:0] room;
    logic [1:0] allowed;
    logic [255:0] in_data;
    logic [1:0] in_last;
    logic [1:0] in_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [31:0] padding;
    logic [127:0] out_data;
    logic out_last;
    logic out_valid;
    logic [1:0] malformed;
    logic [1:0] begins;
    logic [23:0] cost;
    logic [1:0] in_ready;
  } out_t;

endpackage
