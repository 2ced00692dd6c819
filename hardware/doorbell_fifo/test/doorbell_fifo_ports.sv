// Written by `hardware layouts` from the model's structs of `doorbell_fifo`; change those.
package doorbell_fifo_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [55:0] padding;
    logic [2:0] take_function;
    logic take;
    logic [63:0] in_word;
    logic [2:0] in_function;
    logic in_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [19:0] padding;
    logic [31:0] dropped;
    logic [2:0] dropped_function;
    logic dropped_valid;
    logic [63:0] word;
    logic [63:0] count;
    logic [7:0] waits;
  } out_t;

endpackage
