// Written by `hardware layouts` from the model's structs of `rx_ack`; change those.
package rx_ack_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [112:0] padding;
    logic ack_ready;
    logic [11:0] frame_sequence;
    logic frame_damaged;
    logic frame_valid;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [110:0] padding;
    logic [11:0] ack_sequence;
    logic ack_nak;
    logic ack_valid;
    logic discarded;
    logic repeated;
    logic deliver;
  } out_t;

endpackage
