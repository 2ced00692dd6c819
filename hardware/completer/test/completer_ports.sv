// Written by `hardware layouts` from the model's structs of `completer`; change those.
package completer_ports;

  localparam int unsigned InBits = 640;
  typedef struct packed {
    logic [59:0] padding;
    logic answer_ready;
    logic [6:0] request_lower;
    logic [11:0] request_count;
    logic [2:0] request_attributes;
    logic [2:0] request_class;
    logic [7:0] request_tag;
    logic [15:0] request_requester;
    logic [15:0] request_address;
    logic request_is_read;
    logic request_valid;
    logic [511:0] value;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [40:0] padding;
    logic [31:0] answer_data;
    logic answer_has_data;
    logic [6:0] answer_lower;
    logic [11:0] answer_count;
    logic [2:0] answer_status;
    logic [2:0] answer_attributes;
    logic [2:0] answer_class;
    logic [7:0] answer_tag;
    logic [15:0] answer_requester;
    logic answer_valid;
    logic request_ready;
  } out_t;

endpackage
