//! Physical descriptors (M-11): the provider's form of a VI descriptor, after translation.
//!
//! A NIC of 1998 used bus addresses here. A Bellwire device reaches memory by region and offset and
//! checks both, so the address here is (region, offset). A forged one reaches only registered
//! memory. One descriptor names one piece; a message of several pieces has one descriptor for each.

/// A physical descriptor, 16 bytes.
///
/// ```text
///  63         48 47                                   0
/// +-------------+--------------------------------------+
/// |   region    |                offset                |
/// +-------------+------+-------------------------------+
/// |          0         |             length            |
/// +--------------------+-------------------------------+
/// ```
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Physical {
    address: u64,
    length: u32,
    reserved: u32,
}

const _: () = assert!(size_of::<Physical>() == 16);

impl Physical {
    pub const EMPTY: Physical = Physical { address: 0, length: 0, reserved: 0 };

    pub fn new(region: u16, offset: u64, length: u32) -> Self {
        Physical { address: u64::from(region) << 48 | offset, length, reserved: 0 }
    }

    /// Place of the region in the table of registered memory.
    pub fn region(self) -> u16 {
        (self.address >> 48) as u16
    }

    /// Bytes from the start of the region.
    pub fn offset(self) -> usize {
        (self.address & ((1 << 48) - 1)) as usize
    }

    /// Bytes.
    pub fn length(self) -> usize {
        self.length as usize
    }
}
