// Written by `hardware layouts` from the model's structs of `replay_buf`; change those.
package replay_buf_ports;

  localparam int unsigned InBits = 192;
  typedef struct packed {
    logic [46:0] padding;
    logic [11:0] ack_sequence;
    logic ack_nak;
    logic ack_valid;
    logic out_ready;
    logic [127:0] in_data;
    logic in_last;
    logic in_valid;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [27:0] padding;
    logic retrain;
    logic timed_out;
    logic refused;
    logic ack_ready;
    logic [127:0] out_data;
    logic [11:0] out_sequence;
    logic out_again;
    logic out_last;
    logic out_valid;
    logic [15:0] room;
    logic in_ready;
  } out_t;

endpackage
