//! The package of the SMP link's formats in SystemVerilog, written from `crates/wire`.

use bellwire_model::cycle::replay_buf::SEQUENCE_BITS;
use bellwire_wire::frame::check::crc32c;
use bellwire_wire::link::dllp::{Dllp, Granted, SDP, Stage, crc16};
use bellwire_wire::link::lanes::{COM, SKP, TS1, TS2};
use bellwire_wire::link::llp::{END, STP};
use bellwire_wire::link::tlp::{LENGTH_BYTE, MAX_PAYLOAD_DW, OVERHEAD_BYTES, Tlp};

/// Bits of a beat.
const BEAT: usize = 128;

/// The package.
pub fn link_pkg() -> String {
    let granted = Granted::default();
    let kind = |packet: Dllp| packet.emit().expect("zeros fit")[1];
    let credits = |stage| kind(Dllp::Credits { stage, channel: 0, granted });
    let ack = kind(Dllp::Ack { sequence: 0 });
    let nak = kind(Dllp::Nak { sequence: 0 });
    let [first, second, update] = [Stage::Init1, Stage::Init2, Stage::Update].map(credits);
    let length_bit = 8 * LENGTH_BYTE;
    let [write, other] = [0, 1].map(begins);
    let channel_bit = (write ^ other).trailing_zeros();
    let (of_zero, of_zeros) = (crc32_start(0), crc16(&[0; 4]));
    let sequence =
        parities("Crc32Sequence", SEQUENCE_BITS, 32, |bit| crc32_start(1 << bit) ^ of_zero);
    let beat = parities("Crc32Beat", BEAT, 32, crc32_beat);
    let content = parities("Crc16Content", 32, 16, crc16_content);
    format!(
        "\
// Written by `hardware layouts` from `crates/wire`; change that.
package link_pkg;

  // No block uses all of it.
  /* verilator lint_off UNUSEDPARAM */

  // The special symbols that begin and end packets.
  localparam logic [7:0] Stp = 8'h{STP:02x};
  localparam logic [7:0] Sdp = 8'h{SDP:02x};
  localparam logic [7:0] End = 8'h{END:02x};

  // Those of single lanes, of which marks consist.
  localparam logic [7:0] Com = 8'h{COM:02x};
  localparam logic [7:0] Skp = 8'h{SKP:02x};

  // What follows COM in a training sequence.
  localparam logic [7:0] Ts1 = 8'h{TS1:02x};
  localparam logic [7:0] Ts2 = 8'h{TS2:02x};

  localparam int unsigned SequenceWidth = {SEQUENCE_BITS};

  // Where the payload's length in DW begins in a TLP.
  localparam int unsigned LengthBit = {length_bit};

  // The first two bytes of a TLP of channel 0, which bit is the channel, and most DWs of payload.
  localparam logic [15:0] PostedWrite = 16'h{write:04x};
  localparam int unsigned ChannelBit = {channel_bit};
  localparam int unsigned MaxPayload = {MAX_PAYLOAD_DW};

  // Types of link packets. The lowest bit of those with credits is the channel.
  localparam logic [7:0] Ack = 8'h{ack:02x};
  localparam logic [7:0] Nak = 8'h{nak:02x};
  localparam logic [7:0] FirstInit = 8'h{first:02x};
  localparam logic [7:0] SecondInit = 8'h{second:02x};
  localparam logic [7:0] Update = 8'h{update:02x};

  // The register of the link CRC behind number 0; which bits of a number flip each of its bits.
  localparam logic [31:0] Crc32Start = 32'h{of_zero:08x};
{sequence}
  // Which bits of a beat flip them, if the register before is added to the beat's first DW.
{beat}
  // The CRC of a link packet whose content is zero; which bits of a content flip each of its bits.
  localparam logic [15:0] Crc16Start = 16'h{of_zeros:04x};
{content}
  /* verilator lint_on UNUSEDPARAM */

endpackage
"
    )
}

/// The first two bytes of a TLP of this channel.
fn begins(channel: u8) -> u16 {
    let tlp = Tlp { channel, requester: 0, tag: 0, address: 0, payload: &[] };
    let mut bytes = [0; OVERHEAD_BYTES];
    tlp.emit(&mut bytes).expect("an empty TLP fits");
    u16::from_le_bytes([bytes[0], bytes[1]])
}

/// The register behind a sequence number.
fn crc32_start(sequence: u16) -> u32 {
    !crc32c(&sequence.to_be_bytes())
}

/// The register behind a beat of which this bit is set, if it was zero before.
fn crc32_beat(bit: usize) -> u32 {
    // A register of ones is the start of the CRC, so ones in the first DW make it zero.
    !crc32c(&(1_u128 << bit ^ u128::from(u32::MAX)).to_le_bytes())
}

/// The bits of a link packet's CRC that this bit of its content flips.
fn crc16_content(bit: usize) -> u32 {
    u32::from(crc16(&(1_u32 << bit).to_le_bytes()) ^ crc16(&[0; 4]))
}

/// A constant with a row for each of the `outputs`: which of the `inputs` flip it. The lowest row
/// is that of output 0.
fn parities(name: &str, inputs: usize, outputs: usize, flips: impl Fn(usize) -> u32) -> String {
    let (high, digits) = (inputs * outputs - 1, inputs / 4);
    let row = |output: usize| {
        let flipped = (0..inputs).filter(|&input| flips(input) >> output & 1 == 1);
        let row = flipped.fold(0_u128, |row, input| row | 1 << input);
        format!("    {inputs}'h{row:0digits$x}")
    };
    let rows: Vec<String> = (0..outputs).rev().map(row).collect();
    format!("  localparam logic [{high}:0] {name} = {{\n{}\n  }};\n", rows.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwire_model::engine::Random;

    /// The sum of what the set bits flip.
    fn sum(bits: u128, flips: impl Fn(usize) -> u32) -> u32 {
        (0..BEAT).filter(|bit| bits >> bit & 1 == 1).fold(0, |sum, bit| sum ^ flips(bit))
    }

    /// Over numbers, beats and contents at random, what single bits flip gives what `crates/wire`
    /// computes.
    #[test]
    fn the_constants_give_the_crcs_of_the_wire() {
        let mut random = Random::new(1);
        for case in 0..64 {
            let (sequence, dwords) = (random.below(1 << SEQUENCE_BITS) as u16, 1 + case % 4);
            let mut bytes = sequence.to_be_bytes().to_vec();
            let of_zero = crc32_start(0);
            let flips = |bit: usize| crc32_start(1 << bit) ^ of_zero;
            let mut state = of_zero ^ sum(sequence.into(), flips);
            for dwords in [4, 4, dwords] {
                let data = u128::from(random.word()) << 64 | u128::from(random.word());
                bytes.extend(&data.to_le_bytes()[..4 * dwords as usize]);
                // A short beat is moved to the end, as `crc32_beat.sv` does it.
                let bits = (data ^ u128::from(state)) << (32 * (4 - dwords));
                state = sum(bits, crc32_beat);
            }
            assert_eq!(!state, crc32c(&bytes), "{bytes:?}");
            let content = random.word() as u32;
            let crc = u32::from(crc16(&[0; 4])) ^ sum(content.into(), crc16_content);
            assert_eq!(crc, u32::from(crc16(&content.to_le_bytes())), "{content:x}");
        }
    }

    /// A row has the inputs that flip its output.
    #[test]
    fn rows_are_those_of_outputs() {
        let text = parities("Some", 8, 3, |input| [1, 2, 4, 3, 0, 0, 0, 7][input]);
        let expected =
            "  localparam logic [23:0] Some = {\n    8'h84,\n    8'h8a,\n    8'h89\n  };\n";
        assert_eq!(text, expected);
    }
}
