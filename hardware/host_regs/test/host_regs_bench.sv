// `host_regs` with the ports that the model has, packed.
module host_regs_bench #(
    parameter int unsigned CountWidth = 32
) (
    input  logic                                clk,
    input  logic                                rst,
    input  logic [ host_regs_ports::InBits-1:0] in,
    output logic [host_regs_ports::OutBits-1:0] out
);

  host_regs_ports::in_t  i;
  host_regs_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic keys_window, keys_opens, rings_opens, slots_opens, is_window, is_key;
  logic [2:0] keys_function;
  logic [27:0] keys_base, slots_page;
  logic [28:0] keys_pages;
  logic [4:0] keys_pair, slots_pair;
  logic [ 7:0] keys_key;
  logic [ 5:0] rings_ring;
  logic [34:0] rings_base;
  logic [12:0] rings_count;
  logic [ 8:0] slots_count;
  logic [CountWidth-1:0] dropped, refusals, tlps_dropped, tlps_refused;

  host_regs #(
      .CountWidth(CountWidth)
  ) u_dut (
      .clk,
      .rst,
      .store_valid  (i.store_valid),
      .store_last   (i.store_last),
      .store_address(i.store_address),
      .store_bytes  (i.store_bytes),
      .store_data   (i.store_data),
      .bell_valid   (o.bell_valid),
      .keys_valid   (o.keys_valid),
      .keys_window  (keys_window),
      .keys_function(keys_function),
      .keys_base    (keys_base),
      .keys_pages   (keys_pages),
      .keys_pair    (keys_pair),
      .keys_opens   (keys_opens),
      .keys_key     (keys_key),
      .rings_valid  (o.rings_valid),
      .rings_opens  (rings_opens),
      .rings_ring   (rings_ring),
      .rings_base   (rings_base),
      .rings_count  (rings_count),
      .slots_valid  (o.slots_valid),
      .slots_opens  (slots_opens),
      .slots_pair   (slots_pair),
      .slots_page   (slots_page),
      .slots_count  (slots_count),
      .refused      (i.refused),
      .tlp_dropped  (i.tlp_dropped),
      .tlp_refused  (i.tlp_refused),
      .dropped      (dropped),
      .refusals     (refusals),
      .tlps_dropped (tlps_dropped),
      .tlps_refused (tlps_refused)
  );

  assign is_window       = o.keys_valid && keys_window;
  assign is_key          = o.keys_valid && !keys_window;
  assign o.keys_window   = is_window;
  assign o.keys_function = is_window ? keys_function : '0;
  assign o.keys_base     = is_window ? keys_base : '0;
  assign o.keys_pages    = is_window ? keys_pages : '0;
  assign o.keys_pair     = is_key ? keys_pair : '0;
  assign o.keys_opens    = is_key && keys_opens;
  assign o.keys_key      = is_key ? keys_key : '0;
  assign o.rings_opens   = o.rings_valid && rings_opens;
  assign o.rings_ring    = o.rings_valid ? rings_ring : '0;
  assign o.rings_base    = o.rings_opens ? rings_base : '0;
  assign o.rings_count   = o.rings_valid ? rings_count : '0;
  assign o.slots_opens   = o.slots_valid && slots_opens;
  assign o.slots_pair    = o.slots_valid ? slots_pair : '0;
  assign o.slots_page    = o.slots_opens ? slots_page : '0;
  assign o.slots_count   = o.slots_valid ? slots_count : '0;
  assign o.dropped       = 32'(dropped);
  assign o.refusals      = 32'(refusals);
  assign o.tlps_dropped  = 32'(tlps_dropped);
  assign o.tlps_refused  = 32'(tlps_refused);
  assign o.padding       = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
