// Written by `hardware layouts` from the model's structs of `credit_ledger`; change those.
package credit_ledger_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [100:0] padding;
    logic update_ready;
    logic [11:0] leave_cost;
    logic leave_valid;
    logic [11:0] in_cost;
    logic in_valid;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [105:0] padding;
    logic [11:0] update_data;
    logic [7:0] update_headers;
    logic update_valid;
    logic in_ready;
  } out_t;

endpackage
