//! Bytes as DWs and byte enables (C-08).
//!
//! A PCIe request counts in DWs (4 bytes). Masks of 4 bits select the bytes of its first and last
//! DW. So a write of any length to any address touches exactly its own bytes:
//!
//! ```text
//!   address 0x1003, 6 bytes:      DW 0x1000      DW 0x1004      DW 0x1008
//!                                 . . . #        # # # #        # . . .
//!                                 1st BE 1000                   last BE 0001        Length 3
//! ```
//!
//! Bit i of a mask stands for byte i of the DW. The rules are PCIe's (base specification 2.0,
//! section 2.2.5); only requests for one run of bytes are used here:
//!
//! | bytes meant | Length | 1st DW BE | last DW BE |
//! |---|---|---|---|
//! | none | 1 | 0000 | 0000 |
//! | within one DW | 1 | the run | 0000 |
//! | over several DWs | 2..=1024 | 1111, 1110, 1100 or 1000 | 1111, 0111, 0011 or 0001 |
//!
//! This has two consequences. An empty span has no first byte, only a DW. And 4096 bytes fit only
//! from a DW boundary; otherwise they would touch 1025 DWs. PCIe's ban on crossing a 4 KiB boundary
//! is not applied. It binds the memory writes into which the receive engine splits a packet (C-22),
//! not the packet.

use crate::{ADDRESS_LIMIT, WireError};

/// Most bytes in one packet's payload (C-07).
pub const MAX_PAYLOAD_BYTES: usize = 4096;

/// Most DWs that the Length field counts.
pub const MAX_LENGTH_DW: u16 = 1024;

const _: () = assert!(MAX_PAYLOAD_BYTES == MAX_LENGTH_DW as usize * DW_BYTES as usize);

const DW_BYTES: u64 = 4;
const ALL_ENABLED: u8 = 0b1111;

/// A run of bytes that one packet can carry. Always valid: only checked values can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByteSpan {
    address: u64,
    length: u16,
}

/// The same run as the header expresses it. Fields are public and unchecked;
/// [`DwordSpan::to_bytes`] checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DwordSpan {
    /// Byte address of the first DW, a multiple of 4.
    pub address: u64,
    /// DWs touched, 1..=1024.
    pub length_dw: u16,
    /// Bytes meant in the first DW, bit 0 for the lowest address.
    pub first_enables: u8,
    /// Bytes meant in the last DW; zero if there is only one DW.
    pub last_enables: u8,
}

impl ByteSpan {
    /// `length` bytes from byte `address` on. An empty span keeps only the DW of its address.
    ///
    /// # Errors
    /// [`WireError::PayloadTooLong`] above 4096 bytes, [`WireError::AddressOutOfRange`] beyond 40
    /// bits, [`WireError::SpanTooLong`] if more than 1024 DWs are touched.
    pub const fn new(address: u64, length: usize) -> Result<Self, WireError> {
        let bytes = length as u64;
        if length > MAX_PAYLOAD_BYTES {
            return Err(WireError::PayloadTooLong {
                length: bytes,
                limit: MAX_PAYLOAD_BYTES as u64,
            });
        }
        // The first test keeps the sum of the second from wrapping. It also gives an empty span a
        // DW that exists.
        if address >= ADDRESS_LIMIT || address + bytes > ADDRESS_LIMIT {
            return Err(WireError::AddressOutOfRange { address, length: bytes });
        }
        let lead = address % DW_BYTES;
        if length == 0 {
            return Ok(Self { address: address - lead, length: 0 });
        }
        if lead + bytes > MAX_PAYLOAD_BYTES as u64 {
            return Err(WireError::SpanTooLong { address, length: bytes });
        }
        Ok(Self { address, length: length as u16 })
    }

    /// Byte address of the first byte; of the first DW if the span is empty.
    pub const fn address(self) -> u64 {
        self.address
    }

    /// Number of bytes, 0..=4096.
    pub const fn len(self) -> usize {
        self.length as usize
    }

    /// True if the span has no byte.
    pub const fn is_empty(self) -> bool {
        self.length == 0
    }

    /// Bytes in the first DW before the span starts, 0..=3.
    pub const fn lead(self) -> usize {
        (self.address % DW_BYTES) as usize
    }

    /// The form of the packet header.
    pub const fn to_dwords(self) -> DwordSpan {
        let lead = self.lead();
        let address = self.address - lead as u64;
        if self.is_empty() {
            return DwordSpan { address, length_dw: 1, first_enables: 0, last_enables: 0 };
        }
        let end = lead + self.len();
        let length_dw = end.div_ceil(DW_BYTES as usize) as u16;
        let first = (ALL_ENABLED << lead) & ALL_ENABLED;
        let last = ALL_ENABLED >> (length_dw as usize * DW_BYTES as usize - end);
        match length_dw {
            1 => DwordSpan { address, length_dw, first_enables: first & last, last_enables: 0 },
            _ => DwordSpan { address, length_dw, first_enables: first, last_enables: last },
        }
    }
}

impl DwordSpan {
    /// The run of bytes meant; the inverse of [`ByteSpan::to_dwords`].
    ///
    /// # Errors
    /// [`WireError::Misaligned`] if the address is not a DW's, [`WireError::AddressOutOfRange`]
    /// beyond 40 bits. [`WireError::OutOfRange`] for a length of 0 or above 1024.
    /// [`WireError::ByteEnables`] if the masks break the rules of the table.
    pub const fn to_bytes(self) -> Result<ByteSpan, WireError> {
        let Self { address, length_dw, first_enables: first, last_enables: last } = self;
        if !address.is_multiple_of(DW_BYTES) {
            return Err(WireError::Misaligned {
                field: "DW address",
                value: address,
                alignment: DW_BYTES,
            });
        }
        if address >= ADDRESS_LIMIT {
            return Err(WireError::AddressOutOfRange { address, length: 0 });
        }
        if length_dw == 0 || length_dw > MAX_LENGTH_DW {
            return Err(WireError::OutOfRange {
                field: "length in DW",
                value: length_dw as u64,
                limit: MAX_LENGTH_DW as u64,
            });
        }
        let (lead, end) = match run_of_bytes(length_dw, first, last) {
            Some(run) => run,
            None => return Err(WireError::ByteEnables { length_dw, first, last }),
        };
        ByteSpan::new(address + lead as u64, end - lead)
    }

    /// Bytes of the touched DWs, all of which travel: 4..=4096.
    pub const fn byte_len(self) -> usize {
        self.length_dw as usize * DW_BYTES as usize
    }
}

/// First byte meant and the byte after the last, counted from the first DW; `None` if the masks
/// break the rules.
const fn run_of_bytes(length_dw: u16, first: u8, last: u8) -> Option<(usize, usize)> {
    if first > ALL_ENABLED || last > ALL_ENABLED {
        return None;
    }
    if length_dw == 1 && first == 0 && last == 0 {
        return Some((0, 0));
    }
    if first == 0 {
        return None;
    }
    let lead = first.trailing_zeros() as usize;
    if length_dw == 1 {
        let end = lead + first.count_ones() as usize;
        let is_one_run = first == (ALL_ENABLED << lead) & (ALL_ENABLED >> (4 - end));
        return if is_one_run && last == 0 { Some((lead, end)) } else { None };
    }
    let trail = last.leading_zeros() as usize - 4;
    let reaches_inwards =
        first == (ALL_ENABLED << lead) & ALL_ENABLED && last != 0 && last == ALL_ENABLED >> trail;
    if reaches_inwards {
        Some((lead, length_dw as usize * DW_BYTES as usize - trail))
    } else {
        None
    }
}
