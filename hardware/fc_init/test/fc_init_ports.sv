// Written by `hardware layouts` from the model's structs of `fc_init`; change those.
package fc_init_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [120:0] padding;
    logic restart;
    logic deliver;
    logic [1:0] heard_stage;
    logic heard_valid;
    logic send_ready;
    logic update_valid;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [121:0] padding;
    logic up;
    logic grant_valid;
    logic [1:0] send_stage;
    logic send_valid;
    logic update_ready;
  } out_t;

endpackage
