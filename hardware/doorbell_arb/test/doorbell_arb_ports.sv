// Written by `hardware layouts` from the model's structs of `doorbell_arb`; change those.
package doorbell_arb_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [118:0] padding;
    logic out_ready;
    logic [7:0] waits;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [119:0] padding;
    logic [2:0] out_function;
    logic out_valid;
    logic [2:0] take_function;
    logic take;
  } out_t;

endpackage
