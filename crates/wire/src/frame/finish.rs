//! The bodies of Refuse and Close: why a link does not begin, or ends.
//!
//! ```text
//!   Refuse  0        1        2        3        4                 8                           16
//!           +--------+--------+--------+--------+-----------------+-----------------------------+
//!           | reason | lowest, highest | 0      | features        | token of the Open it answers |
//!           +--------+--------+--------+--------+-----------------+-----------------------------+
//!   Close   0        1
//!           +--------+
//!           | reason |
//!           +--------+
//! ```
//! In Refuse, the versions are those that the refusing side speaks, and the features those that it
//! offers. The layout belongs to all versions. A Refuse counts only if it carries the token of the
//! Open, which only the asked node saw.

use super::array;
use super::open::exactly;
use crate::WireError;
use crate::error::codes;

/// Bytes of the body of Refuse.
pub const REFUSE_BYTES: usize = 16;
/// Bytes of the body of Close.
pub const CLOSE_BYTES: usize = 1;

codes! {
    /// Why a link was declined.
    RefuseReason, "refusal";

    /// The sides have no version in common.
    Version = 1,
    /// One side demands a feature that the other does not offer.
    Feature = 2,
    /// This node or function is not here.
    NotHere = 3,
    /// All links are taken.
    Full = 4,
    /// The node number belongs to an address other than the Open's source.
    Elsewhere = 5,
}

/// The body of Refuse.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RefuseBody {
    /// The reason.
    pub reason: RefuseReason,
    /// Lowest version that the refusing side speaks.
    pub version_low: u8,
    /// Highest version that the refusing side speaks.
    pub version_high: u8,
    /// Features that the refusing side offers.
    pub features: u32,
    /// Token of the Open frame.
    pub token: u64,
}

impl RefuseBody {
    /// Reads a body out of exactly its own bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Excess`], [`WireError::Reserved`],
    /// [`WireError::UnknownCode`].
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        exactly("refuse frame", bytes, REFUSE_BYTES)?;
        let reason = RefuseReason::from_code(bytes[0])?;
        if bytes[3] != 0 {
            let (field, value) = ("blank of a refuse frame", bytes[3] as u64);
            return Err(WireError::Reserved { field, value });
        }
        Ok(RefuseBody {
            reason,
            version_low: bytes[1],
            version_high: bytes[2],
            features: u32::from_le_bytes(array(bytes, 4)),
            token: u64::from_le_bytes(array(bytes, 8)),
        })
    }

    /// The bytes.
    pub fn emit(&self) -> [u8; REFUSE_BYTES] {
        let mut bytes = [0; REFUSE_BYTES];
        bytes[0] = self.reason as u8;
        bytes[1] = self.version_low;
        bytes[2] = self.version_high;
        bytes[4..8].copy_from_slice(&self.features.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.token.to_le_bytes());
        bytes
    }
}

codes! {
    /// Why a link ends.
    CloseReason, "close reason";

    /// Its user no longer needs it.
    Done = 1,
    /// The other side broke the protocol.
    Violation = 2,
}

impl CloseReason {
    /// Reads a body out of exactly its own byte.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Excess`], [`WireError::UnknownCode`].
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        exactly("close frame", bytes, CLOSE_BYTES)?;
        CloseReason::from_code(bytes[0])
    }
}
