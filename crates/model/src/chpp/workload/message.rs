//! What ranks say to each other: 16 bytes of software tail beside the data.
//!
//! ```text
//!   0      1           4     8        12       16
//!   | kind | from rank | tag | number | length |      little-endian
//! ```

use bellwire_wire::tail::Tail;

use crate::goal::Work;

/// A message as its receiver knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// One of the four below.
    pub kind: u8,
    /// Rank that sends.
    pub from: u32,
    /// The program's tag; of an answer and of data, the receive that it is for.
    pub tag: u32,
    /// Number of the message among those that its sender began.
    pub number: u32,
    /// Its length.
    pub bytes: u32,
}

/// The message itself.
pub(super) const EAGER: u8 = 1;
/// There is a message; where may it go?
pub(super) const ASKS: u8 = 2;
/// There: the address is the data.
pub(super) const ANSWERS: u8 = 3;
/// The data of a message that asked.
pub(super) const DATA: u8 = 4;

impl Message {
    /// As it travels.
    pub fn tail(self) -> Tail {
        let Message { kind, from, tag, number, bytes } = self;
        let mut tail = [0; 16];
        tail[0] = kind;
        tail[1..4].copy_from_slice(&from.to_le_bytes()[..3]);
        tail[4..8].copy_from_slice(&tag.to_le_bytes());
        tail[8..12].copy_from_slice(&number.to_le_bytes());
        tail[12..].copy_from_slice(&bytes.to_le_bytes());
        Tail::new(&tail).unwrap_or(Tail::EMPTY)
    }

    /// Reads it; nothing if this is no message.
    pub fn read(tail: &Tail) -> Option<Message> {
        let tail: &[u8; 16] = tail.as_bytes().try_into().ok()?;
        let word =
            |at: usize| u32::from_le_bytes([tail[at], tail[at + 1], tail[at + 2], tail[at + 3]]);
        let from = u32::from_le_bytes([tail[1], tail[2], tail[3], 0]);
        Some(Message { kind: tail[0], from, tag: word(4), number: word(8), bytes: word(12) })
    }
}

/// Whether a receive takes a message.
pub(super) fn matches(receive: Work, message: &Message) -> bool {
    let Work::Receive { from, tag, .. } = receive else { return false };
    from.is_none_or(|from| from == message.from) && tag.is_none_or(|tag| tag == message.tag)
}

/// The byte at a place of what a rank sends: another for each rank.
pub(super) fn content(rank: usize, at: usize) -> u8 {
    (at.wrapping_add(rank.wrapping_mul(0x1_0001)).wrapping_mul(0x9e37_79b9) >> 13) as u8
}
