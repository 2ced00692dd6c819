// Written by `hardware layouts` from the model's structs of `send_event`; change those.
package send_event_ports;

  localparam int unsigned InBits = 640;
  typedef struct packed {
    logic [61:0] padding;
    logic lacks_place;
    logic lacks_ring;
    logic event_ready;
    logic [255:0] upload_record;
    logic [5:0] upload_ring;
    logic upload_valid;
    logic [39:0] report_address;
    logic [3:0] report_primitive;
    logic [8:0] report_peer;
    logic [1:0] report_pair;
    logic [2:0] report_function;
    logic [2:0] report_status;
    logic report_valid;
    logic [13:0] sent_place;
    logic [1:0] sent_failed;
    logic [1:0] sent_valid;
    logic [39:0] move_descriptor;
    logic [39:0] move_total;
    logic [127:0] move_tail;
    logic [4:0] move_tail_bytes;
    logic [3:0] move_primitive;
    logic [8:0] move_peer;
    logic [1:0] move_pair;
    logic [2:0] move_function;
    logic move_valid;
  } in_t;

  localparam int unsigned OutBits = 384;
  typedef struct packed {
    logic [8:0] padding;
    logic [31:0] dropped;
    logic [2:0] dropped_function;
    logic dropped_valid;
    logic [255:0] event_record;
    logic [5:0] event_ring;
    logic event_valid;
    logic upload_lacks_place;
    logic upload_lacks_ring;
    logic upload_ready;
    logic [63:0] room;
    logic report_ready;
    logic [6:0] move_place;
    logic move_ready;
  } out_t;

endpackage
