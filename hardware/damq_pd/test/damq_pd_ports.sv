// Written by `hardware layouts` from the model's structs of `damq_pd`; change those.
package damq_pd_ports;

  localparam int unsigned InBits = 320;
  typedef struct packed {
    logic [46:0] padding;
    logic ready;
    logic [255:0] word_data;
    logic word_last;
    logic word_way;
    logic [5:0] word_port;
    logic word_valid;
    logic [5:0] bell_port;
    logic bell_valid;
  } in_t;

  localparam int unsigned OutBits = 384;
  typedef struct packed {
    logic [52:0] padding;
    logic overflow;
    logic [15:0] free_dma;
    logic [15:0] free_pio;
    logic [15:0] inside_dma;
    logic [15:0] inside_pio;
    logic [255:0] data;
    logic last;
    logic way;
    logic [5:0] port;
    logic valid;
    logic selected;
  } out_t;

endpackage
