// Written by `hardware layouts` from `crates/wire`; change that.
package pcie_pkg;

  // No block uses all of it.
  /* verilator lint_off UNUSEDPARAM */

  // Bits of a format: the header has 4 DW, and a payload follows.
  localparam logic [2:0] Long = 3'd1;
  localparam logic [2:0] WithData = 3'd2;

  // Types: reads and writes of memory, completions, and, with a bit for each, the others that want
  // a completion.
  localparam logic [4:0] Memory = 5'h00;
  localparam logic [4:0] Completion = 5'h0a;
  localparam logic [31:0] OtherNonPosted = 32'h08007036;

  // What became of a request.
  localparam logic [2:0] Success = 3'd0;
  localparam logic [2:0] Unsupported = 3'd1;

  /* verilator lint_on UNUSEDPARAM */

  // DWs of headers. They are sent most significant byte first.
  typedef struct packed {
    logic [2:0] format;
    logic [4:0] kind;
    logic reserved_23;
    logic [2:0] traffic_class;
    logic reserved_19;
    logic id_order;
    logic [1:0] reserved_17;
    logic digest;
    logic poisoned;
    logic [1:0] attributes;
    logic [1:0] reserved_11;
    logic [9:0] dwords;
  } dw_0_t;

  typedef struct packed {
    logic [15:0] requester;
    logic [7:0] tag;
    logic [3:0] last_enables;
    logic [3:0] first_enables;
  } request_dw_1_t;

  typedef struct packed {
    logic [15:0] completer;
    logic [2:0] status;
    logic modified;
    logic [11:0] byte_count;
  } completion_dw_1_t;

  typedef struct packed {
    logic [15:0] requester;
    logic [7:0] tag;
    logic reserved_7;
    logic [6:0] lower_address;
  } completion_dw_2_t;

endpackage
