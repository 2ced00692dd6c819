//! The header of every packet between two engines: four 64-bit words. The first belongs to the
//! device.
//!
//! ```text
//!        0        1        2        3        4        5        6        7
//!   +--------+--------+--------+--------+--------+--------+--------+--------+
//!   |              the device's own (shm: the slot's validity tag)          |  word 0
//!   +--------+--------+--------+--------+--------+--------+--------+--------+
//!   |  kind  | flags  |      aux        |         payload bytes             |  word 1
//!   +--------+--------+--------+--------+--------+--------+--------+--------+
//!   |     destination queue pair        |       source queue pair           |  word 2
//!   +--------+--------+--------+--------+--------+--------+--------+--------+
//!   |        argument: immediate value, or operation number                 |  word 3
//!   +--------+--------+--------+--------+--------+--------+--------+--------+
//! ```
//! All little-endian. The payload follows; up to 32 bytes of it share the header's cache line.

/// Bytes of the header, the device's word included.
pub const PACKET_HEADER_BYTES: usize = 32;

/// The kind of a packet. One engine module handles each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A whole message (NAP); argument: immediate.
    Send = 1,
    /// A long message is ready at the sender (rendezvous); payload: operation, length and key;
    /// argument: immediate.
    Offer = 2,
    /// The receiver is ready for a staged transfer; argument: operation.
    Grant = 3,
    /// A piece of a staged transfer; argument: operation.
    Data = 4,
    /// A peer has finished an operation; argument: operation; `aux`: status; payload: length and
    /// value.
    Done = 5,
    /// A piece of a put to memory that only its owner can reach; payload: place, then bytes.
    Put = 6,
    /// A get from memory that only its owner can reach; payload: place.
    Get = 7,
    /// An atomic on memory that only its owner can reach; payload: place and operands.
    Atomic = 8,
    /// Requests an event at the target of a put that was carried out directly (S-Flag); argument:
    /// immediate; payload: length.
    Event = 9,
    /// Connection request; payload: private data.
    Connect = 10,
    /// Connection accepted; payload: private data.
    Accept = 11,
    /// Connection refused; payload: private data.
    Reject = 12,
    /// The connection ends.
    Disconnect = 13,
    /// Several short messages for one queue pair; payload: one record for each. Only on links that
    /// [carry batches](crate::Transport::carries_batches).
    Batch = 14,
}

impl Kind {
    /// The kind with this number.
    #[inline]
    #[must_use]
    pub fn from_number(number: u8) -> Option<Kind> {
        use Kind::*;
        /// In the order of their numbers, from 1.
        const KINDS: [Kind; 14] = [
            Send, Offer, Grant, Data, Done, Put, Get, Atomic, Event, Connect, Accept, Reject,
            Disconnect, Batch,
        ];
        KINDS.get(usize::from(number).wrapping_sub(1)).copied()
    }
}

bitflags::bitflags! {
    /// Flags of a packet.
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    pub struct PacketFlags: u8 {
        /// The argument is an immediate value for the receiver's completion.
        const IMMEDIATE = 1;
        /// The last piece of its operation.
        const LAST = 2;
        /// Raise an event at the target when this is in memory (S-Flag).
        const EVENT = 4;
    }
}

/// A parsed header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketHeader {
    /// The kind. May be unknown here, from a newer peer.
    pub kind: u8,
    /// Flags.
    pub flags: PacketFlags,
    /// Meaning depends on the kind.
    pub aux: u16,
    /// Payload bytes.
    pub length: u32,
    /// The destination queue pair; staged data: low half of the offset.
    pub destination: u32,
    /// The sending queue pair; staged data: high half of the offset.
    pub source: u32,
    /// Immediate value or operation number.
    pub argument: u64,
}

impl PacketHeader {
    /// A header without flags.
    #[inline]
    pub fn new(kind: Kind, destination: u32, source: u32, argument: u64) -> Self {
        PacketHeader {
            kind: kind as u8,
            flags: PacketFlags::empty(),
            aux: 0,
            length: 0,
            destination,
            source,
            argument,
        }
    }

    /// The header of a packet that carries an immediate value, if there is one.
    #[must_use]
    #[inline(always)]
    pub fn with_immediate(kind: Kind, destination: u32, source: u32, value: Option<u64>) -> Self {
        let mut header = Self::new(kind, destination, source, value.unwrap_or_default());
        header.flags.set(PacketFlags::IMMEDIATE, value.is_some());
        header
    }

    /// The immediate value that it carries.
    #[must_use]
    #[inline(always)]
    pub fn immediate(&self) -> Option<u64> {
        self.flags.contains(PacketFlags::IMMEDIATE).then_some(self.argument)
    }

    /// The header of staged data that belongs at `offset`.
    #[must_use]
    #[inline]
    pub fn data(offset: u64, argument: u64) -> Self {
        Self::new(Kind::Data, offset as u32, (offset >> 32) as u32, argument)
    }

    /// Where staged data belongs.
    #[must_use]
    #[inline]
    pub fn offset(&self) -> u64 {
        u64::from(self.destination) | u64::from(self.source) << 32
    }

    /// Whether it answers a request: its receiver can take it without sending a packet. A link with
    /// two channels carries answers in the second one, so they pass blocked requests (C-26, C-27).
    /// An acceptance is no answer: messages on its connection must not overtake it.
    #[inline]
    #[must_use]
    pub fn is_answer(&self) -> bool {
        const GRANT: u8 = Kind::Grant as u8;
        const DATA: u8 = Kind::Data as u8;
        const DONE: u8 = Kind::Done as u8;
        matches!(self.kind, GRANT | DATA | DONE)
    }

    /// Words 1 to 3.
    #[inline(always)]
    #[must_use]
    pub fn to_words(self) -> [u64; 3] {
        [
            self.kind as u64
                | (self.flags.bits() as u64) << 8
                | (self.aux as u64) << 16
                | (self.length as u64) << 32,
            self.destination as u64 | (self.source as u64) << 32,
            self.argument,
        ]
    }

    /// The inverse of [`PacketHeader::to_words`]. Unknown flags are dropped.
    #[inline(always)]
    pub fn from_words(words: [u64; 3]) -> Self {
        PacketHeader {
            kind: words[0] as u8,
            flags: PacketFlags::from_bits_truncate((words[0] >> 8) as u8),
            aux: (words[0] >> 16) as u16,
            length: (words[0] >> 32) as u32,
            destination: words[1] as u32,
            source: (words[1] >> 32) as u32,
            argument: words[2],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_their_words() {
        let header = PacketHeader {
            kind: Kind::Done as u8,
            flags: PacketFlags::all(),
            aux: 0xabcd,
            length: u32::MAX,
            destination: 0x8000_0001,
            source: 7,
            argument: u64::MAX - 1,
        };
        assert_eq!(PacketHeader::from_words(header.to_words()), header);
        for number in 0..=255u8 {
            if let Some(kind) = Kind::from_number(number) {
                assert_eq!(kind as u8, number);
            }
        }
    }
}
