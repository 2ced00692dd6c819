// `pcie_tx` with the ports that the model has, packed.
module pcie_tx_bench #(
    parameter int unsigned MaxRead = 128,
    parameter int unsigned MaxPayload = 128
) (
    input  logic                              clk,
    input  logic                              rst,
    input  logic [ pcie_tx_ports::InBits-1:0] in,
    output logic [pcie_tx_ports::OutBits-1:0] out
);

  pcie_tx_ports::in_t  i;
  pcie_tx_ports::out_t o;
  assign i   = in;
  assign out = o;

  logic out_last;
  logic [1:0] out_empty;
  logic [127:0] out_data;

  pcie_tx #(
      .AddressWidth($bits(i.read_address)),
      .SizeWidth($bits(i.read_bytes)),
      .Tags(2 ** $bits(i.read_tag)),
      .FunctionWidth($bits(i.read_function)),
      .MaxRead(MaxRead),
      .MaxPayload(MaxPayload)
  ) u_dut (
      .clk,
      .rst,
      .device           (i.device),
      .read_valid       (i.read_valid),
      .read_ready       (o.read_ready),
      .read_credit      (i.read_credit),
      .read_function    (i.read_function),
      .read_address     (i.read_address),
      .read_bytes       (i.read_bytes),
      .read_tag         (i.read_tag),
      .write_valid      (i.write_valid),
      .write_ready      (o.write_ready),
      .write_last       (i.write_last),
      .write_function   (i.write_function),
      .write_address    (i.write_address),
      .write_bytes      (i.write_bytes),
      .write_data       (i.write_data),
      .answer_valid     (i.answer_valid),
      .answer_ready     (o.answer_ready),
      .answer_function  (i.answer_function),
      .answer_requester (i.answer_requester),
      .answer_tag       (i.answer_tag),
      .answer_class     (i.answer_class),
      .answer_attributes(i.answer_attributes),
      .answer_status    (i.answer_status),
      .answer_count     (i.answer_count),
      .answer_lower     (i.answer_lower),
      .answer_has_data  (i.answer_has_data),
      .answer_data      (i.answer_data),
      .out_valid        (o.out_valid),
      .out_ready        (i.out_ready),
      .out_last         (out_last),
      .out_empty        (out_empty),
      .out_data         (out_data),
      .refused          (o.refused)
  );

  // DWs that a beat lacks can have any value.
  logic [127:0] shown;
  always_comb begin
    shown = '0;
    for (int unsigned lane = 0; lane < 4; lane++) begin
      if (o.out_valid && lane + 32'(out_empty) < 4) begin
        shown[lane*32+:32] = out_data[lane*32+:32];
      end
    end
  end
  assign o.out_data  = shown;
  assign o.out_last  = o.out_valid && out_last;
  assign o.out_empty = o.out_valid ? out_empty : '0;
  assign o.padding   = '0;

  logic unused;
  assign unused = ^i.padding;

endmodule
