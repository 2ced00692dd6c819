// Written by `hardware layouts` from the model's structs of `source_arb`; change those.
package source_arb_ports;

  localparam int unsigned InBits = 256;
  typedef struct packed {
    logic [13:0] padding;
    logic out_ready;
    logic source_fits;
    logic [63:0] bell_word;
    logic [2:0] bell_function;
    logic bell_valid;
    logic [79:0] ask_length;
    logic [79:0] ask_address;
    logic [5:0] ask_function;
    logic [1:0] ask_valid;
    logic [1:0] to_ready;
    logic [1:0] word_valid;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [36:0] padding;
    logic out_outside;
    logic out_valid;
    logic [39:0] source_length;
    logic [39:0] source_address;
    logic [2:0] source_function;
    logic source_valid;
    logic bell_ready;
    logic [1:0] to_valid;
    logic [1:0] word_ready;
  } out_t;

endpackage
