//! The 16-byte packet header (C-06, C-07, C-08; cHPP section 3.2, Fig. 6).
//!
//! It is the header of a PCIe memory write with a 64-bit address: four DWs, sent most significant
//! byte first. `PKT type`, `QP Magic` and most of DW2 have a new meaning:
//!
//! ```text
//!        byte +0         byte +1         byte +2         byte +3
//!    3 3                   2                   1                   0
//!    1 0 9 8 7 6 5 4 3 2 1 0 9 8 7 6 5 4 3 2 1 0 9 8 7 6 5 4 3 2 1 0
//!   +-+---+---------+-+-----+-------+-------+---+-------------------+
//! 0 |R|Fmt|   Type  |R|  TC |   R   |PKT typ| R |       Length      |
//!   +-+---+---------+-+-----+-------+-------+---+---+-------+-------+
//! 1 |          Requester ID         |    QP Magic   |last BE| 1st BE|
//!   +-------+-----+---+-------+-----+---+-----------+-------+-------+
//! 2 |SRC-CPU|  VF | QP|DST-CPU|  VF | QP|   S-Flag  | Address 39:32 |
//!   +-------+-----+---+-------+-----+---+-----------+-----------+---+
//! 3 |                        Address 31:2                       | 00|
//!   +-----------------------------------------------------------+---+
//! ```
//!
//! | DW | bits | field | value |
//! |---|---|---|---|
//! | 0 | 31 | R | 0 |
//! | 0 | 30:29 | Fmt | 11, four DWs with data |
//! | 0 | 28:24 | Type | 00000, memory |
//! | 0 | 23 | R | 0 |
//! | 0 | 22:20 | TC | traffic class |
//! | 0 | 19:16 | R | 0 |
//! | 0 | 15:12 | PKT type | [`Primitive`], in place of TD, EP and Attr |
//! | 0 | 11:10 | R | 0 |
//! | 0 | 9:0 | Length | DWs of payload, 0 means 1024 |
//! | 1 | 31:16 | Requester ID | as in PCIe |
//! | 1 | 15:8 | QP Magic | protection key, in place of the Tag (C-09) |
//! | 1 | 7:4, 3:0 | last, 1st DW BE | see [`crate::span`] |
//! | 2 | 31:23 | SRC | [`Endpoint`]: CPU 4, VF 3, QP 2 |
//! | 2 | 22:14 | DST | [`Endpoint`] |
//! | 2 | 13:8 | S-Flag | bit 8: a PUT asks for a receive-completion event (C-14); 13:9 are 0 |
//! | 2 | 7:0 | Address 39:32 | of the target DW |
//! | 3 | 31:2 | Address 31:2 | target of a PUT; 0 for NAP and GET |
//! | 3 | 1:0 | 00 | 0 |

use core::fmt;

use crate::bits::{Field, tiles};
use crate::endpoint::Endpoint;
use crate::error::{first, room};
use crate::primitive::Primitive;
use crate::span::{ByteSpan, DwordSpan, MAX_LENGTH_DW};
use crate::{ADDRESS_BITS, WireError};

/// Size of the header.
pub const HEADER_BYTES: usize = 16;

/// Most bytes in a NAP (C-19).
pub const MAX_NAP_BYTES: usize = 2048;

/// First byte of every header: Fmt and Type of a 4-DW memory write.
pub const MEMORY_WRITE: u8 = 0x60;

const FORMAT: &str = "packet header";

mod field {
    use super::Field;

    pub const SHAPE: Field = Field::new("Fmt and Type", 31, 24);
    pub const R_23: Field = Field::new("reserved bit 23 of DW0", 23, 23);
    pub const TRAFFIC_CLASS: Field = Field::new("traffic class", 22, 20);
    pub const R_19_16: Field = Field::new("reserved bits 19:16 of DW0", 19, 16);
    pub const PACKET_TYPE: Field = Field::new("packet type", 15, 12);
    pub const R_11_10: Field = Field::new("reserved bits 11:10 of DW0", 11, 10);
    pub const LENGTH: Field = Field::new("length in DW", 9, 0);

    pub const REQUESTER_ID: Field = Field::new("requester ID", 31, 16);
    pub const MAGIC: Field = Field::new("QP Magic", 15, 8);
    pub const LAST_ENABLES: Field = Field::new("last DW BE", 7, 4);
    pub const FIRST_ENABLES: Field = Field::new("1st DW BE", 3, 0);

    pub const SOURCE: Field = Field::new("SRC", 31, 23);
    pub const DESTINATION: Field = Field::new("DST", 22, 14);
    pub const R_FLAGS: Field = Field::new("reserved bits 5:1 of S-Flag", 13, 9);
    pub const WANTS_EVENT: Field = Field::new("event bit of S-Flag", 8, 8);
    pub const ADDRESS_HIGH: Field = Field::new("address bits 39:32", 7, 0);

    pub const ADDRESS_LOW: Field = Field::new("address bits 31:2", 31, 2);
    pub const R_ADDRESS: Field = Field::new("address bits 1:0", 1, 0);
}

const _: () = {
    use field::*;
    assert!(tiles(&[SHAPE, R_23, TRAFFIC_CLASS, R_19_16, PACKET_TYPE, R_11_10, LENGTH], 32));
    assert!(tiles(&[REQUESTER_ID, MAGIC, LAST_ENABLES, FIRST_ENABLES], 32));
    assert!(tiles(&[SOURCE, DESTINATION, R_FLAGS, WANTS_EVENT, ADDRESS_HIGH], 32));
    assert!(tiles(&[ADDRESS_LOW, R_ADDRESS], 32));
    assert!(HEADER_BYTES == 4 * size_of::<u32>());
    assert!(LENGTH.limit() + 1 == MAX_LENGTH_DW as u64);
    assert!(SOURCE.limit() == (1 << Endpoint::BITS) - 1);
    assert!(DESTINATION.limit() == (1 << Endpoint::BITS) - 1);
    assert!(ADDRESS_BITS == 40);
};

/// View of a header in bytes that are at least [`HEADER_BYTES`] long. Reads single fields without
/// validating the others; [`HeaderRepr::parse`] validates all.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    bytes: &'a [u8; HEADER_BYTES],
}

impl<'a> Header<'a> {
    /// Looks at the first 16 bytes; [`WireError::Truncated`] if there are fewer.
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        first(FORMAT, bytes).map(|bytes| Self { bytes })
    }

    /// Packet type.
    pub fn primitive(&self) -> Result<Primitive, WireError> {
        Primitive::from_code(field::PACKET_TYPE.of(self.dw(0)) as u8)
    }

    /// Traffic class, 0..=7.
    pub fn traffic_class(&self) -> u8 {
        field::TRAFFIC_CLASS.of(self.dw(0)) as u8
    }

    /// DWs of payload, 1..=1024.
    pub fn length_dw(&self) -> u16 {
        match field::LENGTH.of(self.dw(0)) as u16 {
            0 => MAX_LENGTH_DW,
            length_dw => length_dw,
        }
    }

    /// Requester ID, which PCIe splits into bus, device and function.
    pub fn requester_id(&self) -> u16 {
        field::REQUESTER_ID.of(self.dw(1)) as u16
    }

    /// Protection key (C-09).
    pub fn magic(&self) -> u8 {
        field::MAGIC.of(self.dw(1)) as u8
    }

    /// Sender.
    pub fn source(&self) -> Endpoint {
        Endpoint::from_low_bits(field::SOURCE.of(self.dw(2)))
    }

    /// Receiver.
    pub fn destination(&self) -> Endpoint {
        Endpoint::from_low_bits(field::DESTINATION.of(self.dw(2)))
    }

    /// True if S-Flag asks for a receive-completion event (C-14).
    pub fn wants_event(&self) -> bool {
        field::WANTS_EVENT.is_set(self.dw(2))
    }

    /// Length, byte enables and target address, unchecked.
    pub fn dwords(&self) -> DwordSpan {
        let high = field::ADDRESS_HIGH.of(self.dw(2)) << 32;
        let low = field::ADDRESS_LOW.of(self.dw(3)) << 2;
        DwordSpan {
            address: high | low,
            length_dw: self.length_dw(),
            first_enables: field::FIRST_ENABLES.of(self.dw(1)) as u8,
            last_enables: field::LAST_ENABLES.of(self.dw(1)) as u8,
        }
    }

    fn dw(&self, index: usize) -> u64 {
        let (dwords, _) = self.bytes.as_chunks();
        u32::from_be_bytes(dwords[index]).into()
    }

    fn check_fixed_bits(&self) -> Result<(), WireError> {
        if self.bytes[0] != MEMORY_WRITE {
            return Err(WireError::NotMemoryWrite { byte: self.bytes[0] });
        }
        field::R_23.must_be_zero(self.dw(0))?;
        field::R_19_16.must_be_zero(self.dw(0))?;
        field::R_11_10.must_be_zero(self.dw(0))?;
        field::R_FLAGS.must_be_zero(self.dw(2))?;
        field::R_ADDRESS.must_be_zero(self.dw(3))
    }
}

/// The content of a header, in bytes rather than DWs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HeaderRepr {
    /// Packet type.
    pub primitive: Primitive,
    /// Traffic class, 0..=7.
    pub traffic_class: u8,
    /// Requester ID as in PCIe.
    pub requester_id: u16,
    /// Protection key that the receiver compares (C-09).
    pub magic: u8,
    /// Sender.
    pub source: Endpoint,
    /// Receiver.
    pub destination: Endpoint,
    /// S-Flag: the receiver writes a completion event for this PUT. A NAP always gives one (C-14).
    pub wants_event: bool,
    /// Payload bytes and where a PUT writes them. NAP and GET start at address 0.
    pub span: ByteSpan,
}

impl HeaderRepr {
    /// Reads and validates a header.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::NotMemoryWrite`], [`WireError::Reserved`],
    /// [`WireError::UnknownCode`], those of [`DwordSpan::to_bytes`],
    /// [`WireError::UnexpectedAddress`] and, for a NAP, [`WireError::PayloadTooLong`].
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let header = Header::new(bytes)?;
        header.check_fixed_bits()?;
        let repr = Self {
            primitive: header.primitive()?,
            traffic_class: header.traffic_class(),
            requester_id: header.requester_id(),
            magic: header.magic(),
            source: header.source(),
            destination: header.destination(),
            wants_event: header.wants_event(),
            span: header.dwords().to_bytes()?,
        };
        repr.check()?;
        Ok(repr)
    }

    /// Bytes that [`HeaderRepr::emit`] writes.
    pub const fn buffer_len(&self) -> usize {
        HEADER_BYTES
    }

    /// Writes the header into the first 16 bytes of `buffer`.
    ///
    /// # Errors
    /// [`WireError::BufferTooSmall`], [`WireError::OutOfRange`] for the traffic class,
    /// [`WireError::UnexpectedAddress`] and, for a NAP, [`WireError::PayloadTooLong`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        self.check()?;
        let DwordSpan { address, length_dw, first_enables, last_enables } = self.span.to_dwords();
        let dwords = [
            field::SHAPE.place(MEMORY_WRITE.into())?
                | field::TRAFFIC_CLASS.place(self.traffic_class.into())?
                | field::PACKET_TYPE.place(self.primitive.code().into())?
                | field::LENGTH.place(u64::from(length_dw % MAX_LENGTH_DW))?,
            field::REQUESTER_ID.place(self.requester_id.into())?
                | field::MAGIC.place(self.magic.into())?
                | field::LAST_ENABLES.place(last_enables.into())?
                | field::FIRST_ENABLES.place(first_enables.into())?,
            field::SOURCE.place(self.source.to_bits().into())?
                | field::DESTINATION.place(self.destination.to_bits().into())?
                | field::WANTS_EVENT.place(self.wants_event.into())?
                | field::ADDRESS_HIGH.place(address >> 32)?,
            field::ADDRESS_LOW.place((address & u64::from(u32::MAX)) >> 2)?,
        ];
        let target = room(FORMAT, buffer, HEADER_BYTES)?;
        for (bytes, dword) in target.as_chunks_mut().0.iter_mut().zip(dwords) {
            *bytes = (dword as u32).to_be_bytes();
        }
        Ok(())
    }

    fn check(&self) -> Result<(), WireError> {
        if !self.primitive.has_address() && self.span.address() != 0 {
            return Err(WireError::UnexpectedAddress { address: self.span.address() });
        }
        if self.primitive == Primitive::Nap && self.span.len() > MAX_NAP_BYTES {
            return Err(WireError::PayloadTooLong {
                length: self.span.len() as u64,
                limit: MAX_NAP_BYTES as u64,
            });
        }
        Ok(())
    }
}

impl fmt::Display for HeaderRepr {
    /// `PUT 0.1.2 > 3.0.1, 6 B at 0x1003, magic 0x5a, tc 0, requester 0x0100, event`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} > {}, {} B",
            self.primitive,
            self.source,
            self.destination,
            self.span.len()
        )?;
        if self.primitive.has_address() {
            write!(f, " at {:#x}", self.span.address())?;
        }
        write!(
            f,
            ", magic {:#04x}, tc {}, requester {:#06x}",
            self.magic, self.traffic_class, self.requester_id
        )?;
        if self.wants_event { f.write_str(", event") } else { Ok(()) }
    }
}
