// Written by `hardware layouts` from the model's structs of `credit_gate`; change those.
package credit_gate_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [93:0] padding;
    logic [11:0] update_data;
    logic [7:0] update_headers;
    logic update_valid;
    logic [11:0] in_cost;
    logic in_valid;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [104:0] padding;
    logic [11:0] left_data;
    logic [7:0] left_headers;
    logic lacks_data;
    logic lacks_header;
    logic in_ready;
  } out_t;

endpackage
