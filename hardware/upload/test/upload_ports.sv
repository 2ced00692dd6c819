// Written by `hardware layouts` from the model's structs of `upload`; change those.
package upload_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [5:0] padding;
    logic out_ready;
    logic lacks_place;
    logic lacks_ring;
    logic event_ready;
    logic [39:0] slot;
    logic lacks_list;
    logic take_ready;
    logic target_fits;
    logic packet_fits;
    logic [127:0] in_data;
    logic [3:0] in_to;
    logic in_last;
    logic in_valid;
    logic [3:0] cpu;
  } in_t;

  localparam int unsigned OutBits = 576;
  typedef struct packed {
    logic [42:0] padding;
    logic mismatched;
    logic passed_over;
    logic closed;
    logic outside;
    logic refused;
    logic unknown;
    logic [127:0] out_data;
    logic [12:0] out_bytes;
    logic [39:0] out_address;
    logic [2:0] out_function;
    logic out_last;
    logic out_valid;
    logic [255:0] event_record;
    logic [5:0] event_ring;
    logic event_valid;
    logic [4:0] take_pair;
    logic take_valid;
    logic [12:0] target_length;
    logic [39:0] target_address;
    logic [2:0] target_function;
    logic target_valid;
    logic [7:0] packet_key;
    logic [4:0] packet_pair;
    logic packet_valid;
    logic in_ready;
  } out_t;

endpackage
