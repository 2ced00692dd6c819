//! The link layer's frame around a TLP (S-16; SMP paper, section 2; PCIe base specification 2.0,
//! sections 3.5.2 and 4.2.2).
//!
//! ```text
//!   0     1          3                     n+3        n+7   n+8
//!   +-----+----------+---------------------+----------+-----+
//!   | STP | sequence | TLP, n bytes        | link CRC | END |
//!   +-----+----------+---------------------+----------+-----+
//!          ^ 0 in 15:12, 12 bits            ^ CRC-32C over sequence and TLP
//! ```
//!
//! STP and END are special symbols on the lanes, distinct from all data; here they are one byte
//! each. PCIe's own CRC-32 has another polynomial of the same strength.

use super::tlp::MAX_TLP_BYTES;
use crate::WireError;
use crate::error::room;
use crate::frame::check::crc32c;

/// Bytes beyond the TLP: 2 DW.
pub const OVERHEAD_BYTES: usize = 8;
/// Size of the longest frame.
pub const MAX_LLP_BYTES: usize = MAX_TLP_BYTES + OVERHEAD_BYTES;
/// Number of sequence numbers: 12 bits.
pub const SEQUENCES: u16 = 1 << 12;

/// The special symbol with which a frame begins.
pub const STP: u8 = 0xfb;
/// The special symbol with which a frame or a link-layer packet ends.
pub const END: u8 = 0xfd;

const FORMAT: &str = "LLP";

const _: () = assert!(OVERHEAD_BYTES == 2 * super::DW_BYTES && MAX_LLP_BYTES == 540);

/// A frame whose TLP is borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Llp<'a> {
    /// Sequence number, below [`SEQUENCES`].
    pub sequence: u16,
    /// The TLP, not parsed.
    pub tlp: &'a [u8],
}

impl<'a> Llp<'a> {
    /// Reads a frame out of exactly its own bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`], or [`WireError::Damaged`] if framing or CRC is not right.
    pub fn parse(bytes: &'a [u8]) -> Result<Llp<'a>, WireError> {
        let Some(length) = bytes.len().checked_sub(OVERHEAD_BYTES) else {
            let (length, needed) = (bytes.len(), OVERHEAD_BYTES);
            return Err(WireError::Truncated { format: FORMAT, length, needed });
        };
        let content = &bytes[1..length + 3];
        let sequence = u16::from_be_bytes([content[0], content[1]]);
        let sound = bytes[0] == STP
            && bytes[length + 7] == END
            && crc32c(content).to_le_bytes() == bytes[length + 3..length + 7]
            && sequence < SEQUENCES;
        if !sound {
            return Err(WireError::Damaged { format: FORMAT });
        }
        Ok(Llp { sequence, tlp: &content[2..] })
    }

    /// The sequence number and the TLP as received, unchecked: for a receiver that forwards bytes
    /// before the CRC has come (S-21). `None` if there are too few bytes or the number is out of
    /// range.
    pub fn glance(bytes: &'a [u8]) -> Option<(u16, &'a [u8])> {
        let length = bytes.len().checked_sub(OVERHEAD_BYTES)?;
        let sequence = u16::from_be_bytes([bytes[1], bytes[2]]);
        (sequence < SEQUENCES).then(|| (sequence, &bytes[3..length + 3]))
    }

    /// Bytes that [`Llp::emit`] writes.
    pub const fn buffer_len(&self) -> usize {
        OVERHEAD_BYTES + self.tlp.len()
    }

    /// Writes the frame into the first [`Llp::buffer_len`] bytes of `buffer`.
    ///
    /// # Errors
    /// [`WireError::BufferTooSmall`], [`WireError::OutOfRange`] for the sequence number.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        if self.sequence >= SEQUENCES {
            let (value, limit) = (self.sequence.into(), u64::from(SEQUENCES) - 1);
            return Err(WireError::OutOfRange { field: "sequence number", value, limit });
        }
        let (target, tlp) = (room(FORMAT, buffer, self.buffer_len())?, self.tlp.len());
        target[0] = STP;
        target[1..3].copy_from_slice(&self.sequence.to_be_bytes());
        target[3..tlp + 3].copy_from_slice(self.tlp);
        let check = crc32c(&target[1..tlp + 3]);
        target[tlp + 3..tlp + 7].copy_from_slice(&check.to_le_bytes());
        target[tlp + 7] = END;
        Ok(())
    }
}
