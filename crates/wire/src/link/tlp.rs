//! The transport layer's packet (S-10 to S-13; SMP paper, section 2).
//!
//! ```text
//!   DW 0   0x60 | 0, TC in 6:4, 0 | 0x80 | length, DW      PCIe memory write, 4-DW header, check
//!   DW 1   requester, 16 bits | tag | 0xff                 all bytes enabled
//!   DW 2   address 63:32                                   any value (S-12)
//!   DW 3   address 31:0
//!          payload, 0..=128 DW
//!   last   check over all before it: CRC-32C, least significant byte first
//! ```
//!
//! The paper counts 5 DW of TLP header and does not list them. We take the 4 DW of PCIe's header
//! with a 64-bit address, and PCIe's optional end-to-end check as the fifth. Posted writes are the
//! only type (S-13). A length of 0 means no payload. In PCIe it means 1024 DW, far above this
//! link's limit. The traffic class is the virtual channel (S-14).

use core::fmt;

use super::{DW_BYTES, MAX_DATA_DW};
use crate::WireError;
use crate::error::room;
use crate::frame::check::crc32c;

/// Bytes of the header, before the payload.
pub const HEADER_BYTES: usize = 16;
/// Bytes of the check, behind the payload.
pub const CHECK_BYTES: usize = 4;
/// Bytes of a TLP beyond its payload: the paper's 5 DW.
pub const OVERHEAD_BYTES: usize = HEADER_BYTES + CHECK_BYTES;
/// Most DWs of payload: the data, behind a standard network header.
pub const MAX_PAYLOAD_DW: usize = MAX_DATA_DW + super::network::STANDARD_BYTES / DW_BYTES;
/// Size of the longest TLP.
pub const MAX_TLP_BYTES: usize = OVERHEAD_BYTES + MAX_PAYLOAD_DW * DW_BYTES;
/// The byte of the header with the low bits of the payload's length in DW.
pub const LENGTH_BYTE: usize = 3;
/// Virtual channels (S-14).
pub const CHANNELS: u8 = 2;

/// A memory write with a header of 4 DW.
const POSTED_WRITE: u8 = 0x60;
/// A check follows the payload.
const WITH_CHECK: u8 = 0x80;
/// All bytes of the first and the last DW.
const ALL_BYTES: u8 = 0xff;

const FORMAT: &str = "TLP";

const _: () = {
    assert!(OVERHEAD_BYTES == 5 * DW_BYTES);
    assert!(MAX_PAYLOAD_DW == 128);
    assert!(MAX_TLP_BYTES == 532);
};

/// A TLP whose payload is borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tlp<'a> {
    /// Virtual channel: 0 for requests, 1 for responses.
    pub channel: u8,
    /// The sender, by PCIe's numbering; this link ignores it.
    pub requester: u16,
    /// PCIe's tag; posted writes do not use it.
    pub tag: u8,
    /// Any 64 bits.
    pub address: u64,
    /// Whole DWs, at most [`MAX_PAYLOAD_DW`].
    pub payload: &'a [u8],
}

impl<'a> Tlp<'a> {
    /// Reads a TLP out of exactly its own bytes.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Damaged`] if the check fails,
    /// [`WireError::NotPosted`] for any type but a posted write, [`WireError::Reserved`],
    /// [`WireError::UnknownCode`] for a channel that does not exist, [`WireError::PayloadTooLong`],
    /// [`WireError::PayloadMismatch`] if the length announced is not that of the payload.
    pub fn parse(bytes: &'a [u8]) -> Result<Tlp<'a>, WireError> {
        let short =
            WireError::Truncated { format: FORMAT, length: bytes.len(), needed: OVERHEAD_BYTES };
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>().ok_or(short)?;
        let (payload, check) = rest.split_last_chunk::<CHECK_BYTES>().ok_or(short)?;
        if crc32c(&bytes[..bytes.len() - CHECK_BYTES]).to_le_bytes() != *check {
            return Err(WireError::Damaged { format: FORMAT });
        }
        let [kind, class, attributes, length, r1, r0, tag, enables, address @ ..] = *header;
        if kind != POSTED_WRITE {
            return Err(WireError::NotPosted { byte: kind });
        }
        let announced = usize::from(attributes & 3) << 8 | usize::from(length);
        reserved("reserved bits of TLP byte 1", class & 0x8f)?;
        reserved("reserved bits of TLP byte 2", attributes & !3 ^ WITH_CHECK)?;
        reserved("byte enables that are off", enables ^ ALL_BYTES)?;
        if class >> 4 >= CHANNELS {
            return Err(WireError::UnknownCode {
                field: "traffic class",
                code: (class >> 4).into(),
            });
        }
        check_length(announced * DW_BYTES)?;
        if announced * DW_BYTES != payload.len() {
            return Err(WireError::PayloadMismatch {
                announced: announced * DW_BYTES,
                length: payload.len(),
            });
        }
        Ok(Tlp {
            channel: class >> 4,
            requester: u16::from_be_bytes([r1, r0]),
            tag,
            address: u64::from_be_bytes(address),
            payload,
        })
    }

    /// The virtual channel in the first bytes of a TLP, unchecked: for a receiver that forwards
    /// bytes before all have come (S-21). `None` unless they begin a posted write on an existing
    /// channel.
    pub fn glance_channel(bytes: &[u8]) -> Option<u8> {
        let [kind, class, ..] = *bytes.first_chunk::<HEADER_BYTES>()?;
        let channel = class >> 4;
        (kind == POSTED_WRITE && class & 0x8f == 0 && channel < CHANNELS).then_some(channel)
    }

    /// Bytes that [`Tlp::emit`] writes.
    pub const fn buffer_len(&self) -> usize {
        OVERHEAD_BYTES + self.payload.len()
    }

    /// Writes the TLP into the first [`Tlp::buffer_len`] bytes of `buffer`.
    ///
    /// # Errors
    /// [`WireError::BufferTooSmall`], [`WireError::PayloadTooLong`], [`WireError::Misaligned`] for
    /// a payload that is not whole DWs, [`WireError::OutOfRange`] for the channel.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        check_length(self.payload.len())?;
        if self.channel >= CHANNELS {
            return Err(WireError::OutOfRange {
                field: "virtual channel",
                value: self.channel.into(),
                limit: u64::from(CHANNELS) - 1,
            });
        }
        let target = room(FORMAT, buffer, self.buffer_len())?;
        let dwords = (self.payload.len() / DW_BYTES) as u16;
        let (content, check) = target.split_at_mut(HEADER_BYTES + self.payload.len());
        content[0] = POSTED_WRITE;
        content[1] = self.channel << 4;
        content[2] = WITH_CHECK | (dwords >> 8) as u8;
        content[LENGTH_BYTE] = dwords as u8;
        content[4..6].copy_from_slice(&self.requester.to_be_bytes());
        content[6] = self.tag;
        content[7] = ALL_BYTES;
        content[8..16].copy_from_slice(&self.address.to_be_bytes());
        content[HEADER_BYTES..].copy_from_slice(self.payload);
        check.copy_from_slice(&crc32c(content).to_le_bytes());
        Ok(())
    }
}

impl fmt::Display for Tlp<'_> {
    /// `posted write, VC1, address 0x4000, 64 B`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (channel, address, length) = (self.channel, self.address, self.payload.len());
        write!(f, "posted write, VC{channel}, address {address:#x}, {length} B")
    }
}

fn check_length(length: usize) -> Result<(), WireError> {
    if length > MAX_PAYLOAD_DW * DW_BYTES {
        let limit = (MAX_PAYLOAD_DW * DW_BYTES) as u64;
        return Err(WireError::PayloadTooLong { length: length as u64, limit });
    }
    if !length.is_multiple_of(DW_BYTES) {
        return Err(WireError::Misaligned {
            field: "TLP payload length",
            value: length as u64,
            alignment: DW_BYTES as u64,
        });
    }
    Ok(())
}

fn reserved(field: &'static str, bits: u8) -> Result<(), WireError> {
    match bits {
        0 => Ok(()),
        bits => Err(WireError::Reserved { field, value: bits.into() }),
    }
}
