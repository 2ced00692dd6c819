//! The body of Seek and Here: the search for the place of a node.
//!
//! ```text
//!   0                 4                 8                 12                16                24
//!   +-----------------+-----------------+-----------------+-----------------+-----------------+
//!   | node that sends | node that is meant | frame bytes  | 0               | nonce           |
//!   +-----------------+-----------------+-----------------+-----------------+-----------------+
//! ```
//! On Ethernet a Seek is broadcast. The sought node answers with Here to the station that asked,
//! and repeats the nonce. A Here with another nonce answers no question and is ignored. Nothing is
//! learnt from a Seek, because its sender has proved nothing. `frame bytes` is the longest frame
//! that the sender takes.

use super::array;
use super::open::exactly;
use crate::WireError;

/// Bytes of the body.
pub const SEEK_BYTES: usize = 24;

/// The body's fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SeekBody {
    /// The sending node.
    pub from: u32,
    /// The sought node; in Here the node that asked.
    pub to: u32,
    /// Longest frame that the sender takes.
    pub frame_bytes: u32,
    /// Drawn by the node that asks, repeated by the node that answers.
    pub nonce: u64,
}

impl SeekBody {
    /// Reads a body out of exactly its own bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Excess`], [`WireError::Reserved`].
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        exactly("seek frame", bytes, SEEK_BYTES)?;
        let word = |at| u32::from_le_bytes(array(bytes, at));
        if word(12) != 0 {
            let (field, value) = ("blank of a seek frame", word(12) as u64);
            return Err(WireError::Reserved { field, value });
        }
        let nonce = u64::from_le_bytes(array(bytes, 16));
        Ok(SeekBody { from: word(0), to: word(4), frame_bytes: word(8), nonce })
    }

    /// The bytes.
    pub fn emit(&self) -> [u8; SEEK_BYTES] {
        let mut bytes = [0; SEEK_BYTES];
        bytes[0..4].copy_from_slice(&self.from.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.to.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.frame_bytes.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.nonce.to_le_bytes());
        bytes
    }
}
