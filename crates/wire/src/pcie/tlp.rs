//! Headers of TLPs (PCIe base specification 2.0, section 2.2).
//!
//! ```text
//!   DW 0         format 31:29, type 28:24, R 23, TC 22:20, R 19, attribute 18, R 17:16,
//!                digest 15, poisoned 14, attributes 13:12, R 11:10, length in DW 9:0
//!   of a request for memory:
//!   DW 1         requester 31:16, tag 15:8, last BE 7:4, first BE 3:0
//!   DW 2         address 63:32, in the form of 4 DW only
//!   last DW      address 31:2, R 1:0
//!   of a completion:
//!   DW 1         completer 31:16, status 15:13, modified 12, byte count 11:0
//!   DW 2         requester 31:16, tag 15:8, R 7, lower address 6:0
//! ```
//!
//! A length of 0 means 1024 DW, and a byte count of 0 means 4096 bytes. An address below 4 GiB has
//! the form of 3 DW, and any other one that of 4 DW. There are no prefixes and no digests here.
//! `hardware layouts` writes the same fields as a package in SystemVerilog.

use core::fmt;

use crate::WireError;
pub use crate::bits::Field;
use crate::bits::tiles;
use crate::error::room;
use crate::span::MAX_LENGTH_DW;

/// Bytes of the shorter header.
pub const SHORT_BYTES: usize = 12;
/// Bytes of the longer header.
pub const LONG_BYTES: usize = 16;
/// Most bytes that a completion can say its read lacks.
pub const MAX_BYTE_COUNT: u16 = 4096;

/// Bit 0 of the format: the header has 4 DW.
pub const LONG: u8 = 1;
/// Bit 1 of the format: a payload follows.
pub const WITH_DATA: u8 = 2;
/// The type of reads and writes of memory.
pub const MEMORY: u8 = 0x00;
/// The type of completions.
pub const COMPLETION: u8 = 0x0a;
/// The other types that want a completion, a bit for each: locked reads, I/O, configuration, atomic
/// operations, and deferrable writes.
pub const OTHER_NON_POSTED: u32 = (0b11 << 1) + (0b11 << 4) + (0b111 << 12) + (1 << 27);

/// A completion is successful.
pub const SUCCESS: u8 = 0;
/// The completer does not support the request.
pub const UNSUPPORTED: u8 = 1;
/// The completer gave up.
pub const ABORT: u8 = 4;

/// Which packets these are: the format.
pub const FORMAT: Field = Field::new("format", 31, 29);
/// Which packets these are: the type.
pub const KIND: Field = Field::new("kind", 28, 24);
const R_23: Field = Field::new("reserved_23", 23, 23);
/// The traffic class.
pub const CLASS: Field = Field::new("traffic_class", 22, 20);
const R_19: Field = Field::new("reserved_19", 19, 19);
/// The attribute of ordering by numbers.
pub const ID_ORDER: Field = Field::new("id_order", 18, 18);
const R_17_16: Field = Field::new("reserved_17", 17, 16);
const DIGEST: Field = Field::new("digest", 15, 15);
/// The payload is known to be wrong.
pub const POISONED: Field = Field::new("poisoned", 14, 14);
/// The attributes of relaxed ordering and of no snooping.
pub const ATTRIBUTES: Field = Field::new("attributes", 13, 12);
const R_11_10: Field = Field::new("reserved_11", 11, 10);
/// DWs of payload, or of what is read; 0 stands for 1024.
pub const LENGTH: Field = Field::new("dwords", 9, 0);

/// Who sent the request.
pub const REQUESTER: Field = Field::new("requester", 31, 16);
/// The number of the request.
pub const TAG: Field = Field::new("tag", 15, 8);
/// Bytes that are meant in the last DW; none if there is only one DW.
pub const LAST: Field = Field::new("last_enables", 7, 4);
/// Bytes that are meant in the first DW.
pub const FIRST: Field = Field::new("first_enables", 3, 0);

const COMPLETER: Field = Field::new("completer", 31, 16);
/// What became of the request.
pub const STATUS: Field = Field::new("status", 15, 13);
const MODIFIED: Field = Field::new("modified", 12, 12);
/// Bytes that the read lacks, with those of this completion; 0 stands for 4096.
pub const BYTE_COUNT: Field = Field::new("byte_count", 11, 0);

const R_7: Field = Field::new("reserved_7", 7, 7);
/// The low bits of the address of the completion's first byte.
pub const LOWER: Field = Field::new("lower_address", 6, 0);

/// Fields of DW 0, from the highest bit down.
pub const DW_0: &[Field] = &[
    FORMAT, KIND, R_23, CLASS, R_19, ID_ORDER, R_17_16, DIGEST, POISONED, ATTRIBUTES, R_11_10,
    LENGTH,
];
/// Fields of a request's DW 1.
pub const REQUEST_DW_1: &[Field] = &[REQUESTER, TAG, LAST, FIRST];
/// Fields of a completion's DW 1.
pub const COMPLETION_DW_1: &[Field] = &[COMPLETER, STATUS, MODIFIED, BYTE_COUNT];
/// Fields of a completion's DW 2.
pub const COMPLETION_DW_2: &[Field] = &[REQUESTER, TAG, R_7, LOWER];

const NAME: &str = "TLP header";
/// The lowest address whose header has 4 DW.
const LONG_ADDRESS: u64 = 1 << 32;

const _: () = {
    assert!(tiles(DW_0, 32) && tiles(REQUEST_DW_1, 32));
    assert!(tiles(COMPLETION_DW_1, 32) && tiles(COMPLETION_DW_2, 32));
    assert!(SHORT_BYTES == 3 * 4 && LONG_BYTES == 4 * 4);
};

/// The DW at a number, in a header that begins with `bytes`; zeros behind the end.
pub fn dword(bytes: &[u8], number: usize) -> u64 {
    let dword = bytes.get(4 * number..4 * number + 4).and_then(<[u8]>::first_chunk);
    dword.map_or(0, |dword| u32::from_be_bytes(*dword).into())
}

/// A read or a write of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// It is a write, and its payload follows.
    pub is_write: bool,
    /// The payload is known to be wrong.
    pub is_poisoned: bool,
    /// The traffic class.
    pub class: u8,
    /// Ordering by numbers, relaxed ordering, no snooping: one bit each, from the highest down.
    pub attributes: u8,
    /// Who sends it: bus, device and function.
    pub requester: u16,
    /// Its number; writes need none.
    pub tag: u8,
    /// Address of the first DW, a multiple of 4.
    pub address: u64,
    /// DWs, 1..=1024.
    pub dwords: u16,
    /// Bytes meant in the first DW, bit 0 for the lowest address.
    pub first: u8,
    /// Bytes meant in the last DW; zero if there is only one DW.
    pub last: u8,
}

/// The answer to a request, or a piece of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The payload is known to be wrong.
    pub is_poisoned: bool,
    /// The traffic class of the request.
    pub class: u8,
    /// The attributes of the request.
    pub attributes: u8,
    /// Who sends it.
    pub completer: u16,
    /// What became of the request: [`SUCCESS`] or another code.
    pub status: u8,
    /// Bytes that the read lacks, with those of this completion: 1..=4096.
    pub byte_count: u16,
    /// Who sent the request.
    pub requester: u16,
    /// Its number.
    pub tag: u8,
    /// The low 7 bits of the address of the first byte.
    pub lower: u8,
    /// DWs of payload, 1..=1024; none without a payload.
    pub dwords: u16,
}

/// A header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Header {
    /// A read or a write of memory.
    Request(Request),
    /// An answer, or a piece of one.
    Completion(Completion),
}

impl Header {
    /// Reads the header of a TLP; its payload may follow.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::UnknownCode`] for any other type and for a header of
    /// 4 DW whose address needs 3, [`WireError::Reserved`].
    pub fn parse(bytes: &[u8]) -> Result<Header, WireError> {
        let truncated =
            |needed| Err(WireError::Truncated { format: NAME, length: bytes.len(), needed });
        if bytes.len() < SHORT_BYTES {
            return truncated(SHORT_BYTES);
        }
        let [first, second, third, fourth] = [0, 1, 2, 3].map(|number| dword(bytes, number));
        let (format, kind) = (FORMAT.of(first) as u8, KIND.of(first) as u8);
        for field in [R_23, R_19, R_17_16, DIGEST, R_11_10] {
            field.must_be_zero(first)?;
        }
        let (has_data, is_long) = (format & WITH_DATA != 0, format & LONG != 0);
        let dwords = LENGTH.of(first) as u16;
        let dwords_of = if dwords == 0 { MAX_LENGTH_DW } else { dwords };
        let is_poisoned = POISONED.is_set(first);
        let class = CLASS.of(first) as u8;
        let attributes = (4 * ID_ORDER.of(first) + ATTRIBUTES.of(first)) as u8;
        // Formats from 4 on are prefixes.
        let is_known = format < 4;
        match kind {
            MEMORY if is_known => {
                if is_long && bytes.len() < LONG_BYTES {
                    return truncated(LONG_BYTES);
                }
                let address = if is_long { (third << 32) + fourth } else { third };
                if is_long && address < LONG_ADDRESS {
                    let field = "upper half of the address in a header of 4 DW";
                    return Err(WireError::UnknownCode { field, code: 0 });
                }
                Field::new("reserved_1", 1, 0).must_be_zero(address)?;
                Ok(Header::Request(Request {
                    is_write: has_data,
                    is_poisoned,
                    class,
                    attributes,
                    requester: REQUESTER.of(second) as u16,
                    tag: TAG.of(second) as u8,
                    address,
                    dwords: dwords_of,
                    first: FIRST.of(second) as u8,
                    last: LAST.of(second) as u8,
                }))
            }
            COMPLETION if is_known && !is_long => {
                MODIFIED.must_be_zero(second)?;
                R_7.must_be_zero(third)?;
                if !has_data {
                    LENGTH.must_be_zero(first)?;
                }
                let byte_count = BYTE_COUNT.of(second) as u16;
                Ok(Header::Completion(Completion {
                    is_poisoned,
                    class,
                    attributes,
                    completer: COMPLETER.of(second) as u16,
                    status: STATUS.of(second) as u8,
                    byte_count: if byte_count == 0 { MAX_BYTE_COUNT } else { byte_count },
                    requester: REQUESTER.of(third) as u16,
                    tag: TAG.of(third) as u8,
                    lower: LOWER.of(third) as u8,
                    dwords: if has_data { dwords_of } else { 0 },
                }))
            }
            _ => {
                let code = u64::from(bytes[0]);
                Err(WireError::UnknownCode { field: "format and type of a TLP", code })
            }
        }
    }

    /// Bytes that [`Header::emit`] writes.
    pub const fn buffer_len(&self) -> usize {
        match self {
            Header::Request(request) if request.address >= LONG_ADDRESS => LONG_BYTES,
            _ => SHORT_BYTES,
        }
    }

    /// DWs of payload behind the header.
    pub const fn payload_dw(&self) -> usize {
        match self {
            Header::Request(Request { is_write: false, .. }) => 0,
            Header::Request(Request { dwords, .. }) => *dwords as usize,
            Header::Completion(Completion { dwords, .. }) => *dwords as usize,
        }
    }

    /// Writes the header into the first [`Header::buffer_len`] bytes of `buffer`.
    ///
    /// # Errors
    /// [`WireError::BufferTooSmall`], [`WireError::Misaligned`] for the address,
    /// [`WireError::OutOfRange`] for a value that does not fit.
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        let length = self.buffer_len();
        let format = if length == LONG_BYTES { LONG } else { 0 };
        let dwords = match self {
            Header::Request(request) => request.dwords()?,
            Header::Completion(completion) => completion.dwords()?,
        };
        let dwords = dwords.map(|dword| dword as u32);
        let first = dwords[0] + (u32::from(format) << 29);
        let room = room(NAME, buffer, length)?;
        let dwords = [first, dwords[1], dwords[2], dwords[3]];
        for (bytes, dword) in room.chunks_exact_mut(4).zip(dwords) {
            bytes.copy_from_slice(&dword.to_be_bytes());
        }
        Ok(())
    }
}

/// DW 0 without the bit for a header of 4 DW.
fn dw_0(
    kind: u8,
    has_data: bool,
    is_poisoned: bool,
    class: u8,
    attributes: u8,
) -> Result<u64, WireError> {
    let format = if has_data { WITH_DATA } else { 0 };
    if attributes > 7 {
        let (field, value) = ("attributes", attributes.into());
        return Err(WireError::OutOfRange { field, value, limit: 7 });
    }
    let fields = [
        FORMAT.place(format.into())?,
        KIND.place(kind.into())?,
        POISONED.place(is_poisoned.into())?,
        CLASS.place(class.into())?,
        ID_ORDER.place((attributes / 4).into())?,
        ATTRIBUTES.place((attributes % 4).into())?,
    ];
    Ok(fields.iter().sum())
}

/// A number from 1 on in a field that has 0 for the highest.
fn counted(field: Field, value: u16) -> Result<u64, WireError> {
    let highest = field.limit() + 1;
    if value == 0 || u64::from(value) > highest {
        let (field, value) = (field.name(), value.into());
        return Err(WireError::OutOfRange { field, value, limit: highest });
    }
    field.place(u64::from(value) % highest)
}

impl Request {
    /// DWs, of which the low 32 bits count; the last one is in the form of 4 DW only.
    fn dwords(&self) -> Result<[u64; 4], WireError> {
        let Request { is_write, is_poisoned, class, attributes, address, .. } = *self;
        if !address.is_multiple_of(4) {
            let field = "address of a TLP";
            return Err(WireError::Misaligned { field, value: address, alignment: 4 });
        }
        let first =
            dw_0(MEMORY, is_write, is_poisoned, class, attributes)? + counted(LENGTH, self.dwords)?;
        let second = [
            REQUESTER.place(self.requester.into())?,
            TAG.place(self.tag.into())?,
            LAST.place(self.last.into())?,
            FIRST.place(self.first.into())?,
        ];
        let third = if address < LONG_ADDRESS { address } else { address >> 32 };
        Ok([first, second.iter().sum(), third, address])
    }
}

impl Completion {
    /// DWs, of which there are three.
    fn dwords(&self) -> Result<[u64; 4], WireError> {
        let Completion { is_poisoned, class, attributes, dwords, .. } = *self;
        let length = if dwords == 0 { 0 } else { counted(LENGTH, dwords)? };
        let first = dw_0(COMPLETION, dwords > 0, is_poisoned, class, attributes)? + length;
        let second = [
            COMPLETER.place(self.completer.into())?,
            STATUS.place(self.status.into())?,
            counted(BYTE_COUNT, self.byte_count)?,
        ];
        let third = [
            REQUESTER.place(self.requester.into())?,
            TAG.place(self.tag.into())?,
            LOWER.place(self.lower.into())?,
        ];
        Ok([first, second.iter().sum(), third.iter().sum(), 0])
    }
}

impl fmt::Display for Header {
    /// `read of 8 DW at 0x1000, tag 3` or `completion of tag 3, 32 B left, 8 DW`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Header::Request(Request { is_write, address, dwords, tag, .. }) => {
                let what = if *is_write { "write" } else { "read" };
                write!(f, "{what} of {dwords} DW at {address:#x}, tag {tag}")
            }
            Header::Completion(Completion { tag, byte_count, dwords, status, .. }) => {
                write!(f, "completion of tag {tag}, {byte_count} B left, {dwords} DW")?;
                if *status == SUCCESS { Ok(()) } else { write!(f, ", status {status}") }
            }
        }
    }
}
