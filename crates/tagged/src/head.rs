//! The head of each message between endpoints.
//!
//! ```text
//!   bit  0       8       16              32                              64
//!        | kind  | flags |  incarnation  |  credit: units consumed so far |
//! ```
//! The message's tag is the immediate value beside it (0 if it has none). Little-endian words
//! follow the head, as kind and flags say:
//!
//! | kind | words |
//! |---|---|
//! | `Eager` | `DATA`: data; `ACKNOWLEDGE`: operation; `SEGMENTED`: whole length; then the bytes |
//! | `Segment` | offset of the first byte in the message; then the bytes |
//! | `Offer` | `DATA`: data; operation; length; keys of the spans, three words each |
//! | `Finished` | number of the operation; 0 if it succeeded |
//! | `Credit`, `Probe` | none |
//! | `Resolve` | number of the access; the key that the owner's program chose |
//! | `Accessed` | number of the access; the key; data, which counts only if `DATA`; length |
//! | `Atomic` | number of the access; key, offset, request (`atomic.rs`); operands; comparands |
//! | `Connect`, `Accept`, `Reject` | number of the request; then private data |
//! | `Disconnect` | none |
//! | `Reply` | number of the access; 0 or an error (`control.rs`); then the result |
//!
//! The result in a `Reply` is the key of the region (`Resolve`), or the previous values
//! (`Atomic`).

use crate::atomic::numbered;
use bellwire::RemoteKey;

numbered! {
    /// The kind of a message between endpoints.
    pub(crate) Kind {
        /// A message of a program: whole, or its first segment.
        Eager = 1,
        /// A message of a program that waits at its sender.
        Offer = 2,
        /// The receiver is done with an operation.
        Finished = 3,
        /// Only the head.
        Credit = 4,
        /// Asks for `Credit`, to learn whether an endpoint is there, and which.
        Probe = 5,
        /// Asks for the region of a key that the owner's program chose.
        Resolve = 6,
        /// Reports that the sender has written to the receiver's memory, or read it.
        Accessed = 7,
        /// Requests a change of numbers in the receiver's memory.
        Atomic = 8,
        /// The result of one of the three above.
        Reply = 9,
        /// Asks a listening endpoint for a connection.
        Connect = 10,
        /// Accepts the request.
        Accept = 11,
        /// Rejects the request.
        Reject = 12,
        /// Ends the connection.
        Disconnect = 13,
        /// The next segment of the message that the sender began last.
        Segment = 14,
    }
}

/// The message is for receives with tags.
pub(crate) const TAGGED: u8 = 1;
/// A data word follows.
pub(crate) const DATA: u8 = 2;
/// The sender wants to know when the message has been received.
pub(crate) const ACKNOWLEDGE: u8 = 4;
/// These are the first bytes of a message; each `Segment` brings more.
pub(crate) const SEGMENTED: u8 = 32;
/// The sender still has segments of the message that it began last. If segments are missing and a
/// head lacks this flag, they were lost.
pub(crate) const UNFINISHED: u8 = 64;

/// In `Reply`: the owner wants a report of every access to its memory.
pub(crate) const MONITORED: u8 = 8;
/// In `Accessed`: the memory was read, and not written.
pub(crate) const READ: u8 = 16;

/// The first word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    /// Drawn at random when the endpoint was opened: another value means another endpoint.
    pub(crate) incarnation: u16,
    /// Units of the receiver's messages that the sender has consumed since they met, modulo 2^32.
    pub(crate) credit: u32,
}

impl Head {
    pub(crate) const BYTES: usize = 8;

    /// Whether segments of an earlier message may still come.
    pub(crate) fn leaves_unfinished(self) -> bool {
        self.kind == Kind::Segment || self.flags & (UNFINISHED | SEGMENTED) == UNFINISHED
    }

    #[inline]
    pub(crate) fn to_word(self) -> u64 {
        let low = u64::from(self.kind as u8) | u64::from(self.flags) << 8;
        low | u64::from(self.incarnation) << 16 | u64::from(self.credit) << 32
    }

    /// Whether the word is the head of a whole eager message without other words.
    #[inline(always)]
    pub(crate) fn is_plain(word: u64) -> bool {
        word as u16 & !(u16::from(TAGGED) << 8) == Kind::Eager as u16
    }

    /// Whether the message is for receives with tags.
    #[inline(always)]
    pub(crate) fn is_tagged(word: u64) -> bool {
        (word >> 8) as u8 & TAGGED != 0
    }

    /// The incarnation in a word.
    #[inline(always)]
    pub(crate) fn incarnation_of(word: u64) -> u16 {
        (word >> 16) as u16
    }

    /// The credit in a word.
    #[inline(always)]
    pub(crate) fn credit_of(word: u64) -> u32 {
        (word >> 32) as u32
    }

    /// `None`: the kind is unknown.
    #[inline]
    pub(crate) fn from_word(word: u64) -> Option<Head> {
        let kind = Kind::from_number(word as u8)?;
        let (incarnation, credit) = (Head::incarnation_of(word), Head::credit_of(word));
        Some(Head { kind, flags: (word >> 8) as u8, incarnation, credit })
    }
}

/// Maximum number of bytes before those of an eager message, or of its first segment.
pub(crate) const EAGER_HEAD_BYTES: usize = Head::BYTES + 24;

/// Writes words one after the other.
pub(crate) struct Writer<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) at: usize,
}

impl Writer<'_> {
    #[inline]
    pub(crate) fn word(&mut self, word: u64) {
        self.bytes[self.at..self.at + 8].copy_from_slice(&word.to_le_bytes());
        self.at += 8;
    }

    pub(crate) fn key(&mut self, key: RemoteKey) {
        self.put(&key.to_bytes());
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.next(bytes.len()).copy_from_slice(bytes);
    }

    /// The next `length` bytes, for the caller to fill.
    pub(crate) fn next(&mut self, length: usize) -> &mut [u8] {
        let start = self.at;
        self.at += length;
        &mut self.bytes[start..self.at]
    }
}

/// Takes words off the front. Peers' bytes are untrusted, so each step is checked.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) fn word(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*word))
    }

    pub(crate) fn key(&mut self) -> Option<RemoteKey> {
        let (key, rest) = self.0.split_first_chunk::<{ RemoteKey::BYTES }>()?;
        self.0 = rest;
        RemoteKey::from_bytes(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A written head is read back, and an invalid one is refused.
    #[test]
    fn heads_survive() {
        for &kind in Kind::ALL {
            let head = Head { kind, flags: 0x83, incarnation: 0xabcd, credit: 0x8765_4321 };
            assert_eq!(Head::from_word(head.to_word()), Some(head));
            for flags in 0..=u8::MAX {
                let word = Head { flags, ..head }.to_word();
                assert_eq!(Head::is_plain(word), kind == Kind::Eager && flags & !TAGGED == 0);
                assert_eq!(Head::is_tagged(word), flags & TAGGED != 0);
            }
        }
        // Segments may follow a segment, and a head that says so and begins no other message.
        let leaves =
            |kind, flags| Head { kind, flags, incarnation: 0, credit: 0 }.leaves_unfinished();
        assert!(leaves(Kind::Segment, 0) && leaves(Kind::Credit, UNFINISHED | DATA));
        assert!(!leaves(Kind::Eager, 0) && !leaves(Kind::Eager, SEGMENTED));
        assert!(!leaves(Kind::Eager, SEGMENTED | UNFINISHED) && !leaves(Kind::Credit, DATA));
        assert_eq!((Head::from_word(0), Head::from_word(15)), (None, None));
        assert_eq!(Reader(&[0; 7]).word(), None);
        assert_eq!(Reader(&[1; 23]).key(), None);
    }
}
