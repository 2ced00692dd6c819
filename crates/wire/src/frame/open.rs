//! The bodies of Open and Accept: who asks for a link with which function, and what each side
//! offers.
//!
//! ```text
//!         0        1        2        3        4        5        6        7
//!    +--------+--------+--------+--------+-----------------------------------+
//!  0 | lowest version and highest, chosen, 0 | features that are demanded    |
//!    +-----------------------------------+-----------------------------------+
//!  8 | features offered (Open), taken (Accept) | longest packet taken, bytes |
//!    +-----------------------------------+-----------------------------------+
//! 16 | node that sends                   | node that is meant                |
//!    +--------+--------+-----------------+-----------------+-----------------+
//! 24 | function that sends, that is meant, 0 0               | 0 (32 bits)     |
//!    +-----------------------------------------------------------------------+
//! 32 | incarnation of the sender: greater after each restart                 |
//!    +-----------------------------------------------------------------------+
//! 40 | opening: number of this link among those of the incarnation           |
//!    +-----------------------------------------------------------------------+
//! 48 | token: to be put into all frames to the sender                        |
//!    +-----------------------------------------------------------------------+
//! 56 | incarnation of the peer, as far as known (0 in the first Open)        |
//!    +-----------------+-----------------+-----------------------------------+
//! 64 | window, frames  | frame bytes     | 0                                 |
//!    +-----------------+-----------------+-----------------------------------+
//! ```
//! The header's `sequence` is the number of the sender's first Data frame, and its `credit` the
//! first credit. `window` is how many frames, from the expected one on, the sender of this body
//! keeps. `frame bytes` is the longest frame that it takes. The layout belongs to all versions, so
//! that each can read which versions the other speaks.

use super::{FunctionId, array};
use crate::WireError;

/// Bytes of the body.
pub const OPEN_BYTES: usize = 72;

/// The body's fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenBody {
    /// Lowest version spoken.
    pub version_low: u8,
    /// Highest version spoken.
    pub version_high: u8,
    /// Version that both will speak; 0 in Open.
    pub version: u8,
    /// Features that the sender demands.
    pub demanded: u32,
    /// Features that the sender can use; in Accept those that both will use.
    pub features: u32,
    /// Longest packet that the sender takes, payload bytes.
    pub packet_bytes: u32,
    /// The sending function.
    pub from: FunctionId,
    /// The addressed function.
    pub to: FunctionId,
    /// The sender's incarnation.
    pub incarnation: u64,
    /// Number of this link among those that the incarnation opened.
    pub opening: u64,
    /// Must be carried by frames to the sender.
    pub token: u64,
    /// The peer's incarnation; 0 if unknown.
    pub peer_incarnation: u64,
    /// Frames that the sender keeps ahead of the expected one, itself included.
    pub window: u16,
    /// Longest frame that the sender takes.
    pub frame_bytes: u16,
}

impl OpenBody {
    /// Reads a body out of exactly its own bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Excess`], [`WireError::Reserved`].
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        exactly("open frame", bytes, OPEN_BYTES)?;
        let reserved = bytes[3] as u64
            | u16::from_le_bytes(array(bytes, 26)) as u64
            | u32::from_le_bytes(array(bytes, 28)) as u64
            | u32::from_le_bytes(array(bytes, 68)) as u64;
        if reserved != 0 {
            return Err(WireError::Reserved { field: "blank of an open frame", value: reserved });
        }
        let half = |at| u16::from_le_bytes(array(bytes, at));
        let word = |at| u32::from_le_bytes(array(bytes, at));
        let long = |at| u64::from_le_bytes(array(bytes, at));
        Ok(OpenBody {
            version_low: bytes[0],
            version_high: bytes[1],
            version: bytes[2],
            demanded: word(4),
            features: word(8),
            packet_bytes: word(12),
            from: FunctionId { node: word(16), function: bytes[24] },
            to: FunctionId { node: word(20), function: bytes[25] },
            incarnation: long(32),
            opening: long(40),
            token: long(48),
            peer_incarnation: long(56),
            window: half(64),
            frame_bytes: half(66),
        })
    }

    /// The bytes.
    pub fn emit(&self) -> [u8; OPEN_BYTES] {
        let mut bytes = [0; OPEN_BYTES];
        bytes[0] = self.version_low;
        bytes[1] = self.version_high;
        bytes[2] = self.version;
        bytes[4..8].copy_from_slice(&self.demanded.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.features.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.packet_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.from.node.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.to.node.to_le_bytes());
        bytes[24] = self.from.function;
        bytes[25] = self.to.function;
        bytes[32..40].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.opening.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.token.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.peer_incarnation.to_le_bytes());
        bytes[64..66].copy_from_slice(&self.window.to_le_bytes());
        bytes[66..68].copy_from_slice(&self.frame_bytes.to_le_bytes());
        bytes
    }
}

pub(super) fn exactly(format: &'static str, bytes: &[u8], needed: usize) -> Result<(), WireError> {
    match bytes.len().checked_sub(needed) {
        None => Err(WireError::Truncated { format, length: bytes.len(), needed }),
        Some(0) => Ok(()),
        Some(excess) => Err(WireError::Excess { format, excess }),
    }
}
