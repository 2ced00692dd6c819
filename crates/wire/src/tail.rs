//! The software tail: bytes of the upper software that hardware carries and never reads (C-10).
//!
//! It starts in the descriptor, travels behind the payload of the operation's last packet, and ends
//! in the receive-completion event. The paper fixes neither its size nor where it arrives. We give
//! it 16 bytes, so that an event can hold all of it. A 64-bit immediate value is a tail of 8 bytes,
//! least significant first.

use core::fmt;

use crate::WireError;

/// Most bytes in a tail.
pub const MAX_TAIL_BYTES: usize = 16;

/// 0 to [`MAX_TAIL_BYTES`] opaque bytes, held by value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Tail {
    // Bytes beyond the length are zero, so that derived equality means equality.
    bytes: [u8; MAX_TAIL_BYTES],
    length: u8,
}

impl Tail {
    /// No bytes.
    pub const EMPTY: Self = Self { bytes: [0; MAX_TAIL_BYTES], length: 0 };

    /// Copies the bytes; [`WireError::TailTooLong`] above [`MAX_TAIL_BYTES`].
    pub fn new(bytes: &[u8]) -> Result<Self, WireError> {
        let mut tail = Self::EMPTY;
        match tail.bytes.get_mut(..bytes.len()) {
            Some(room) => room.copy_from_slice(bytes),
            None => {
                return Err(WireError::TailTooLong { length: bytes.len(), limit: MAX_TAIL_BYTES });
            }
        }
        tail.length = bytes.len() as u8;
        Ok(tail)
    }

    /// The bytes, bit-exact.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    /// Number of bytes.
    pub const fn len(&self) -> usize {
        self.length as usize
    }

    /// True if there are no bytes.
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The 64-bit immediate value, if the tail is one (exactly 8 bytes).
    pub fn immediate(&self) -> Option<u64> {
        self.as_bytes().try_into().ok().map(u64::from_le_bytes)
    }

    /// The bytes followed by zeros, the form in descriptors and events.
    pub(crate) const fn padded(&self) -> &[u8; MAX_TAIL_BYTES] {
        &self.bytes
    }

    /// Reads the padded form back; refuses padding that is not zero.
    pub(crate) fn from_padded(
        bytes: &[u8; MAX_TAIL_BYTES],
        length: usize,
    ) -> Result<Self, WireError> {
        // Fast path: most tails are empty.
        if length == 0 && u128::from_le_bytes(*bytes) == 0 {
            return Ok(Self::EMPTY);
        }
        let Some(used) = bytes.get(..length) else {
            return Err(WireError::TailTooLong { length, limit: MAX_TAIL_BYTES });
        };
        let tail = Self::new(used)?;
        // Fast path: the padding is zero. Only otherwise find the wrong byte.
        if tail.bytes == *bytes {
            return Ok(tail);
        }
        match bytes[tail.len()..].iter().find(|byte| **byte != 0) {
            Some(&byte) => Err(WireError::Reserved { field: "tail padding", value: byte.into() }),
            None => Ok(tail),
        }
    }
}

impl From<u64> for Tail {
    fn from(immediate: u64) -> Self {
        let mut tail = Self { length: 8, ..Self::EMPTY };
        tail.bytes[..8].copy_from_slice(&immediate.to_le_bytes());
        tail
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tail({self})")
    }
}

impl fmt::Display for Tail {
    /// The bytes in hexadecimal, `-` if there are none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("-");
        }
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
