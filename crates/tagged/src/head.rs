//! What stands before the bytes of each message between endpoints.
//!
//! ```text
//!   bit  0       8       16              32                              64
//!        | kind  | flags |  incarnation  |  credit: units consumed so far |
//! ```
//! The message's tag is the immediate value beside it (0 if it has none), and after the head come words as the kind and flags say, little-endian:
//!
//! | kind | words |
//! |---|---|
//! | `Eager` | data, if `DATA`; number of the operation, if `ACKNOWLEDGE`; length of the whole, if `PIECES`; then the bytes |
//! | `Piece` | place of the first byte in the message; then the bytes |
//! | `Offer` | data, if `DATA`; number of the operation; length; keys of the parts, three words each |
//! | `Finished` | number of the operation; 0 if it went well |
//! | `Credit`, `Ask` | none |
//! | `Resolve` | number of the access; the key that the owner's program chose |
//! | `Written` | number of the access; the key; data, which counts only if `DATA`; length |
//! | `Atomic` | number of the access; key, offset and form (`atomic.rs`); then the operands, then what is compared |
//! | `Connect`, `Accept`, `Reject` | number of the request; then the program's words |
//! | `Disconnect` | none |
//! | `Answer` | number of the access; 0 or why not (`control.rs`); then the key of the region (`Resolve`), or what was in memory before (`Atomic`) |

use bellwire::RemoteKey;

/// What a message between endpoints is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// A whole message of a program.
    Eager = 1,
    /// A message of a program that waits at its sender.
    Offer = 2,
    /// The receiver is done with an operation.
    Finished = 3,
    /// Nothing but the head.
    Credit = 4,
    /// Asks for `Credit`, to know that somebody is there, and who.
    Ask = 5,
    /// Asks for the key of memory that its owner's program calls by a number.
    Resolve = 6,
    /// Bytes were written to the reader's memory, or read there, of which it is to be told.
    Written = 7,
    /// Numbers in the reader's memory are to be changed.
    Atomic = 8,
    /// What came of one of the three above.
    Answer = 9,
    /// Asks whoever listens for a connection.
    Connect = 10,
    /// Grants it.
    Accept = 11,
    /// Turns it down.
    Reject = 12,
    /// Ends it.
    Disconnect = 13,
    /// More of the message that the sender began last.
    Piece = 14,
}

/// It is for receives with tags.
pub(crate) const TAGGED: u8 = 1;
/// A word of data is there.
pub(crate) const DATA: u8 = 2;
/// The sender wants to know when it has been received.
pub(crate) const ACKNOWLEDGE: u8 = 4;
/// These are the first bytes of a message; `Piece`s bring the others.
pub(crate) const PIECES: u8 = 32;
/// The end of the message in pieces that was begun last is still to be sent: if it is not all there without this, it was lost.
pub(crate) const UNFINISHED: u8 = 64;

/// In `Answer`: the owner wants to know of every access to its memory.
pub(crate) const WATCHES: u8 = 8;
/// In `Written`: it was read, and not written.
pub(crate) const READ: u8 = 16;

/// The first word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Head {
    pub(crate) kind: Kind,
    pub(crate) flags: u8,
    /// Drawn when the endpoint was opened: another one is another endpoint.
    pub(crate) incarnation: u16,
    /// Units of the reader's messages that the writer has consumed since they met, modulo 2^32.
    pub(crate) credit: u32,
}

impl Head {
    pub(crate) const BYTES: usize = 8;

    /// Whether a message in pieces that was begun before may still be coming.
    pub(crate) fn leaves_unfinished(self) -> bool {
        self.kind == Kind::Piece || self.flags & (UNFINISHED | PIECES) == UNFINISHED
    }

    #[inline]
    pub(crate) fn to_word(self) -> u64 {
        let low = u64::from(self.kind as u8) | u64::from(self.flags) << 8;
        low | u64::from(self.incarnation) << 16 | u64::from(self.credit) << 32
    }

    /// `None`: no kind that is known here.
    #[inline]
    pub(crate) fn from_word(word: u64) -> Option<Head> {
        let kind = match word as u8 {
            1 => Kind::Eager,
            2 => Kind::Offer,
            3 => Kind::Finished,
            4 => Kind::Credit,
            5 => Kind::Ask,
            6 => Kind::Resolve,
            7 => Kind::Written,
            8 => Kind::Atomic,
            9 => Kind::Answer,
            10 => Kind::Connect,
            11 => Kind::Accept,
            12 => Kind::Reject,
            13 => Kind::Disconnect,
            14 => Kind::Piece,
            _ => return None,
        };
        let (incarnation, credit) = ((word >> 16) as u16, (word >> 32) as u32);
        Some(Head { kind, flags: (word >> 8) as u8, incarnation, credit })
    }
}

/// Most that stands before the bytes of an eager message, or of its first piece.
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
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }
}

/// Takes words off the front; everything that comes from a peer is checked.
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

    /// What is written is read back, and what is none is refused.
    #[test]
    fn heads_survive() {
        use Kind::*;
        let messages = [Eager, Offer, Finished, Credit, Ask, Resolve, Written, Atomic, Answer];
        for kind in messages.into_iter().chain([Connect, Accept, Reject, Disconnect, Piece]) {
            let head = Head { kind, flags: 0x83, incarnation: 0xabcd, credit: 0x8765_4321 };
            assert_eq!(Head::from_word(head.to_word()), Some(head));
        }
        assert_eq!((Head::from_word(0), Head::from_word(15)), (None, None));
        assert_eq!(Reader(&[0; 7]).word(), None);
        assert_eq!(Reader(&[1; 23]).key(), None);
    }
}
