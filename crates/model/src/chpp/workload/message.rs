//! The messages between ranks: 16 bytes of software tail beside the data.
//!
//! ```text
//!   0      1           4     8        12       16
//!   | kind | from rank | tag | number | length |      little-endian
//! ```

use bellwire_wire::tail::Tail;

use crate::goal::Work;

/// A message, as its receiver sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// One of the four kinds below.
    pub kind: u8,
    /// Sending rank.
    pub from: u32,
    /// The program's tag; in an answer and in data, the number of the receive.
    pub tag: u32,
    /// Number of the message at its sender.
    pub number: u32,
    /// Its length.
    pub bytes: u32,
}

/// An eager message.
pub(super) const EAGER: u8 = 1;
/// The question of a rendezvous: where may the data go?
pub(super) const ASKS: u8 = 2;
/// The answer: its data is the address.
pub(super) const ANSWERS: u8 = 3;
/// The data of a rendezvous.
pub(super) const DATA: u8 = 4;

impl Message {
    /// Its encoding.
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

    /// Decodes a message; nothing if the tail is none.
    pub fn read(tail: &Tail) -> Option<Message> {
        let tail: &[u8; 16] = tail.as_bytes().try_into().ok()?;
        let word =
            |at: usize| u32::from_le_bytes([tail[at], tail[at + 1], tail[at + 2], tail[at + 3]]);
        let from = u32::from_le_bytes([tail[1], tail[2], tail[3], 0]);
        Some(Message { kind: tail[0], from, tag: word(4), number: word(8), bytes: word(12) })
    }
}

/// Whether a receive matches a message.
pub(super) fn matches(receive: Work, message: &Message) -> bool {
    let Work::Receive { from, tag, .. } = receive else { return false };
    from.is_none_or(|from| from == message.from) && tag.is_none_or(|tag| tag == message.tag)
}

/// The byte at a position of a rank's data; it differs between ranks.
pub(super) fn content(rank: usize, at: usize) -> u8 {
    (at.wrapping_add(rank.wrapping_mul(0x1_0001)).wrapping_mul(0x9e37_79b9) >> 13) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a rank's data differ from place to place, and from those of another rank.
    #[test]
    fn places_and_ranks_have_bytes_of_their_own() {
        let of = |rank| (0..1000).map(|at| content(rank, at)).collect::<Vec<u8>>();
        let (one, other) = (of(0), of(1));
        assert!((0..=u8::MAX).all(|byte| one.contains(&byte)));
        let equal = one.iter().zip(&other).filter(|(one, other)| one == other).count();
        assert!(equal < 20, "{equal}");
    }
}
