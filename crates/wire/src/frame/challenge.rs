//! The body of Challenge: demands a proof that the sender of an Open receives at its address.
//!
//! ```text
//!   0                            8
//!   +----------------------------+
//!   | cookie                     |
//!   +----------------------------+
//! ```
//! The header's `token` is the token of the answered Open, so that only the asked node can have
//! written it. The next Open carries the cookie as its header's `token`. Only a node that reads
//! what is sent to the address of an Open learns its cookie (RFC 6347, 4.2.1; RFC 9000, 8.1).

use super::array;
use super::open::exactly;
use crate::WireError;

/// Bytes of the body.
pub const CHALLENGE_BYTES: usize = 8;

/// The body's field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChallengeBody {
    /// Must be carried by the next Open; never 0.
    pub cookie: u64,
}

impl ChallengeBody {
    /// Reads a body out of exactly its own bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Excess`].
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        exactly("challenge frame", bytes, CHALLENGE_BYTES)?;
        Ok(ChallengeBody { cookie: u64::from_le_bytes(array(bytes, 0)) })
    }

    /// The bytes.
    pub fn emit(&self) -> [u8; CHALLENGE_BYTES] {
        self.cookie.to_le_bytes()
    }
}
