// Written by `hardware layouts` from the model's structs of `lane_stripe`; change those.
package lane_stripe_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [46:0] padding;
    logic [127:0] line_data;
    logic [15:0] line_k;
    logic line_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [46:0] padding;
    logic [127:0] lane_data;
    logic [15:0] lane_k;
    logic line_ready;
  } out_t;

endpackage
