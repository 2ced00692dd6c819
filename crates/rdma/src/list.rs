//! Several short messages in one packet. They share a head, a line of the lane and an
//! acknowledgement.

use crate::head::flag;
use bellwire_ring::canary::planted;
use bellwire_ring::memory::View;

/// Longest message of a list in bytes. A longer one gains little.
pub(crate) const MESSAGE_BYTES: usize = 256;
/// Most bytes of all records: the first message does not wait long for the last.
pub(crate) const LIST_BYTES: usize = 1024;
/// Bytes before a message, and what its end is filled up to.
const START_BYTES: usize = 4;
const WORD_BYTES: usize = 4;

/// A message of a list, little-endian:
///
/// ```text
///  0        2       3      4
///  length | flags | zero | word, if the flags have IMMEDIATE | message, filled up to 4 bytes
/// ```
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record<'a> {
    /// [`flag::SOLICITED`], [`flag::IMMEDIATE`].
    pub(crate) flags: u8,
    /// The immediate value.
    pub(crate) word: u32,
    pub(crate) body: View<'a>,
}

impl Record<'_> {
    const FLAGS: u8 = flag::SOLICITED | flag::IMMEDIATE;

    /// Writes the record at `at`. Returns its end; `None`: there is no room.
    #[inline(always)]
    pub(crate) fn emit(&self, list: &mut [u8], at: usize) -> Option<usize> {
        let length = self.body.len();
        let has_word = self.flags & flag::IMMEDIATE != 0;
        let start = START_BYTES + if has_word { WORD_BYTES } else { 0 };
        let end = (at + start + length).next_multiple_of(START_BYTES);
        let record = list.get_mut(at..end)?;
        // Zeroes the end before the message covers the rest: it could hold another peer's bytes.
        *record.last_chunk_mut()? = [0; START_BYTES];
        let first = length as u32 | u32::from(self.flags) << 16;
        record[..START_BYTES].copy_from_slice(&first.to_le_bytes());
        if has_word {
            record[START_BYTES..start].copy_from_slice(&self.word.to_le_bytes());
        }
        self.body.read(0, &mut record[start..start + length]);
        Some(end)
    }

    /// The record at `at`, and its end. `None`: there is none, or it is cut.
    #[inline(always)]
    fn parse(list: View<'_>, at: usize) -> Option<(Record<'_>, usize)> {
        let word = |at: usize| {
            let mut word = [0; 4];
            list.part(at, 4)?.read(0, &mut word);
            Some(u32::from_le_bytes(word))
        };
        let first = word(at)?;
        let (length, flags) = (first as u16 as usize, (first >> 16) as u8 & Record::FLAGS);
        let (mut start, mut value) = (at + START_BYTES, 0);
        if flags & flag::IMMEDIATE != 0 {
            value = word(start)?;
            start += WORD_BYTES;
        }
        let body = list.part(start, length);
        // The planted fault takes what is there of a record that is cut.
        let rest = || list.part(start, list.len().saturating_sub(start));
        let body = body.or_else(|| if planted("record-cut") { rest() } else { None })?;
        Some((Record { flags, word: value, body }, (start + length).next_multiple_of(START_BYTES)))
    }
}

/// The messages of a list; they end where a record is cut.
#[inline(always)]
pub(crate) fn records(list: View<'_>) -> impl Iterator<Item = Record<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (record, end) = Record::parse(list, at)?;
        at = end;
        Some(record)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records come back in order; a list that is cut gives those that are whole.
    #[test]
    fn records_survive_their_bytes() {
        let bodies: [&[u8]; 5] = [b"", b"a", b"four", b"seven b", &[7; MESSAGE_BYTES]];
        let flags = [0, flag::IMMEDIATE, flag::SOLICITED, Record::FLAGS, 0];
        let mut list = [0xee; 512];
        let (mut end, mut ends) = (0, Vec::new());
        for (body, flags) in bodies.into_iter().zip(flags) {
            let record = Record { flags, word: 0x0102_0304, body: View::of(body) };
            end = record.emit(&mut list, end).expect("there is room");
            ends.push(end);
        }
        let record = Record { flags: 0, word: 0, body: View::of(&[1; MESSAGE_BYTES]) };
        assert_eq!(record.emit(&mut list, end), None);
        for cut in 0..=end {
            let found: Vec<_> = records(View::of(&list[..cut])).collect();
            for (place, record) in found.iter().enumerate() {
                assert_eq!(record.body.to_vec(), bodies[place]);
                assert_eq!(record.flags, flags[place]);
                let word = if flags[place] & flag::IMMEDIATE != 0 { 0x0102_0304 } else { 0 };
                assert_eq!(record.word, word);
            }
            // The last bytes only fill up.
            let whole = ends.iter().filter(|&&end| end <= cut).count();
            assert!(found.len() == whole || found.len() == whole + 1, "cut at {cut}");
        }
        assert_eq!(records(View::of(&list[..end])).count(), bodies.len());
    }
}
