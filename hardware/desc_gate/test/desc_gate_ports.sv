// Written by `hardware layouts` from the model's structs of `desc_gate`; change those.
package desc_gate_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [33:0] padding;
    logic to_ready;
    logic [3:0] word_primitive;
    logic word_void;
    logic word_last;
    logic word_valid;
    logic credit;
    logic [2:0] report_function;
    logic report_valid;
    logic [2:0] move_function;
    logic move_get;
    logic move_valid;
    logic [63:0] room;
    logic [2:0] take_function;
    logic take;
    logic [7:0] waits;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [117:0] padding;
    logic to_valid;
    logic word_ready;
    logic [7:0] may_ring;
  } out_t;

endpackage
