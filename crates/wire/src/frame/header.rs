//! The header in front of every frame.
//!
//! ```text
//!         0        1        2        3        4        5        6        7
//!    +--------+--------+--------+--------+-----------------+-----------------+
//!  0 | 0xB1   |fl,kind |function| from   |  length         | held back       |
//!    +--------+--------+--------+--------+-----------------+-----------------+
//!  8 | token: 64 bits that the receiver chose for this link                  |
//!    +-----------------------------------+-----------------------------------+
//! 16 | sequence number                   | acknowledged: next one expected   |
//!    +-----------------------------------+-----------------------------------+
//! 24 | credit of requests                | credit of responses               |
//!    +-----------------------------------+-----------------------------------+
//! ```
//! - Byte 0, and all of kinds `Open` and `Refuse`, are the same for all versions: two versions need
//!   them to refuse each other. Everything else belongs to the agreed version.
//! - `kind` is the lower half of byte 1, flags are the upper half.
//! - `function` is the destination's, at a fixed offset for filters that separate functions on a
//!   shared interface. `from` is the sender's, so that even a frame that belongs to no link can be
//!   answered.
//! - `length` counts from byte 0 to the end of the check value.
//! - `held back` is how long the acknowledgement waited at its sender, in units of 64 ns,
//!   saturating.
//! - `token` identifies the link and proves that the sender took part in the handshake: 48 of its
//!   bits cannot be guessed. In an Open it is the cookie of the peer's Challenge, or 0.
//! - `sequence` is the number of this frame if its kind is `Data`. In other kinds it is that of the
//!   next `Data` frame, so that a lost last frame shows.
//! - `credit` is the sum of packet costs (see [`super::record`]) up to which the peer may send. It
//!   is absolute, modulo 2^32, so that a lost update does no harm (STOP and GO of HPCL, H-15,
//!   H-16).

use super::{FRAME_OVERHEAD_BYTES, array};
use crate::WireError;
use crate::error::{codes, room};

/// Bytes of the header.
pub const HEADER_BYTES: usize = 32;

/// First byte of every frame.
pub const MAGIC: u8 = 0xb1;

/// Unit of [`FrameHeader::held_back`] in ns.
pub const HELD_BACK_UNIT_NS: u64 = 64;

codes! {
    /// The kind of a frame.
    FrameKind, "frame kind";

    /// Asks for a link.
    Open = 1,
    /// Agrees to a link.
    Accept = 2,
    /// Refuses a link, with a reason.
    Refuse = 3,
    /// Sections under a sequence number.
    Data = 4,
    /// Acknowledges and grants credit without being sequenced itself (ACK, LOSE, GO of HPCL).
    Acknowledge = 5,
    /// Ends a link.
    Close = 6,
    /// Answers a frame whose token is unknown (or no longer known).
    Unknown = 7,
    /// Asks all nodes for the place of a node (Ethernet broadcast).
    Seek = 8,
    /// Answers [`FrameKind::Seek`].
    Here = 9,
    /// Answers an Open whose cookie is missing or old: the sender must ask again with this cookie.
    Challenge = 10,
}

/// The sender waits for an acknowledgement. For the last Data frame it should come soon, for other
/// frames at once.
pub const FLAG_ANSWER: u8 = 1;
/// A later frame came before the expected one (LOSE of HPCL, H-14).
pub const FLAG_LOSE: u8 = 2;
/// The sender's user has closed the link, and some of what is acknowledged was discarded, not
/// delivered.
pub const FLAG_DISCARDS: u8 = 4;

const FLAGS: u8 = FLAG_ANSWER | FLAG_LOSE | FLAG_DISCARDS;

/// The header's fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameHeader {
    /// The kind of the frame.
    pub kind: FrameKind,
    /// Function of the destination node.
    pub function: u8,
    /// Function of the node that sends.
    pub from: u8,
    /// [`FLAG_ANSWER`], [`FLAG_LOSE`], [`FLAG_DISCARDS`].
    pub flags: u8,
    /// Bytes of the frame, header and check value included.
    pub length: u16,
    /// How long the acknowledgement was held back, in [`HELD_BACK_UNIT_NS`].
    pub held_back: u16,
    /// The receiver's token; in an Open the cookie ([`super::challenge`]). 0 if none is known.
    pub token: u64,
    /// Sequence number of this frame, or of the next one.
    pub sequence: u32,
    /// The sequence number that the sender expects next.
    pub acknowledged: u32,
    /// Credit for requests and for responses.
    pub credit: [u32; 2],
}

impl FrameHeader {
    /// A header with only kind, destination, source and token.
    pub const fn new(kind: FrameKind, function: u8, from: u8, token: u64) -> Self {
        FrameHeader {
            kind,
            function,
            from,
            flags: 0,
            length: 0,
            held_back: 0,
            token,
            sequence: 0,
            acknowledged: 0,
            credit: [0; 2],
        }
    }

    /// Reads the header of `bytes`, which may have padding behind the frame.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if header, check value or any byte of `length` is missing.
    /// [`WireError::UnknownCode`] for a foreign first byte or an unknown kind,
    /// [`WireError::Reserved`] for unknown flags.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        if bytes.len() < FRAME_OVERHEAD_BYTES {
            return Err(truncated(bytes, FRAME_OVERHEAD_BYTES));
        }
        if bytes[0] != MAGIC {
            return Err(WireError::UnknownCode { field: "first byte", code: bytes[0] as u64 });
        }
        let kind = FrameKind::from_code(bytes[1] & 0xf)?;
        let flags = bytes[1] >> 4;
        if flags & !FLAGS != 0 {
            return Err(WireError::Reserved { field: "frame flags", value: flags as u64 });
        }
        let length = u16::from_le_bytes(array(bytes, 4));
        if bytes.len() < length as usize || (length as usize) < FRAME_OVERHEAD_BYTES {
            return Err(truncated(bytes, FRAME_OVERHEAD_BYTES.max(length as usize)));
        }
        Ok(FrameHeader {
            kind,
            function: bytes[2],
            from: bytes[3],
            flags,
            length,
            held_back: u16::from_le_bytes(array(bytes, 6)),
            token: u64::from_le_bytes(array(bytes, 8)),
            sequence: u32::from_le_bytes(array(bytes, 16)),
            acknowledged: u32::from_le_bytes(array(bytes, 20)),
            credit: [u32::from_le_bytes(array(bytes, 24)), u32::from_le_bytes(array(bytes, 28))],
        })
    }

    /// Writes the header into the first [`HEADER_BYTES`] of `buffer`.
    ///
    /// # Errors
    /// [`WireError::BufferTooSmall`].
    #[inline]
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        let target = room("frame header", buffer, HEADER_BYTES)?;
        target[0] = MAGIC;
        target[1] = self.kind as u8 | self.flags << 4;
        target[2] = self.function;
        target[3] = self.from;
        target[4..6].copy_from_slice(&self.length.to_le_bytes());
        target[6..8].copy_from_slice(&self.held_back.to_le_bytes());
        target[8..16].copy_from_slice(&self.token.to_le_bytes());
        target[16..20].copy_from_slice(&self.sequence.to_le_bytes());
        target[20..24].copy_from_slice(&self.acknowledged.to_le_bytes());
        target[24..28].copy_from_slice(&self.credit[0].to_le_bytes());
        target[28..32].copy_from_slice(&self.credit[1].to_le_bytes());
        Ok(())
    }
}

fn truncated(bytes: &[u8], needed: usize) -> WireError {
    WireError::Truncated { format: "frame", length: bytes.len(), needed }
}
