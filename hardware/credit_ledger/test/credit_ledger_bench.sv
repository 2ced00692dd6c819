// `credit_ledger` with the ports that the model has, packed.
module credit_ledger_bench #(
    parameter int unsigned Headers = 32,
    parameter int unsigned Data = 92,
    parameter int unsigned AgainAfter = 7500
) (
    input  logic                                    clk,
    input  logic                                    rst,
    input  logic [ credit_ledger_ports::InBits-1:0] in,
    output logic [credit_ledger_ports::OutBits-1:0] out
);

  credit_ledger_ports::in_t  i;
  credit_ledger_ports::out_t o;
  assign i   = in;
  assign out = o;

  credit_ledger #(
      .HeaderWidth($bits(o.update_headers)),
      .DataWidth  ($bits(o.update_data)),
      .Headers    (Headers),
      .Data       (Data),
      .AgainAfter (AgainAfter)
  ) u_dut (
      .clk,
      .rst,
      .in_valid      (i.in_valid),
      .in_ready      (o.in_ready),
      .in_cost       (i.in_cost),
      .leave_valid   (i.leave_valid),
      .leave_cost    (i.leave_cost),
      .update_valid  (o.update_valid),
      .update_ready  (i.update_ready),
      .update_headers(o.update_headers),
      .update_data   (o.update_data)
  );

  assign o.padding = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
