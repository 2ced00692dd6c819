//! The completion event, one record of a send- or receive-completion ring (C-13, C-14; cHPP
//! sections 3.3 and 4.2).
//!
//! 32 bytes, least significant byte first:
//!
//! ```text
//!   word 0, 1   software tail, padded with zeros
//!   word 2   63   57 56         48 47         40 39                                    0
//!           +-------+-------------+-------------+---------------------------------------+
//!           |   0   |    peer     | tail bytes  |                address                |
//!           +-------+-------------+-------------+---------------------------------------+
//!   word 3   63 62  58 57   56 55    48 47    44 43    40 39                            0
//!           +--+------+-------+--------+--------+--------+------------------------------+
//!           |P |  0   |  QP   | status |   0    |  type  |       length in bytes        |
//!           +--+------+-------+--------+--------+--------+------------------------------+
//! ```
//!
//! | field | send-completion ring | receive-completion ring |
//! |---|---|---|
//! | tail | that of the descriptor | that which the sender wrote, bit-exact (C-10) |
//! | peer | receiver named in the descriptor | sender named in the packet |
//! | address | the descriptor's | NAP: the slot's; PUT: where the packet's data begins |
//! | length | bytes sent; on an error, how far it came | bytes written |
//! | QP | the own queue pair | the own queue pair |
//! | type | [`Primitive`] of the descriptor | NAP or PUT |
//! | status | [`Status`] | [`Status`] |
//!
//! P is the phase bit. It flips each time the ring wraps (see [`phase`]). So the reader tells a new
//! record from last lap's without a counter shared with the writer. It is the top bit of the last
//! word. A PCIe write stores the words in ascending order, so that its last store makes the record
//! valid.
//!
//! The paper names the two rings and when an event is written; the record is ours.

use core::fmt;
use core::num::NonZeroU64;

use crate::bits::{Field, tiles};
use crate::endpoint::Endpoint;
use crate::error::{codes, first, room};
use crate::primitive::Primitive;
use crate::tail::{MAX_TAIL_BYTES, Tail};
use crate::{ADDRESS_BITS, WireError};

/// Size of an event.
pub const EVENT_BYTES: usize = 32;

const FORMAT: &str = "completion event";

mod field {
    use super::Field;

    pub const R_63_57: Field = Field::new("reserved bits 63:57 of event word 2", 63, 57);
    pub const PEER: Field = Field::new("peer", 56, 48);
    pub const TAIL_BYTES: Field = Field::new("tail bytes", 47, 40);
    pub const ADDRESS: Field = Field::new("event address", 39, 0);

    pub const PHASE: Field = Field::new("phase", 63, 63);
    pub const R_62_58: Field = Field::new("reserved bits 62:58 of event word 3", 62, 58);
    pub const QUEUE_PAIR: Field = Field::new("queue pair", 57, 56);
    pub const STATUS: Field = Field::new("status", 55, 48);
    pub const R_47_44: Field = Field::new("reserved bits 47:44 of event word 3", 47, 44);
    pub const TYPE: Field = Field::new("event type", 43, 40);
    pub const LENGTH: Field = Field::new("event length", 39, 0);
}

const _: () = {
    use field::*;
    assert!(tiles(&[R_63_57, PEER, TAIL_BYTES, ADDRESS], u64::BITS));
    assert!(tiles(&[PHASE, R_62_58, QUEUE_PAIR, STATUS, R_47_44, TYPE, LENGTH], u64::BITS));
    assert!(EVENT_BYTES == MAX_TAIL_BYTES + 2 * size_of::<u64>());
    assert!(PEER.limit() == (1 << Endpoint::BITS) - 1);
    assert!(ADDRESS.limit() == (1 << ADDRESS_BITS) - 1);
    assert!(LENGTH.limit() == crate::entry::MAX_TRANSFER_BYTES);
};

/// Phase bit of the record at `position`, counted from the first record ever written, in a ring of
/// `ring_entries` records: 1 on the first lap, over memory that was zero, then 0, 1, ...
pub const fn phase(position: u64, ring_entries: NonZeroU64) -> bool {
    (position / ring_entries.get()).is_multiple_of(2)
}

codes! {
    /// How an operation ended.
    Status, "event status";

    /// All bytes are where they should be.
    Success = 0,
    /// The descriptor was refused before anything moved. If not even its type could be read, type
    /// and peer of the event mean nothing; the address identifies the descriptor.
    BadDescriptor = 1,
    /// Source and destination lengths differ; nothing moved (C-29).
    UnequalSums = 2,
    /// Source memory could not be read.
    SourceFault = 3,
    /// Destination memory could not be written.
    DestinationFault = 4,
    /// The receiver does not exist or is gone.
    Unreachable = 5,
    /// The queue pair was closed before the operation began.
    Flushed = 6,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Success => "success",
            Self::BadDescriptor => "bad descriptor",
            Self::UnequalSums => "unequal sums",
            Self::SourceFault => "source fault",
            Self::DestinationFault => "destination fault",
            Self::Unreachable => "unreachable",
            Self::Flushed => "flushed",
        })
    }
}

/// View of a record, which may be last lap's or unwritten.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    bytes: &'a [u8; EVENT_BYTES],
}

impl<'a> Event<'a> {
    /// Looks at the first 32 bytes; [`WireError::Truncated`] if there are fewer.
    pub fn new(bytes: &'a [u8]) -> Result<Self, WireError> {
        first(FORMAT, bytes).map(|bytes| Self { bytes })
    }

    /// Phase bit; the record is new if it equals [`phase`] of the reader's position.
    pub fn phase(&self) -> bool {
        field::PHASE.is_set(self.word(3))
    }

    fn word(&self, index: usize) -> u64 {
        let (words, _) = self.bytes.as_chunks();
        u64::from_le_bytes(words[index])
    }

    fn tail(&self) -> Result<Tail, WireError> {
        let (tails, _) = self.bytes.as_chunks();
        Tail::from_padded(&tails[0], field::TAIL_BYTES.of(self.word(2)) as usize)
    }
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EventRepr {
    /// Phase bit, see [`phase`].
    pub phase: bool,
    /// The operation.
    pub primitive: Primitive,
    /// How it ended.
    pub status: Status,
    /// The own queue pair, 0..=3.
    pub queue_pair: u8,
    /// The endpoint at the other side of the operation.
    pub peer: Endpoint,
    /// Descriptor, slot or target, see the table above; below 2^40.
    pub address: u64,
    /// Bytes moved, below 2^40.
    pub length: u64,
    /// Software tail, which may be a 64-bit immediate value.
    pub tail: Tail,
}

impl EventRepr {
    /// Reads and validates a record. Check [`Event::phase`] first: a record that is not new may
    /// hold anything.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::Reserved`], [`WireError::UnknownCode`],
    /// [`WireError::TailTooLong`].
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let event = Event::new(bytes)?;
        let (about, control) = (event.word(2), event.word(3));
        field::R_63_57.must_be_zero(about)?;
        field::R_62_58.must_be_zero(control)?;
        field::R_47_44.must_be_zero(control)?;
        Ok(Self {
            phase: event.phase(),
            primitive: Primitive::from_code(field::TYPE.of(control) as u8)?,
            status: Status::from_code(field::STATUS.of(control) as u8)?,
            queue_pair: field::QUEUE_PAIR.of(control) as u8,
            peer: Endpoint::from_low_bits(field::PEER.of(about)),
            address: field::ADDRESS.of(about),
            length: field::LENGTH.of(control),
            tail: event.tail()?,
        })
    }

    /// Bytes that [`EventRepr::emit`] writes.
    pub const fn buffer_len(&self) -> usize {
        EVENT_BYTES
    }

    /// Writes the record into the first 32 bytes of `buffer`. For a ring that is read meanwhile,
    /// emit into a buffer of your own and store its words in ascending order, the last with
    /// release.
    ///
    /// # Errors
    /// [`WireError::OutOfRange`] for queue pair, address or length, [`WireError::BufferTooSmall`].
    pub fn emit(&self, buffer: &mut [u8]) -> Result<(), WireError> {
        let about = field::PEER.place(self.peer.to_bits().into())?
            | field::TAIL_BYTES.place(self.tail.len() as u64)?
            | field::ADDRESS.place(self.address)?;
        let control = field::PHASE.place(self.phase.into())?
            | field::QUEUE_PAIR.place(self.queue_pair.into())?
            | field::STATUS.place(self.status.code().into())?
            | field::TYPE.place(self.primitive.code().into())?
            | field::LENGTH.place(self.length)?;
        let (tail, words) = room(FORMAT, buffer, EVENT_BYTES)?.split_at_mut(MAX_TAIL_BYTES);
        tail.copy_from_slice(self.tail.padded());
        words[..8].copy_from_slice(&about.to_le_bytes());
        words[8..].copy_from_slice(&control.to_le_bytes());
        Ok(())
    }
}

impl fmt::Display for EventRepr {
    /// `PUT success, 4096 B at 0x1000, qp 1 with 3.0.1, tail -, phase 1`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}, {} B at {:#x}, qp {} with {}, tail {}, phase {}",
            self.primitive,
            self.status,
            self.length,
            self.address,
            self.queue_pair,
            self.peer,
            self.tail,
            u8::from(self.phase)
        )
    }
}
