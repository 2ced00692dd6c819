//! A whole packet: header, payload, software tail (C-06, C-07, C-10; cHPP section 3.2, Fig. 6).
//!
//! ```text
//!   0        16                                                       end
//!   +--------+------------------------------------------+--------------+
//!   | header | payload, Length DWs (1..=1024)           | tail, 0..=16 |
//!   +--------+------------------------------------------+--------------+
//!            |<- lead ->|<- bytes meant ->|<- trail ->|
//!              0..=3 off                    0..=3 off
//! ```
//!
//! As in PCIe, payload travels in whole DWs and each byte keeps its lane. So the first byte meant
//! stands at offset `address % 4` of the payload. Lead and trail are written as zeros and ignored
//! when read. A payload of 0 bytes travels as one DW with no byte enabled, which is PCIe's
//! zero-length write. The tail has no length field: it is all that the link delivers behind the
//! payload.

use core::fmt;

use crate::WireError;
use crate::error::room;
use crate::header::{HEADER_BYTES, HeaderRepr};
use crate::span::MAX_PAYLOAD_BYTES;
use crate::tail::{MAX_TAIL_BYTES, Tail};

/// Size of the largest packet.
pub const MAX_PACKET_BYTES: usize = HEADER_BYTES + MAX_PAYLOAD_BYTES + MAX_TAIL_BYTES;

const _: () = assert!(MAX_PACKET_BYTES == 4128);

const FORMAT: &str = "packet";

/// A packet whose payload is borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRepr<'a> {
    /// The header; its span says how many bytes of payload there are.
    pub header: HeaderRepr,
    /// Exactly the bytes meant, without lead and trail.
    pub payload: &'a [u8],
    /// Opaque bytes of the upper software.
    pub tail: Tail,
}

impl<'a> PacketRepr<'a> {
    /// Reads a packet out of exactly its own bytes.
    ///
    /// # Errors
    /// Those of [`HeaderRepr::parse`], [`WireError::Truncated`] if the payload is not all there,
    /// [`WireError::TailTooLong`] if more than 16 bytes follow it.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let header = HeaderRepr::parse(bytes)?;
        let body = &bytes[HEADER_BYTES..];
        let travelling = header.span.to_dwords().byte_len();
        let Some((dwords, tail)) = body.split_at_checked(travelling) else {
            return Err(WireError::Truncated {
                format: FORMAT,
                length: bytes.len(),
                needed: HEADER_BYTES + travelling,
            });
        };
        let payload = &dwords[header.span.lead()..][..header.span.len()];
        Ok(Self { header, payload, tail: Tail::new(tail)? })
    }

    /// Bytes that [`PacketRepr::emit`] writes.
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES + self.header.span.to_dwords().byte_len() + self.tail.len()
    }

    /// Writes the packet into the first [`PacketRepr::buffer_len`] bytes of `buffer`.
    ///
    /// # Errors
    /// [`WireError::PayloadMismatch`] if header and payload disagree,
    /// [`WireError::BufferTooSmall`], those of [`HeaderRepr::emit`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        let span = self.header.span;
        if self.payload.len() != span.len() {
            return Err(WireError::PayloadMismatch {
                announced: span.len(),
                length: self.payload.len(),
            });
        }
        let target = room(FORMAT, buffer, self.buffer_len())?;
        self.header.emit(target)?;
        let (dwords, tail) = target[HEADER_BYTES..].split_at_mut(span.to_dwords().byte_len());
        let (lead, rest) = dwords.split_at_mut(span.lead());
        let (payload, trail) = rest.split_at_mut(span.len());
        lead.fill(0);
        payload.copy_from_slice(self.payload);
        trail.fill(0);
        tail.copy_from_slice(self.tail.as_bytes());
        Ok(())
    }
}

impl fmt::Display for PacketRepr<'_> {
    /// The header's line and the tail.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, tail {}", self.header, self.tail)
    }
}
