// Written by `hardware layouts` from the model's structs of `desc_extract`; change those.
package desc_extract_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [54:0] padding;
    logic report_ready;
    logic data_ready;
    logic move_ready;
    logic read_ready;
    logic source_fits;
    logic [63:0] in_word;
    logic [39:0] in_address;
    logic [8:0] in_peer;
    logic [1:0] in_pair;
    logic [2:0] in_function;
    logic in_remote;
    logic in_refused;
    logic in_failed;
    logic in_last;
    logic in_valid;
    logic [4:0] cpus;
    logic [3:0] cpu;
  } in_t;

  localparam int unsigned OutBits = 704;
  typedef struct packed {
    logic [24:0] padding;
    logic dropped;
    logic [39:0] report_address;
    logic [3:0] report_primitive;
    logic [8:0] report_peer;
    logic [1:0] report_pair;
    logic [2:0] report_function;
    logic [2:0] report_status;
    logic report_valid;
    logic [127:0] data;
    logic [3:0] data_to;
    logic data_get;
    logic data_ends;
    logic data_valid;
    logic [39:0] move_descriptor;
    logic [39:0] move_total;
    logic [39:0] move_bytes;
    logic [39:0] move_address;
    logic [7:0] move_operation;
    logic [127:0] move_tail;
    logic [4:0] move_tail_bytes;
    logic move_wants_event;
    logic [8:0] move_destination;
    logic [8:0] move_source;
    logic [7:0] move_magic;
    logic [2:0] move_traffic_class;
    logic [3:0] move_primitive;
    logic move_remote;
    logic move_last;
    logic move_valid;
    logic [12:0] read_bytes;
    logic [39:0] read_address;
    logic [2:0] read_function;
    logic read_ends;
    logic read_valid;
    logic [39:0] source_length;
    logic [39:0] source_address;
    logic [2:0] source_function;
    logic source_valid;
    logic in_ready;
  } out_t;

endpackage
