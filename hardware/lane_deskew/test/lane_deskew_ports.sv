// Written by `hardware layouts` from the model's structs of `lane_deskew`; change those.
package lane_deskew_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [47:0] padding;
    logic [127:0] lane_data;
    logic [15:0] lane_k;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [45:0] padding;
    logic [127:0] line_data;
    logic [15:0] line_k;
    logic line_valid;
    logic aligned;
  } out_t;

endpackage
