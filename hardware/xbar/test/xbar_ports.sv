// Written by `hardware layouts` from the model's structs of `xbar`; change those.
package xbar_ports;

  localparam int unsigned InBits = 320;
  typedef struct packed {
    logic [11:0] padding;
    logic [15:0] credit;
    logic [3:0] out_ready;
    logic [255:0] in_data;
    logic [3:0] in_last;
    logic [7:0] in_class;
    logic [7:0] in_output;
    logic [7:0] in_channel;
    logic [3:0] in_valid;
  } in_t;

  localparam int unsigned OutBits = 576;
  typedef struct packed {
    logic [27:0] padding;
    logic [127:0] packets;
    logic [127:0] credits;
    logic [255:0] out_data;
    logic [3:0] out_last;
    logic [7:0] out_class;
    logic [3:0] out_valid;
    logic [3:0] granted;
    logic [15:0] in_ready;
  } out_t;

endpackage
