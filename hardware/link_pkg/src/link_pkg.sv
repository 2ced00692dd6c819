// Written by `hardware layouts` from `crates/wire`; change that.
package link_pkg;

  // No block uses all of it.
  /* verilator lint_off UNUSEDPARAM */

  // The special symbols that begin and end packets.
  localparam logic [7:0] Stp = 8'hfb;
  localparam logic [7:0] Sdp = 8'h5c;
  localparam logic [7:0] End = 8'hfd;

  // Those of single lanes, of which marks consist.
  localparam logic [7:0] Com = 8'hbc;
  localparam logic [7:0] Skp = 8'h1c;

  // What follows COM in a training sequence.
  localparam logic [7:0] Ts1 = 8'h4a;
  localparam logic [7:0] Ts2 = 8'h45;

  localparam int unsigned SequenceWidth = 12;

  // Where the payload's length in DW begins in a TLP.
  localparam int unsigned LengthBit = 24;

  // The first two bytes of a TLP of channel 0, which bit is the channel, and most DWs of payload.
  localparam logic [15:0] PostedWrite = 16'h0060;
  localparam int unsigned ChannelBit = 12;
  localparam int unsigned MaxPayload = 128;

  // Types of link packets. The lowest bit of those with credits is the channel.
  localparam logic [7:0] Ack = 8'h00;
  localparam logic [7:0] Nak = 8'h10;
  localparam logic [7:0] FirstInit = 8'h40;
  localparam logic [7:0] SecondInit = 8'hc0;
  localparam logic [7:0] Update = 8'h80;

  // The register of the link CRC behind number 0; which bits of a number flip each of its bits.
  localparam logic [31:0] Crc32Start = 32'h0e9e882d;
  localparam logic [383:0] Crc32Sequence = {
    12'h88f,
    12'h447,
    12'h223,
    12'h911,
    12'hc08,
    12'he04,
    12'h78d,
    12'hb46,
    12'h5ac,
    12'h2d9,
    12'h1e3,
    12'h8fe,
    12'h47f,
    12'hab0,
    12'h5d7,
    12'h26b,
    12'h935,
    12'hc1a,
    12'h682,
    12'h3ce,
    12'h1e8,
    12'h074,
    12'h8b5,
    12'hcd5,
    12'he6a,
    12'h7ba,
    12'hbd2,
    12'hde6,
    12'hefc,
    12'h77e,
    12'h33f,
    12'h11f
  };

  // Which bits of a beat flip them, if the register before is added to the beat's first DW.
  localparam logic [4095:0] Crc32Beat = {
    128'h8fc8e57b1c379612ef13a98c0caa668f,
    128'h47e472bd8e1bcb097789d4c606553347,
    128'h23f2395ec70de584bbc4ea63032a99a3,
    128'h11f91caf6386f2c25de2753181954cd1,
    128'h08fc8e57b1c379612ef13a98c0caa668,
    128'h047e472bd8e1bcb097789d4c60655334,
    128'h8df7c6eef047484aa4afe72a3c98cf15,
    128'h46fbe3777823a4255257f3951e4c678a,
    128'hacb514c0a026440046385046838c554a,
    128'hd9926f1b4c24b412cc0f81af4d6c4c2a,
    128'he301d2f6ba25cc1b8914695baa1c409a,
    128'hfe480c004125701f2b999d21d9a446c2,
    128'h7f2406002092b80f95ccce90ecd22361,
    128'hb05ae67b0c7eca1525f5cec47ac3773f,
    128'hd7e596469a08f3187de94eee31cbdd10,
    128'h6bf2cb234d04798c3ef4a77718e5ee88,
    128'h35f96591a6823cc61f7a53bb8c72f744,
    128'h1afcb2c8d3411e630fbd29ddc6397ba2,
    128'h82b6bc1f7597192368cd3d62efb6db5e,
    128'hce93bb74a6fc1a835b75373d7b710b20,
    128'he88138c14f499b5342a93212b112e31f,
    128'h74409c60a7a4cda9a15499095889718f,
    128'hb5e8ab4b4fe5f0c63fb9e508a0eede48,
    128'hd53cb0debbc56e71f0cf5b085cdd09ab,
    128'h6a9e586f5de2b738f867ad842e6e84d5,
    128'hba87c94cb2c6cd8e93207f4e1b9d24e5,
    128'hd28b01dd4554f0d5a683962b0164f4fd,
    128'he68d6595be9dee783c5262998c181cf1,
    128'hfc8e57b1c379612ef13a98c0caa668f7,
    128'h7e472bd8e1bcb097789d4c606553347b,
    128'h3f2395ec70de584bbc4ea63032a99a3d,
    128'h1f91caf6386f2c25de2753181954cd1e
  };

  // The CRC of a link packet whose content is zero; which bits of a content flip each of its bits.
  localparam logic [15:0] Crc16Start = 16'hcd46;
  localparam logic [511:0] Crc16Content = {
    32'h885858da,
    32'h442c2c6d,
    32'h221696b6,
    32'h110b4b5b,
    32'h00ddfdf7,
    32'h80eefefb,
    32'h4077fffd,
    32'ha0bbff7e,
    32'hd0dd7f3f,
    32'he8eebf1f,
    32'h74f7df0f,
    32'hbafbef87,
    32'hddfdf7c3,
    32'h66a6a3bb,
    32'h33d3d1dd,
    32'h11b1b0b4
  };

  /* verilator lint_on UNUSEDPARAM */

endpackage
