//! The chain-DMA descriptor (C-28, C-29, C-10; cHPP section 3.4, Tab. 2).
//!
//! The program writes it into its own memory and rings a doorbell; the engine reads it once (C-30).
//! It is also the payload of a GET packet (C-25), so it is never longer than one payload.
//! Everything is least significant byte first and padded with zeros to beats of 16 bytes:
//!
//! ```text
//!   0        16                                                          length
//!   +--------+--------------+-------------------+----------------+---------+
//!   | header | source list  | destination list  | immediate data |  tail   |
//!   |  16 B  | n x 16 B     | m x 16 B          | 0..=2048 B     | 0..=16 B|
//!   +--------+--------------+-------------------+----------------+---------+
//!
//!   first word of the header
//!   63   56 55   48 47  41 40      32 31     24 23 22 21 20 19 18 16 15   8 7 6 5 4 3    0
//!   +------+-------+------+----------+---------+-----+-----+--+-----+------+---+-+-+------+
//!   |  m   |   n   |  0   |   DST    | return  |  0  | QP  |0 | TC  |Magic | 0 |E|I| type |
//!   +------+-------+------+----------+---------+-----+-----+--+-----+------+---+-+-+------+
//!   second word of the header
//!   63                                          21 20        16 15    12 11               0
//!   +---------------------------------------------+------------+--------+-----------------+
//!   |                      0                      | tail bytes |   0    | immediate bytes |
//!   +---------------------------------------------+------------+--------+-----------------+
//! ```
//!
//! | field | meaning |
//! |---|---|
//! | m, n | number of destination and of source entries, see [`crate::entry`] |
//! | DST | [`Endpoint`] to send to |
//! | return | GET only: QP Magic of the own queue pair, which the PUT that comes back must carry |
//! | QP | own queue pair; processor and function are not the program's to say (C-39) |
//! | TC | traffic class of the packets |
//! | Magic | QP Magic of the far queue pair (C-09) |
//! | E | the receiver is to write a completion event for a PUT (C-14) |
//! | I | the data is inside: immediate NAP (C-17) |
//! | type | [`Primitive`] |
//!
//! | operation | sources | destinations | immediate data |
//! |---|---|---|---|
//! | NAP immediate | none | none | at most 2048 bytes |
//! | NAP indirect | at most 2048 bytes in all | none | none |
//! | PUT, GET | any | the same sum | none |
//!
//! The paper gives the four parts and the rule of equal sums; layout and limits are ours.

use core::fmt;

use crate::WireError;
use crate::bits::{Field, tiles};
use crate::endpoint::Endpoint;
use crate::entry::{Chain, ENTRY_BYTES, Entries};
use crate::error::room;
use crate::header::MAX_NAP_BYTES;
use crate::primitive::Primitive;
use crate::span::MAX_PAYLOAD_BYTES;
use crate::tail::{MAX_TAIL_BYTES, Tail};

/// Unit of a descriptor: what the engine takes in one step of 128 bits.
pub const BEAT_BYTES: usize = 16;

/// Size of the hardware header.
pub const DESCRIPTOR_HEADER_BYTES: usize = BEAT_BYTES;

/// Size of the largest descriptor: what one GET packet carries.
pub const MAX_DESCRIPTOR_BYTES: usize = MAX_PAYLOAD_BYTES;

/// Most entries in both lists together.
pub const MAX_ENTRIES: usize =
    (MAX_DESCRIPTOR_BYTES - DESCRIPTOR_HEADER_BYTES - MAX_TAIL_BYTES) / ENTRY_BYTES;

/// Most bytes inside the descriptor of an immediate NAP.
pub const MAX_IMMEDIATE_BYTES: usize = MAX_NAP_BYTES;

const FORMAT: &str = "descriptor";

mod field {
    use super::Field;

    pub const DESTINATION_COUNT: Field = Field::new("destination entries", 63, 56);
    pub const SOURCE_COUNT: Field = Field::new("source entries", 55, 48);
    pub const R_47_41: Field = Field::new("reserved bits 47:41 of the descriptor", 47, 41);
    pub const DESTINATION: Field = Field::new("DST", 40, 32);
    pub const RETURN_MAGIC: Field = Field::new("return QP Magic", 31, 24);
    pub const R_23_22: Field = Field::new("reserved bits 23:22 of the descriptor", 23, 22);
    pub const QUEUE_PAIR: Field = Field::new("queue pair", 21, 20);
    pub const R_19: Field = Field::new("reserved bit 19 of the descriptor", 19, 19);
    pub const TRAFFIC_CLASS: Field = Field::new("traffic class", 18, 16);
    pub const MAGIC: Field = Field::new("QP Magic", 15, 8);
    pub const R_7_6: Field = Field::new("reserved bits 7:6 of the descriptor", 7, 6);
    pub const WANTS_EVENT: Field = Field::new("event bit", 5, 5);
    pub const IS_IMMEDIATE: Field = Field::new("immediate bit", 4, 4);
    pub const TYPE: Field = Field::new("descriptor type", 3, 0);

    pub const R_63_21: Field = Field::new("reserved bits 63:21 of the second word", 63, 21);
    pub const TAIL_BYTES: Field = Field::new("tail bytes", 20, 16);
    pub const R_15_12: Field = Field::new("reserved bits 15:12 of the second word", 15, 12);
    pub const IMMEDIATE_BYTES: Field = Field::new("immediate bytes", 11, 0);

    pub const FIRST_WORD: [Field; 14] = [
        DESTINATION_COUNT,
        SOURCE_COUNT,
        R_47_41,
        DESTINATION,
        RETURN_MAGIC,
        R_23_22,
        QUEUE_PAIR,
        R_19,
        TRAFFIC_CLASS,
        MAGIC,
        R_7_6,
        WANTS_EVENT,
        IS_IMMEDIATE,
        TYPE,
    ];
    pub const SECOND_WORD: [Field; 4] = [R_63_21, TAIL_BYTES, R_15_12, IMMEDIATE_BYTES];
}

const _: () = {
    assert!(tiles(&field::FIRST_WORD, u64::BITS));
    assert!(tiles(&field::SECOND_WORD, u64::BITS));
    assert!(DESCRIPTOR_HEADER_BYTES == 2 * size_of::<u64>());
    assert!(field::DESTINATION.limit() == (1 << Endpoint::BITS) - 1);
    assert!(MAX_ENTRIES == 254 && MAX_ENTRIES as u64 <= field::SOURCE_COUNT.limit());
    assert!(MAX_IMMEDIATE_BYTES as u64 <= field::IMMEDIATE_BYTES.limit());
    assert!(MAX_TAIL_BYTES as u64 <= field::TAIL_BYTES.limit());
    assert!(ENTRY_BYTES == BEAT_BYTES && MAX_TAIL_BYTES == BEAT_BYTES);
    assert!(BEAT_BYTES + MAX_IMMEDIATE_BYTES + MAX_TAIL_BYTES <= MAX_DESCRIPTOR_BYTES);
};

/// View of a descriptor in exactly its own bytes: the parts, located and measured but not
/// validated. [`DescriptorRepr::parse`] validates them.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<'a> {
    words: [u64; 2],
    sources: &'a [[u8; ENTRY_BYTES]],
    destinations: &'a [[u8; ENTRY_BYTES]],
    immediate: &'a [u8],
    immediate_padding: &'a [u8],
    tail: [u8; MAX_TAIL_BYTES],
    tail_bytes: usize,
}

impl<'a> Descriptor<'a> {
    /// Locates the parts.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::Excess`] if the lengths in the header do not add up
    /// to that of `bytes`; [`WireError::TooManyEntries`], [`WireError::PayloadTooLong`],
    /// [`WireError::TailTooLong`] for a part beyond its limit.
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        let truncated =
            |needed| WireError::Truncated { format: FORMAT, length: bytes.len(), needed };
        let (beats, rest) = bytes.as_chunks::<BEAT_BYTES>();
        let Some((header, beats)) = beats.split_first() else {
            return Err(truncated(DESCRIPTOR_HEADER_BYTES));
        };
        let (words, _) = header.as_chunks();
        let words = [u64::from_le_bytes(words[0]), u64::from_le_bytes(words[1])];

        let source_count = field::SOURCE_COUNT.of(words[0]) as usize;
        let destination_count = field::DESTINATION_COUNT.of(words[0]) as usize;
        let immediate_bytes = field::IMMEDIATE_BYTES.of(words[1]) as usize;
        let tail_bytes = field::TAIL_BYTES.of(words[1]) as usize;
        let lengths = Lengths { source_count, destination_count, immediate_bytes, tail_bytes };
        lengths.check()?;

        let needed = lengths.buffer_len();
        if bytes.len() < needed {
            return Err(truncated(needed));
        }
        if bytes.len() > needed || !rest.is_empty() {
            return Err(WireError::Excess { format: FORMAT, excess: bytes.len() - needed });
        }
        let (sources, beats) = beats.split_at(source_count);
        let (destinations, beats) = beats.split_at(destination_count);
        let (immediate, tail) = beats.split_at(immediate_bytes.div_ceil(BEAT_BYTES));
        let (immediate, immediate_padding) = immediate.as_flattened().split_at(immediate_bytes);
        let tail = tail.first().copied().unwrap_or_default();
        Ok(Self { words, sources, destinations, immediate, immediate_padding, tail, tail_bytes })
    }

    /// The operation, without its data.
    pub fn primitive(&self) -> Result<Primitive, WireError> {
        Primitive::from_code(field::TYPE.of(self.words[0]) as u8)
    }

    /// True if the data is inside the descriptor.
    pub fn is_immediate(&self) -> bool {
        field::IS_IMMEDIATE.is_set(self.words[0])
    }

    /// Receiver.
    pub fn destination(&self) -> Endpoint {
        Endpoint::from_low_bits(field::DESTINATION.of(self.words[0]))
    }

    /// Source list.
    pub fn sources(&self) -> Entries<'a> {
        Entries::from_bytes(self.sources)
    }

    /// Destination list.
    pub fn destinations(&self) -> Entries<'a> {
        Entries::from_bytes(self.destinations)
    }

    /// Immediate data.
    pub fn immediate(&self) -> &'a [u8] {
        self.immediate
    }

    /// Software tail; [`WireError::Reserved`] if its padding is not zero.
    pub fn tail(&self) -> Result<Tail, WireError> {
        Tail::from_padded(&self.tail, self.tail_bytes)
    }

    fn check_zero_bits(&self) -> Result<(), WireError> {
        field::R_47_41.must_be_zero(self.words[0])?;
        field::R_23_22.must_be_zero(self.words[0])?;
        field::R_19.must_be_zero(self.words[0])?;
        field::R_7_6.must_be_zero(self.words[0])?;
        field::R_63_21.must_be_zero(self.words[1])?;
        field::R_15_12.must_be_zero(self.words[1])?;
        match self.immediate_padding.iter().find(|byte| **byte != 0) {
            Some(&byte) => {
                Err(WireError::Reserved { field: "immediate padding", value: byte.into() })
            }
            None => Ok(()),
        }
    }
}

/// The content of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorRepr<'a> {
    /// Receiver.
    pub destination: Endpoint,
    /// Which queue pair of the ringing function sends, 0..=3.
    pub queue_pair: u8,
    /// Traffic class of the packets, 0..=7.
    pub traffic_class: u8,
    /// QP Magic of the far queue pair (C-09).
    pub magic: u8,
    /// The receiver writes a completion event for a PUT; a NAP always gives one (C-14).
    pub wants_event: bool,
    /// Operation and data.
    pub work: Work<'a>,
    /// Opaque bytes of the upper software (C-10).
    pub tail: Tail,
}

/// An operation and its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work<'a> {
    /// NAP whose data is inside the descriptor (C-17).
    NapImmediate(&'a [u8]),
    /// NAP whose data is gathered from memory (C-18).
    NapIndirect(Entries<'a>),
    /// Write into far memory.
    Put(Chain<'a>),
    /// Read from far memory.
    Get {
        /// What to read and where to put it.
        chain: Chain<'a>,
        /// QP Magic of the own queue pair, for the PUT that comes back.
        return_magic: u8,
    },
}

impl<'a> Work<'a> {
    /// The primitive used.
    pub const fn primitive(&self) -> Primitive {
        match self {
            Self::NapImmediate(_) | Self::NapIndirect(_) => Primitive::Nap,
            Self::Put(_) => Primitive::Put,
            Self::Get { .. } => Primitive::Get,
        }
    }

    /// Bytes that the operation moves.
    ///
    /// # Errors
    /// [`WireError::PayloadTooLong`] for a NAP above 2048 bytes, [`WireError::AddressOutOfRange`],
    /// [`WireError::TransferTooLong`], [`WireError::UnequalSums`] for lists that cannot be served.
    pub fn total_bytes(&self) -> Result<u64, WireError> {
        let nap_bytes = match self {
            Self::NapImmediate(data) => data.len() as u64,
            Self::NapIndirect(sources) => sources.total_bytes()?,
            Self::Put(chain) | Self::Get { chain, .. } => return chain.total_bytes(),
        };
        if nap_bytes > MAX_NAP_BYTES as u64 {
            let limit = MAX_NAP_BYTES as u64;
            return Err(WireError::PayloadTooLong { length: nap_bytes, limit });
        }
        Ok(nap_bytes)
    }

    const EMPTY_LIST: Entries<'static> = Entries::from_bytes(&[]);

    fn sources(&self) -> Entries<'a> {
        match self {
            Self::NapImmediate(_) => Self::EMPTY_LIST,
            Self::NapIndirect(sources) => *sources,
            Self::Put(chain) | Self::Get { chain, .. } => chain.sources,
        }
    }

    fn destinations(&self) -> Entries<'a> {
        match self {
            Self::NapImmediate(_) | Self::NapIndirect(_) => Self::EMPTY_LIST,
            Self::Put(chain) | Self::Get { chain, .. } => chain.destinations,
        }
    }

    fn immediate(&self) -> &'a [u8] {
        match self {
            Self::NapImmediate(data) => data,
            _ => &[],
        }
    }

    fn return_magic(&self) -> u8 {
        match self {
            Self::Get { return_magic, .. } => *return_magic,
            _ => 0,
        }
    }
}

impl<'a> DescriptorRepr<'a> {
    /// Reads and validates a descriptor out of exactly its own bytes. The bytes must not change
    /// meanwhile: copy them out of memory that the program can write.
    ///
    /// # Errors
    /// Those of [`Descriptor::new`], [`WireError::Reserved`], [`WireError::UnknownCode`],
    /// [`WireError::UnexpectedPart`], those of [`Work::total_bytes`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, WireError> {
        let descriptor = Descriptor::new(bytes)?;
        descriptor.check_zero_bits()?;
        let word = descriptor.words[0];
        let return_magic = field::RETURN_MAGIC.of(word) as u8;
        let (sources, destinations) = (descriptor.sources(), descriptor.destinations());
        let immediate = descriptor.immediate();
        let work = match (descriptor.primitive()?, descriptor.is_immediate()) {
            (Primitive::Nap, true) => Work::NapImmediate(immediate),
            (Primitive::Nap, false) => Work::NapIndirect(sources),
            (Primitive::Put, _) => Work::Put(Chain { sources, destinations }),
            (Primitive::Get, _) => {
                Work::Get { chain: Chain { sources, destinations }, return_magic }
            }
        };
        // A part that the operation does not use must be absent. Otherwise two byte strings would
        // mean the same.
        let unexpected = [
            ("a source list", work.sources().is_empty() && !sources.is_empty()),
            ("a destination list", work.destinations().is_empty() && !destinations.is_empty()),
            ("immediate data", work.immediate().is_empty() && !immediate.is_empty()),
            ("a return QP Magic", work.return_magic() != return_magic),
            ("the immediate bit", work.primitive() != Primitive::Nap && descriptor.is_immediate()),
        ];
        if let Some((part, _)) = unexpected.into_iter().find(|(_, is_there)| *is_there) {
            return Err(WireError::UnexpectedPart { part });
        }
        work.total_bytes()?;
        Ok(Self {
            destination: descriptor.destination(),
            queue_pair: field::QUEUE_PAIR.of(word) as u8,
            traffic_class: field::TRAFFIC_CLASS.of(word) as u8,
            magic: field::MAGIC.of(word) as u8,
            wants_event: field::WANTS_EVENT.is_set(word),
            work,
            tail: descriptor.tail()?,
        })
    }

    /// Bytes that [`DescriptorRepr::emit`] writes, a multiple of 16. The doorbell announces this
    /// length.
    pub fn buffer_len(&self) -> usize {
        self.lengths().buffer_len()
    }

    /// Writes the descriptor into the first [`DescriptorRepr::buffer_len`] bytes of `buffer`.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] for queue pair or traffic class, [`WireError::TooManyEntries`],
    /// those of [`Work::total_bytes`], [`WireError::BufferTooSmall`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        self.work.total_bytes()?;
        let lengths = self.lengths();
        lengths.check()?;
        let is_immediate = matches!(self.work, Work::NapImmediate(_));
        let words = [
            field::DESTINATION_COUNT.place(lengths.destination_count as u64)?
                | field::SOURCE_COUNT.place(lengths.source_count as u64)?
                | field::DESTINATION.place(self.destination.to_bits().into())?
                | field::RETURN_MAGIC.place(self.work.return_magic().into())?
                | field::QUEUE_PAIR.place(self.queue_pair.into())?
                | field::TRAFFIC_CLASS.place(self.traffic_class.into())?
                | field::MAGIC.place(self.magic.into())?
                | field::WANTS_EVENT.place(self.wants_event.into())?
                | field::IS_IMMEDIATE.place(is_immediate.into())?
                | field::TYPE.place(self.work.primitive().code().into())?,
            field::TAIL_BYTES.place(lengths.tail_bytes as u64)?
                | field::IMMEDIATE_BYTES.place(lengths.immediate_bytes as u64)?,
        ];
        let (beats, _) = room(FORMAT, buffer, lengths.buffer_len())?.as_chunks_mut::<BEAT_BYTES>();
        let (header, beats) = beats.split_at_mut(1);
        let (sources, beats) = beats.split_at_mut(lengths.source_count);
        let (destinations, beats) = beats.split_at_mut(lengths.destination_count);
        let (immediate, tail) = beats.split_at_mut(lengths.immediate_bytes.div_ceil(BEAT_BYTES));
        header.as_flattened_mut()[..8].copy_from_slice(&words[0].to_le_bytes());
        header.as_flattened_mut()[8..].copy_from_slice(&words[1].to_le_bytes());
        for (beat, entry) in sources.iter_mut().zip(self.work.sources().iter()) {
            entry.emit(beat);
        }
        for (beat, entry) in destinations.iter_mut().zip(self.work.destinations().iter()) {
            entry.emit(beat);
        }
        let (data, padding) = immediate.as_flattened_mut().split_at_mut(lengths.immediate_bytes);
        data.copy_from_slice(self.work.immediate());
        padding.fill(0);
        tail.fill(*self.tail.padded());
        Ok(())
    }

    fn lengths(&self) -> Lengths {
        Lengths {
            source_count: self.work.sources().len(),
            destination_count: self.work.destinations().len(),
            immediate_bytes: self.work.immediate().len(),
            tail_bytes: self.tail.len(),
        }
    }
}

impl fmt::Display for DescriptorRepr<'_> {
    /// `PUT qp 1 > 3.0.1, 2 sources, 1 destination entries, magic 0x5a, tc 0, event, tail -`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} qp {} > {}", self.work.primitive(), self.queue_pair, self.destination)?;
        match self.work {
            Work::NapImmediate(data) => write!(f, ", {} B inside", data.len())?,
            Work::NapIndirect(sources) => write!(f, ", {} source entries", sources.len())?,
            Work::Put(chain) | Work::Get { chain, .. } => {
                let (sources, destinations) = (chain.sources.len(), chain.destinations.len());
                write!(f, ", {sources} source and {destinations} destination entries")?;
            }
        }
        write!(f, ", magic {:#04x}, tc {}", self.magic, self.traffic_class)?;
        if self.wants_event {
            f.write_str(", event")?;
        }
        write!(f, ", tail {}", self.tail)
    }
}

/// The lengths of the parts.
#[derive(Clone, Copy)]
struct Lengths {
    source_count: usize,
    destination_count: usize,
    immediate_bytes: usize,
    tail_bytes: usize,
}

impl Lengths {
    fn buffer_len(self) -> usize {
        DESCRIPTOR_HEADER_BYTES
            + (self.source_count + self.destination_count) * ENTRY_BYTES
            + self.immediate_bytes.next_multiple_of(BEAT_BYTES)
            + self.tail_bytes.next_multiple_of(BEAT_BYTES)
    }

    fn check(self) -> Result<(), WireError> {
        let count = self.source_count + self.destination_count;
        if count > MAX_ENTRIES {
            return Err(WireError::TooManyEntries { count, limit: MAX_ENTRIES });
        }
        if self.immediate_bytes > MAX_IMMEDIATE_BYTES {
            return Err(WireError::PayloadTooLong {
                length: self.immediate_bytes as u64,
                limit: MAX_IMMEDIATE_BYTES as u64,
            });
        }
        if self.tail_bytes > MAX_TAIL_BYTES {
            return Err(WireError::TailTooLong { length: self.tail_bytes, limit: MAX_TAIL_BYTES });
        }
        Ok(())
    }
}
