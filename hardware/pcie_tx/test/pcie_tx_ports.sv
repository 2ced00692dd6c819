// Written by `hardware layouts` from the model's structs of `pcie_tx`; change those.
package pcie_tx_ports;

  localparam int unsigned InBits = 384;
  typedef struct packed {
    logic [28:0] padding;
    logic out_ready;
    logic [31:0] answer_data;
    logic answer_has_data;
    logic [6:0] answer_lower;
    logic [11:0] answer_count;
    logic [2:0] answer_status;
    logic [2:0] answer_attributes;
    logic [2:0] answer_class;
    logic [7:0] answer_tag;
    logic [15:0] answer_requester;
    logic [2:0] answer_function;
    logic answer_valid;
    logic [127:0] write_data;
    logic [12:0] write_bytes;
    logic [39:0] write_address;
    logic [2:0] write_function;
    logic write_last;
    logic write_valid;
    logic read_credit;
    logic [7:0] read_tag;
    logic [12:0] read_bytes;
    logic [39:0] read_address;
    logic [2:0] read_function;
    logic read_valid;
    logic [12:0] device;
  } in_t;

  localparam int unsigned OutBits = 192;
  typedef struct packed {
    logic [55:0] padding;
    logic refused;
    logic [127:0] out_data;
    logic [1:0] out_empty;
    logic out_last;
    logic out_valid;
    logic answer_ready;
    logic write_ready;
    logic read_ready;
  } out_t;

endpackage
