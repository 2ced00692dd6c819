// Written by `hardware layouts` from the model's structs of `stream_fifo`; change those.
package stream_fifo_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [61:0] padding;
    logic out_ready;
    logic [63:0] in_data;
    logic in_valid;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [45:0] padding;
    logic [15:0] count;
    logic [63:0] out_data;
    logic out_valid;
    logic in_ready;
  } out_t;

endpackage
