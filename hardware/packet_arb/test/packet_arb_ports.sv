// Written by `hardware layouts` from the model's structs of `packet_arb`; change those.
package packet_arb_ports;

  localparam int unsigned InBits = 640;
  typedef struct packed {
    logic [59:0] padding;
    logic [3:0] out_ready;
    logic [511:0] in_data;
    logic [31:0] in_route;
    logic [7:0] in_channel;
    logic [15:0] in_to;
    logic [3:0] in_last;
    logic [3:0] in_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [43:0] padding;
    logic [127:0] out_data;
    logic [7:0] out_route;
    logic [1:0] out_channel;
    logic [3:0] out_to;
    logic out_last;
    logic out_valid;
    logic [3:0] in_ready;
  } out_t;

endpackage
