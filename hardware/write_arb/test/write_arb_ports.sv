// Written by `hardware layouts` from the model's structs of `write_arb`; change those.
package write_arb_ports;

  localparam int unsigned InBits = 512;
  typedef struct packed {
    logic [24:0] padding;
    logic out_ready;
    logic [255:0] event_record;
    logic [39:0] event_address;
    logic [2:0] event_function;
    logic event_valid;
    logic [127:0] upload_data;
    logic [12:0] upload_bytes;
    logic [39:0] upload_address;
    logic [2:0] upload_function;
    logic upload_last;
    logic upload_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [3:0] padding;
    logic [127:0] out_data;
    logic [12:0] out_bytes;
    logic [39:0] out_address;
    logic [2:0] out_function;
    logic out_last;
    logic out_valid;
    logic event_ready;
    logic upload_ready;
  } out_t;

endpackage
