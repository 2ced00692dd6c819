// Written by `hardware layouts` from the model's structs of `tag_alloc`; change those.
package tag_alloc_ports;

  localparam int unsigned InBits = 128;
  typedef struct packed {
    logic [117:0] padding;
    logic [7:0] release_tag;
    logic release_valid;
    logic tag_ready;
  } in_t;

  localparam int unsigned OutBits = 128;
  typedef struct packed {
    logic [99:0] padding;
    logic [7:0] lost_tag;
    logic lost_valid;
    logic refused;
    logic [8:0] in_use;
    logic [7:0] tag;
    logic tag_valid;
  } out_t;

endpackage
