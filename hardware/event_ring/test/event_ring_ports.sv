// Written by `hardware layouts` from the model's structs of `event_ring`; change those.
package event_ring_ports;

  localparam int unsigned InBits = 384;
  typedef struct packed {
    logic [57:0] padding;
    logic out_ready;
    logic [5:0] ask_ring;
    logic [255:0] in_event;
    logic [5:0] in_ring;
    logic in_valid;
    logic [12:0] host_count;
    logic [34:0] host_base;
    logic [5:0] host_ring;
    logic host_opens;
    logic host_valid;
  } in_t;

  localparam int unsigned OutBits = 320;
  typedef struct packed {
    logic [255:0] out_event;
    logic [39:0] out_address;
    logic [5:0] out_ring;
    logic out_valid;
    logic [12:0] ask_room;
    logic lacks_place;
    logic lacks_ring;
    logic in_ready;
    logic refused;
  } out_t;

endpackage
