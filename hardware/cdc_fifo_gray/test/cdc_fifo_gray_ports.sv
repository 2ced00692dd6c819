// Written by `hardware layouts` from the model's structs of `cdc_fifo_gray`; change those.
package cdc_fifo_gray_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [59:0] padding;
    logic out_ready;
    logic out_tick;
    logic [63:0] in_data;
    logic in_valid;
    logic in_tick;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [61:0] padding;
    logic [63:0] out_data;
    logic out_valid;
    logic in_ready;
  } out_t;

endpackage
