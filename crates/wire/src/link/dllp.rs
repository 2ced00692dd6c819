//! The link layer's own packets (S-15, S-16; PCIe base specification 2.0, section 3.4).
//!
//! ```text
//!   0     1      2       5          7     8
//!   +-----+------+-------+----------+-----+
//!   | SDP | type | 3 B   | CRC-16   | END |
//!   +-----+------+-------+----------+-----+
//!   type:      0x00 ACK, 0x10 NAK, 0x40 + VC InitFC1, 0xc0 + VC InitFC2, 0x80 + VC UpdateFC
//!   ACK, NAK:  0 in 23:12, sequence in 11:0
//!   FC:        0 in 23:22, headers in 21:14, 0 in 13:12, data in 11:0:
//!              credits granted since the link came up, modulo 2^8 and 2^12
//! ```
//!
//! Only credits for posted writes are ever exchanged, because the link carries nothing else (S-13).

use core::fmt;

use super::llp::END;
use crate::WireError;
use crate::bits::{Field, tiles};

/// Size of a DLLP: 2 DW.
pub const DLLP_BYTES: usize = 8;

/// The special symbol with which a link-layer packet begins.
pub const SDP: u8 = 0x5c;

/// x^16 + x^12 + x^3 + x + 1, PCIe's polynomial for these packets.
const POLYNOMIAL: u16 = 0x100b;
const FORMAT: &str = "DLLP";

const R_23_12: Field = Field::new("reserved bits 23:12 of the acknowledgement", 23, 12);
const SEQUENCE: Field = Field::new("sequence number", 11, 0);
const R_23_22: Field = Field::new("reserved bits 23:22 of the credits", 23, 22);
const HEADERS: Field = Field::new("header credits", 21, 14);
const R_13_12: Field = Field::new("reserved bits 13:12 of the credits", 13, 12);
const DATA: Field = Field::new("data credits", 11, 0);

const _: () = {
    assert!(tiles(&[R_23_12, SEQUENCE], 24));
    assert!(tiles(&[R_23_22, HEADERS, R_13_12, DATA], 24));
    assert!(DLLP_BYTES == 2 * super::DW_BYTES);
};

/// Credits granted since the link came up; the counters wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Granted {
    /// Header credits, modulo 2^8.
    pub headers: u8,
    /// Data credits of 4 DW each (S-15), modulo 2^12.
    pub data: u16,
}

/// The three kinds of credit messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The first value, sent until the peer's value has come.
    Init1,
    /// The first value once more, after the peer's value has come.
    Init2,
    /// A later value.
    Update,
}

/// A packet of the link layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dllp {
    /// All up to this sequence number have come.
    Ack {
        /// The last number that came in order.
        sequence: u16,
    },
    /// All up to this sequence number have come, and a later one was damaged: retransmit those
    /// behind it.
    Nak {
        /// The last number that came in order.
        sequence: u16,
    },
    /// Credits for posted writes.
    Credits {
        /// The kind of message.
        stage: Stage,
        /// Virtual channel, 0 or 1.
        channel: u8,
        /// The sum of all grants.
        granted: Granted,
    },
}

impl Dllp {
    /// Reads a DLLP.
    ///
    /// # Errors
    /// [`WireError::Damaged`] if framing or CRC is wrong. [`WireError::UnknownCode`] and
    /// [`WireError::Reserved`] if both are right, but this link never sends such content.
    pub fn parse(bytes: &[u8; DLLP_BYTES]) -> Result<Dllp, WireError> {
        let [sdp, content @ .., c1, c0, end] = *bytes;
        let [kind, high, middle, low] = content;
        if sdp != SDP || end != END || crc16(&content) != u16::from_be_bytes([c1, c0]) {
            return Err(WireError::Damaged { format: FORMAT });
        }
        let word = u32::from_be_bytes([0, high, middle, low]).into();
        let credits = |stage, channel| {
            R_23_22.must_be_zero(word)?;
            R_13_12.must_be_zero(word)?;
            let granted = Granted { headers: HEADERS.of(word) as u8, data: DATA.of(word) as u16 };
            Ok(Dllp::Credits { stage, channel, granted })
        };
        let sequence = SEQUENCE.of(word) as u16;
        match kind {
            0x00 => R_23_12.must_be_zero(word).map(|()| Dllp::Ack { sequence }),
            0x10 => R_23_12.must_be_zero(word).map(|()| Dllp::Nak { sequence }),
            0x40 | 0x41 => credits(Stage::Init1, kind & 1),
            0xc0 | 0xc1 => credits(Stage::Init2, kind & 1),
            0x80 | 0x81 => credits(Stage::Update, kind & 1),
            _ => Err(WireError::UnknownCode { field: "type of the DLLP", code: kind.into() }),
        }
    }

    /// The bytes.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] for a sequence number, a channel or credits that do not fit.
    pub fn emit(&self) -> Result<[u8; DLLP_BYTES], WireError> {
        let (kind, word) = match *self {
            Dllp::Ack { sequence } => (0x00, SEQUENCE.place(sequence.into())?),
            Dllp::Nak { sequence } => (0x10, SEQUENCE.place(sequence.into())?),
            Dllp::Credits { stage, channel, granted } => {
                let base = match stage {
                    Stage::Init1 => 0x40,
                    Stage::Init2 => 0xc0,
                    Stage::Update => 0x80,
                };
                if channel > 1 {
                    let (field, value) = ("virtual channel", channel.into());
                    return Err(WireError::OutOfRange { field, value, limit: 1 });
                }
                let word =
                    HEADERS.place(granted.headers.into())? | DATA.place(granted.data.into())?;
                (base | channel, word)
            }
        };
        let [.., high, middle, low] = word.to_be_bytes();
        let content = [kind, high, middle, low];
        let [c1, c0] = crc16(&content).to_be_bytes();
        Ok([SDP, kind, high, middle, low, c1, c0, END])
    }
}

impl fmt::Display for Dllp {
    /// `ack 17` or `update of VC0: 40 headers, 92 data`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dllp::Ack { sequence } => write!(f, "ack {sequence}"),
            Dllp::Nak { sequence } => write!(f, "nak {sequence}"),
            Dllp::Credits { stage, channel, granted } => {
                let stage = match stage {
                    Stage::Init1 => "first init",
                    Stage::Init2 => "second init",
                    Stage::Update => "update",
                };
                write!(
                    f,
                    "{stage} of VC{channel}: {} headers, {} data",
                    granted.headers, granted.data
                )
            }
        }
    }
}

/// The CRC of a link-layer packet's content. Bit by bit: four bytes do not justify a table.
pub fn crc16(bytes: &[u8]) -> u16 {
    let mut crc = u16::MAX;
    for byte in bytes {
        crc ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            crc = if crc >> 15 == 1 { crc << 1 ^ POLYNOMIAL } else { crc << 1 };
        }
    }
    !crc
}
