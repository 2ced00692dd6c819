// `damq_buffer` at the size of its proof. Yosys would first elaborate the default size.
module damq_buffer_proof (
    input logic clk,
    input logic rst,
    input logic bell_valid,
    input logic bell_port,
    input logic word_valid,
    input logic word_port,
    input logic word_way,
    input logic word_last,
    input logic [1:0] word_data,
    input logic ready
);
  damq_buffer #(
      .Ports(2),
      .Depth(3),
      .Landing(2),
      .Width(2),
      .TicketWidth(3)
  ) u_dut (
      .clk(clk),
      .rst(rst),
      .bell_valid(bell_valid),
      .bell_port(bell_port),
      .word_valid(word_valid),
      .word_port(word_port),
      .word_way(word_way),
      .word_last(word_last),
      .word_data(word_data),
      .ready(ready)
  );
endmodule
