//! The doorbell: one 64-bit word that starts an operation (C-31; cHPP section 3.4).
//!
//! ```text
//!   63            48   47       40   39                                0
//!  +----------------+ +-----------+ +-----------------------------------+
//!  | length, bytes  | |     0     | | descriptor address, bits 3:0 are 0|
//!  +----------------+ +-----------+ +-----------------------------------+
//! ```
//!
//! One store of one word cannot be interleaved with another's, so no lock is needed. Descriptors
//! start at multiples of 16. They are 16..=4096 bytes long in steps of 16, one 128-bit beat. A
//! doorbell is therefore never zero, and a FIFO entry of zeros is empty. The address of the store,
//! not the word, tells which function rings (C-32). So a function cannot ring for another (C-39).
//! The paper fixes the two parts, not their split.

use core::fmt;

use crate::bits::{Field, tiles};
use crate::descriptor::{BEAT_BYTES, MAX_DESCRIPTOR_BYTES};
use crate::{ADDRESS_BITS, ADDRESS_LIMIT, WireError};

/// Size of a doorbell.
pub const DOORBELL_BYTES: usize = 8;

const LENGTH: Field = Field::new("descriptor length", 63, 48);
const R_47_40: Field = Field::new("reserved bits 47:40 of the doorbell", 47, 40);
const ADDRESS: Field = Field::new("descriptor address", 39, 0);

const _: () = {
    assert!(DOORBELL_BYTES == size_of::<u64>());
    assert!(tiles(&[LENGTH, R_47_40, ADDRESS], u64::BITS));
    assert!(ADDRESS.limit() + 1 == 1 << ADDRESS_BITS);
    assert!(MAX_DESCRIPTOR_BYTES as u64 <= LENGTH.limit());
};

/// Where a descriptor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DoorbellRepr {
    /// Global address of the descriptor, a multiple of 16.
    pub address: u64,
    /// Bytes of the descriptor, a multiple of 16 in 16..=4096.
    pub length: u16,
}

impl DoorbellRepr {
    /// Reads a doorbell word.
    ///
    /// # Errors
    /// [`WireError::Reserved`] and all of [`DoorbellRepr::emit`].
    pub fn parse(word: u64) -> Result<Self, WireError> {
        R_47_40.must_be_zero(word)?;
        let repr = Self { address: ADDRESS.of(word), length: LENGTH.of(word) as u16 };
        repr.check()?;
        Ok(repr)
    }

    /// The word to store into the doorbell window.
    ///
    /// # Errors
    /// [`WireError::Misaligned`] for address or length. [`WireError::Truncated`] for a length that
    /// no descriptor has, [`WireError::OutOfRange`] above 4096 bytes.
    /// [`WireError::AddressOutOfRange`] if the descriptor does not end within 40 bits.
    pub fn emit(&self) -> Result<u64, WireError> {
        self.check()?;
        Ok(LENGTH.place(self.length.into())? | ADDRESS.place(self.address)?)
    }

    /// Bytes of a doorbell.
    pub const fn buffer_len(&self) -> usize {
        DOORBELL_BYTES
    }

    fn check(&self) -> Result<(), WireError> {
        let (address, length) = (self.address, u64::from(self.length));
        let alignment = BEAT_BYTES as u64;
        for (field, value) in [("descriptor address", address), ("descriptor length", length)] {
            if !value.is_multiple_of(alignment) {
                return Err(WireError::Misaligned { field, value, alignment });
            }
        }
        if length == 0 {
            let (format, needed) = ("descriptor", BEAT_BYTES);
            return Err(WireError::Truncated { format, length: 0, needed });
        }
        let limit = MAX_DESCRIPTOR_BYTES as u64;
        if length > limit {
            let field = "descriptor length";
            return Err(WireError::OutOfRange { field, value: length, limit });
        }
        if address >= ADDRESS_LIMIT || address + length > ADDRESS_LIMIT {
            return Err(WireError::AddressOutOfRange { address, length });
        }
        Ok(())
    }
}

impl fmt::Display for DoorbellRepr {
    /// `doorbell 0x4000, 48 B`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "doorbell {:#x}, {} B", self.address, self.length)
    }
}
