//! The physical descriptor: 16 B that the user agent makes of a VI descriptor of 64 B (M-11; paper
//! 3.3).
//!
//! ```text
//!   0        5      8        10       12                16
//!   | address | length | VI | tag    | reserved, zero  |      little endian
//! ```
//!
//! The paper prints the size only; the fields are our choice. The tag names the VI descriptor that
//! the status word belongs to.

/// Bytes of a VI descriptor (3.3).
pub const VI_DESCRIPTOR_BYTES: u32 = 64;
/// Bytes of a physical descriptor (3.3).
pub const BYTES: usize = 16;

/// The NIC's view of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhysicalDescriptor {
    /// Address of the first byte, 40 bits. Physical if the host translates, otherwise an offset in
    /// the region.
    pub address: u64,
    /// Length in bytes, 24 bits.
    pub length: u32,
    /// Number of the VI on this host.
    pub vi: u16,
    /// The host's number for the operation.
    pub tag: u16,
}

impl PhysicalDescriptor {
    /// The bytes in a ring.
    pub fn to_bytes(self) -> [u8; BYTES] {
        let mut bytes = [0; BYTES];
        bytes[..5].copy_from_slice(&self.address.to_le_bytes()[..5]);
        bytes[5..8].copy_from_slice(&self.length.to_le_bytes()[..3]);
        bytes[8..10].copy_from_slice(&self.vi.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.tag.to_le_bytes());
        bytes
    }

    /// Reads one; all values of the 16 bytes are valid.
    pub fn from_bytes(bytes: &[u8; BYTES]) -> PhysicalDescriptor {
        let number = |range: std::ops::Range<usize>| {
            bytes[range].iter().rev().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
        };
        PhysicalDescriptor {
            address: number(0..5),
            length: number(5..8) as u32,
            vi: number(8..10) as u16,
            tag: number(10..12) as u16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A physical descriptor survives its 16 B unchanged, at the limits of all fields.
    #[test]
    fn sixteen_bytes_hold_it() {
        for (address, length) in [(0, 0), ((1 << 40) - 1, (1 << 24) - 1), (0x12_3456_7890, 122_880)]
        {
            let descriptor = PhysicalDescriptor { address, length, vi: 0xfedc, tag: 0x8001 };
            let bytes: [u8; 16] = descriptor.to_bytes();
            assert_eq!(PhysicalDescriptor::from_bytes(&bytes), descriptor);
        }
    }
}
