//! The network layer's header, in its two forms (S-09 to S-11; SMP paper, section 2).
//!
//! ```text
//!   word  63 62  61      56  55  52  51  48  47   40  39                              0
//!        +------+----------+-------+-------+--------+----------------------------------+
//!        |class |operation | target| source|  tag   | address (optimised), 0 (standard) |
//!        +------+----------+-------+-------+--------+----------------------------------+
//!   second word, standard form only: 0 in 63:40, address in 39:0
//! ```
//!
//! The standard form is 4 DW long and goes first in the payload of the TLP. The optimised form is 2
//! DW long and *is* the address field of the TLP. This works because both roles accept every
//! address (S-12). The paper gives the two sizes; the fields are ours. Words are sent most
//! significant byte first, as PCIe sends its headers.

use core::fmt;

use crate::bits::{Field, tiles};
use crate::error::{codes, first};
use crate::{ADDRESS_BITS, WireError};

/// Size of the standard form: 4 DW.
pub const STANDARD_BYTES: usize = 16;
/// Size of the optimised form: 2 DW.
pub const OPTIMISED_BYTES: usize = 8;

const CLASS: Field = Field::new("class of the network packet", 63, 62);
const OPERATION: Field = Field::new("operation", 61, 56);
const TARGET: Field = Field::new("target node", 55, 52);
const SOURCE: Field = Field::new("source node", 51, 48);
const TAG: Field = Field::new("tag", 47, 40);
const ADDRESS: Field = Field::new("address", 39, 0);
const R_39_0: Field = Field::new("reserved bits 39:0 of the first word", 39, 0);
const R_63_40: Field = Field::new("reserved bits 63:40 of the second word", 63, 40);

const _: () = {
    assert!(tiles(&[CLASS, OPERATION, TARGET, SOURCE, TAG, ADDRESS], u64::BITS));
    assert!(tiles(&[R_63_40, ADDRESS], u64::BITS));
    assert!(ADDRESS.limit() + 1 == 1 << ADDRESS_BITS);
    assert!(OPTIMISED_BYTES == size_of::<u64>() && STANDARD_BYTES == 2 * OPTIMISED_BYTES);
    assert!(OPTIMISED_BYTES == 2 * super::DW_BYTES && STANDARD_BYTES == 4 * super::DW_BYTES);
};

codes! {
    /// The unit that a packet belongs to.
    Class, "class of the network packet";

    /// The coherence unit.
    Coherence = 0,
    /// The unit for transfers of large blocks.
    Block = 1,
    /// Packets of another user of the link, such as a network interface.
    Guest = 2,
}

/// A network header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NetworkHeader {
    /// The unit that it belongs to.
    pub class: Class,
    /// Operation code, defined by the unit, 0..=63.
    pub operation: u8,
    /// Node that it goes to, 0..=15.
    pub target: u8,
    /// Node that it comes from, 0..=15.
    pub source: u8,
    /// Distinguishes packets of one unit.
    pub tag: u8,
    /// Byte address at the target, below 2^40.
    pub address: u64,
}

impl NetworkHeader {
    /// Reads the optimised form.
    ///
    /// # Errors
    /// [`WireError::UnknownCode`] for the one class that is not assigned; every other word is a
    /// header.
    pub fn parse_optimised(word: u64) -> Result<NetworkHeader, WireError> {
        Ok(NetworkHeader { address: ADDRESS.of(word), ..fields_of(word)? })
    }

    /// The optimised form, for the address field of a TLP.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] for a field that does not fit.
    pub fn emit_optimised(&self) -> Result<u64, WireError> {
        Ok(self.fields()? | ADDRESS.place(self.address)?)
    }

    /// Reads the standard form from the beginning of a payload.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Reserved`], [`WireError::UnknownCode`].
    pub fn parse_standard(payload: &[u8]) -> Result<NetworkHeader, WireError> {
        let (words, _) = first::<STANDARD_BYTES>("network header", payload)?.as_chunks();
        let (first, second) = (u64::from_be_bytes(words[0]), u64::from_be_bytes(words[1]));
        R_39_0.must_be_zero(first)?;
        R_63_40.must_be_zero(second)?;
        Ok(NetworkHeader { address: ADDRESS.of(second), ..fields_of(first)? })
    }

    /// The standard form, for the beginning of a payload.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] for a field that does not fit.
    pub fn emit_standard(&self) -> Result<[u8; STANDARD_BYTES], WireError> {
        let mut bytes = [0; STANDARD_BYTES];
        bytes[..8].copy_from_slice(&self.fields()?.to_be_bytes());
        bytes[8..].copy_from_slice(&ADDRESS.place(self.address)?.to_be_bytes());
        Ok(bytes)
    }

    fn fields(&self) -> Result<u64, WireError> {
        Ok(CLASS.place(self.class.code().into())?
            | OPERATION.place(self.operation.into())?
            | TARGET.place(self.target.into())?
            | SOURCE.place(self.source.into())?
            | TAG.place(self.tag.into())?)
    }
}

fn fields_of(word: u64) -> Result<NetworkHeader, WireError> {
    Ok(NetworkHeader {
        class: Class::from_code(CLASS.of(word) as u8)?,
        operation: OPERATION.of(word) as u8,
        target: TARGET.of(word) as u8,
        source: SOURCE.of(word) as u8,
        tag: TAG.of(word) as u8,
        address: 0,
    })
}

impl fmt::Display for NetworkHeader {
    /// `Coherence 3, node 0 to 2, tag 7, 0x4000`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NetworkHeader { class, operation, target, source, tag, address } = self;
        write!(f, "{class:?} {operation}, node {source} to {target}, tag {tag}, {address:#x}")
    }
}
