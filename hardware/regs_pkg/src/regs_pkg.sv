// Written by `hardware layouts` from `crates/wire`; change that.
package regs_pkg;

  // Functions, the page of registers behind theirs, and where reports begin in a function's page.
  localparam int unsigned Functions = 8;
  localparam int unsigned Page = 8;
  localparam int unsigned Reports = 'h800;

  // Counts that are read, of which the first one is this version. Not each user has both.
  // verilator lint_off UNUSEDPARAM
  localparam int unsigned Counts = 10;
  localparam int unsigned Version = 1;
  // verilator lint_on UNUSEDPARAM

  // Bytes of a store.
  localparam int unsigned StoreBytes = 8;

  // Where the first register of each kind lies in its page, and how many there are.
  localparam int unsigned RingReportPlace = 'h800;
  localparam int unsigned RingReportCount = 8;
  localparam int unsigned ListReportPlace = 'h840;
  localparam int unsigned ListReportCount = 4;
  localparam int unsigned RingPlace = 'h400;
  localparam int unsigned RingCount = 64;
  localparam int unsigned ListPlace = 'h600;
  localparam int unsigned ListCount = 32;
  localparam int unsigned KeyPlace = 'h700;
  localparam int unsigned KeyCount = 32;
  localparam int unsigned WindowPlace = 'h800;
  localparam int unsigned WindowCount = 8;

  // Words that are stored.
  typedef struct packed {
    logic [2:0] reserved_63;
    logic [12:0] entries;
    logic [7:0] reserved_47;
    logic [34:0] base;
    logic [4:0] reserved_4;
  } ring_t;

  typedef struct packed {
    logic [6:0] reserved_63;
    logic [8:0] entries;
    logic [7:0] reserved_47;
    logic [27:0] page;
    logic [11:0] reserved_11;
  } list_t;

  typedef struct packed {
    logic [2:0] reserved_63;
    logic [28:0] pages;
    logic [3:0] reserved_31;
    logic [27:0] base;
  } window_t;

  typedef struct packed {
    logic [54:0] reserved_63;
    logic opens;
    logic [7:0] key;
  } key_t;

  typedef struct packed {
    logic [50:0] reserved_63;
    logic [12:0] count;
  } ring_report_t;

  typedef struct packed {
    logic [54:0] reserved_63;
    logic [8:0] count;
  } list_report_t;

endpackage
