//! The one table of refusals of this crate.

/// Why a value cannot be written, or why bytes are not what they claim to be.
///
/// Each message says what was refused, why, and what to do. Lengths are in bytes unless a field
/// says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The bytes end before the format does.
    #[error(
        "{format} cut short: it needs {needed} bytes and only {length} arrived; read it whole before parsing"
    )]
    Truncated {
        /// Name of the format.
        format: &'static str,
        /// Bytes that arrived.
        length: usize,
        /// Bytes that the format needs.
        needed: usize,
    },
    /// There are bytes behind the end of a format that must end exactly.
    #[error(
        "{format} is followed by {excess} bytes that it does not announce; pass exactly its own bytes"
    )]
    Excess {
        /// Name of the format.
        format: &'static str,
        /// Bytes too many.
        excess: usize,
    },
    /// The buffer to write into is too small.
    #[error(
        "{format} takes {needed} bytes and the buffer has {length}; size the buffer by `buffer_len()`"
    )]
    BufferTooSmall {
        /// Name of the format.
        format: &'static str,
        /// Bytes in the buffer.
        length: usize,
        /// Bytes to be written.
        needed: usize,
    },
    /// A value does not fit its field.
    #[error("{field} is {value} but the field ends at {limit}; choose a smaller value")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// The value refused.
        value: u64,
        /// Largest value allowed.
        limit: u64,
    },
    /// Bits that must be zero are not.
    #[error(
        "{field} must be zero and holds {value:#x}; the bytes are damaged or of a newer version"
    )]
    Reserved {
        /// Name of the field.
        field: &'static str,
        /// What it held.
        value: u64,
    },
    /// A code stands for nothing.
    #[error(
        "{field} {code:#x} is not assigned; the bytes are damaged or of a newer version: count and drop them"
    )]
    UnknownCode {
        /// Name of the field.
        field: &'static str,
        /// The code found.
        code: u64,
    },
    /// The first header byte is not that of a PCIe memory write with a 4-DW header.
    #[error(
        "header starts with {byte:#04x} instead of 0x60, so it is not a 4-DW memory write; send it down the PCIe path"
    )]
    NotMemoryWrite {
        /// The byte found.
        byte: u8,
    },
    /// The first byte of a TLP of the direct link is not that of a posted write (S-13).
    #[error(
        "TLP starts with {byte:#04x} instead of 0x60; this link carries posted writes only, so send nothing else down it"
    )]
    NotPosted {
        /// The byte found.
        byte: u8,
    },
    /// Framing or check sum of a packet on a link is wrong.
    #[error("{format} is damaged: framing or check sum is wrong; drop it and have it sent again")]
    Damaged {
        /// Name of the format.
        format: &'static str,
    },
    /// A payload is longer than its packet type may carry (C-07, C-19).
    #[error(
        "payload of {length} bytes exceeds the {limit} that this packet may carry; cut it into several"
    )]
    PayloadTooLong {
        /// Bytes of payload.
        length: u64,
        /// Most bytes allowed.
        limit: u64,
    },
    /// The payload bytes handed over are not as many as the header says.
    #[error(
        "header announces {announced} bytes of payload and {length} were given; make them agree"
    )]
    PayloadMismatch {
        /// Bytes by the header.
        announced: usize,
        /// Bytes given.
        length: usize,
    },
    /// Start and length touch more DWs than the Length field can count (C-08).
    #[error(
        "{length} bytes from address {address:#x} touch more than 1024 DWs; start at a DW or cut the last bytes off"
    )]
    SpanTooLong {
        /// Byte address of the first byte.
        address: u64,
        /// Bytes.
        length: u64,
    },
    /// An address or its end lies outside the 40-bit global address space (C-08).
    #[error(
        "{length} bytes from address {address:#x} leave the 40-bit address space; use an address below 1 TiB"
    )]
    AddressOutOfRange {
        /// Byte address of the first byte.
        address: u64,
        /// Bytes.
        length: u64,
    },
    /// An address is not aligned as its format demands.
    #[error("{field} {value:#x} is not a multiple of {alignment}; align it")]
    Misaligned {
        /// Name of the field.
        field: &'static str,
        /// The value refused.
        value: u64,
        /// The alignment in bytes.
        alignment: u64,
    },
    /// Byte enables do not describe one run of bytes (PCIe base specification 2.0, section 2.2.5).
    #[error(
        "byte enables first {first:#06b} last {last:#06b} over {length_dw} DW are not one run of bytes; see `span`"
    )]
    ByteEnables {
        /// DWs touched.
        length_dw: u16,
        /// 1st DW BE.
        first: u8,
        /// Last DW BE.
        last: u8,
    },
    /// NAP and GET packets name no target address.
    #[error(
        "a packet without a target address carries {address:#x} in its address field; leave it zero"
    )]
    UnexpectedAddress {
        /// The address found.
        address: u64,
    },
    /// A descriptor carries a part that its operation has no use for.
    #[error("{part} does not belong to this operation; leave it out")]
    UnexpectedPart {
        /// Name of the part.
        part: &'static str,
    },
    /// The software tail is too long (C-10).
    #[error("software tail of {length} bytes exceeds {limit}; move the rest into the payload")]
    TailTooLong {
        /// Bytes of tail.
        length: usize,
        /// Most bytes allowed.
        limit: usize,
    },
    /// The two lists of a descriptor are too long together.
    #[error(
        "{count} source and destination entries exceed {limit}; merge neighbours or use several descriptors"
    )]
    TooManyEntries {
        /// Entries of both lists.
        count: usize,
        /// Most entries allowed.
        limit: usize,
    },
    /// Source and destination lengths differ, so nothing may move (C-29).
    #[error(
        "sources hold {sources} bytes and destinations {destinations}; both sums must be equal, nothing was moved"
    )]
    UnequalSums {
        /// Sum of the source lengths.
        sources: u64,
        /// Sum of the destination lengths.
        destinations: u64,
    },
    /// The lengths of one list add up to more than may move at once.
    #[error("lengths of one list add up to more than {limit} bytes; use several descriptors")]
    TransferTooLong {
        /// Most bytes allowed.
        limit: u64,
    },
}

/// The first bytes of a format; refuses fewer.
#[inline]
pub(crate) fn first<'a, const N: usize>(
    format: &'static str,
    bytes: &'a [u8],
) -> Result<&'a [u8; N], WireError> {
    let truncated = || WireError::Truncated { format, length: bytes.len(), needed: N };
    bytes.first_chunk().ok_or_else(truncated)
}

/// The first `needed` bytes of a buffer to write into; refuses a shorter one.
#[inline]
pub(crate) fn room<'a>(
    format: &'static str,
    buffer: &'a mut [u8],
    needed: usize,
) -> Result<&'a mut [u8], WireError> {
    let too_small = WireError::BufferTooSmall { format, length: buffer.len(), needed };
    buffer.get_mut(..needed).ok_or(too_small)
}

/// Declares an enum whose variants have codes, and the conversions from and to a code.
macro_rules! codes {
    (
        $(#[$meta:meta])*
        $name:ident, $field:literal;
        $($(#[$doc:meta])* $variant:ident = $code:literal,)+
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $variant = $code,)+
        }

        impl $name {
            /// All of them, in the order of their codes.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its code.
            #[inline]
            pub const fn code(self) -> u8 {
                self as u8
            }

            /// The one with this code; [`WireError::UnknownCode`](crate::WireError::UnknownCode) if
            /// there is none.
            #[inline]
            pub const fn from_code(code: u8) -> Result<Self, crate::WireError> {
                match code {
                    $($code => Ok(Self::$variant),)+
                    _ => Err(crate::WireError::UnknownCode { field: $field, code: code as u64 }),
                }
            }
        }
    };
}
pub(crate) use codes;
