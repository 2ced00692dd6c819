//! `slot_read`: reads addresses of free NAP slots for `slot_cache` (C-19, C-20, C-36; cHPP sections
//! 4.2 and 5.1), as `hardware/slot_read` builds it.
//!
//! One read is under way at a time. Its beats are stored as they come. When it is whole, its
//! entries go to the cache one by one. A read that fails, or whose tag is lost, is told in their
//! place.

use bellwire_wire::ADDRESS_BITS;

use super::data_reorder::{BEAT_WORDS, LANES, SIZE_BITS};
use super::slot_cache::{BATCH_BITS, PAIR_BITS};

const ADDRESS_WIDTH: usize = ADDRESS_BITS as usize;
/// Bytes of an entry.
const ENTRY_BYTES: usize = LANES / BEAT_WORDS;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The cache offers a read.
        read_valid: bool = 1,
        /// The queue pair it is for.
        read_pair: u8 = PAIR_BITS,
        /// Global address of its first entry, a multiple of 8.
        read_address: u64 = ADDRESS_WIDTH,
        /// Its entries, at least one.
        read_count: u8 = BATCH_BITS,
        /// The read that is asked for is taken, if one is.
        ask_ready: bool = 1,
        /// A beat of a completion for this block comes.
        in_valid: bool = 1,
        /// It is the last of this completion.
        in_last: bool = 1,
        /// The read has failed, and no more completions come; counts with the first beat, as all
        /// up to `in_remaining`.
        in_failed: bool = 1,
        /// Bytes of this completion.
        in_bytes: u16 = SIZE_BITS,
        /// Bytes that the read lacks, with those of this completion: PCIe's byte count.
        in_remaining: u16 = SIZE_BITS,
        /// The beat.
        in_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// The tag of the read is lost: its completions did not come in time.
        lost_valid: bool = 1,
        /// The cache takes an entry, if one is offered.
        entry_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The read is taken.
        read_ready: bool = 1,
        /// A read is asked for.
        ask_valid: bool = 1,
        /// Its queue pair; zero if none is.
        ask_pair: u8 = PAIR_BITS,
        /// Global address of its first byte; zero if none is.
        ask_address: u64 = ADDRESS_WIDTH,
        /// Its bytes; zero if none is.
        ask_bytes: u16 = SIZE_BITS,
        /// A read has got its last completion in the cycle before: its tag comes back.
        free_valid: bool = 1,
        /// What ended in the cycle before was dropped: no read waits for it.
        unexpected: bool = 1,
        /// It was dropped: its bytes are not those that the read lacks next.
        mismatched: bool = 1,
        /// An entry is offered to the cache.
        entry_valid: bool = 1,
        /// The queue pair of the read; zero if none is offered.
        entry_pair: u8 = PAIR_BITS,
        /// Instead of entries, the read has failed.
        entry_failed: bool = 1,
        /// The entry; zero if none is offered, or the read has failed.
        entry_word: u64 = 64,
    }
}

/// A read, and how far it has come.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    pair: u8,
    address: u64,
    /// Entries that are wanted, have come, and have left.
    count: usize,
    came: usize,
    left: usize,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// There is none.
    #[default]
    Idle,
    /// It is asked for.
    Asks,
    /// It waits for completions.
    Waits,
    /// It is whole.
    Whole,
    /// It has failed.
    Failed,
}

impl Read {
    /// The number of an entry's word among those of the beats.
    fn word(&self, entry: usize) -> usize {
        self.address as usize / ENTRY_BYTES % BEAT_WORDS + entry
    }
}

/// A completion whose last beat has not come.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The read waited for it, and has done so all the time.
    is_ours: bool,
    failed: bool,
    /// Its entries by its bytes; none if they are not those that the read lacks next.
    entries: usize,
    /// The beat that comes next, and beats to come.
    at: usize,
    lacks: usize,
}

/// The reader.
///
/// A read that is taken in cycle `t` is asked for from `t + 1` on. What comes with its last beat in
/// cycle `t` makes its first entry stand at the output from `t + 1` on. One entry leaves in a
/// cycle, and the next read is taken a cycle behind the last one.
#[derive(Clone, Debug)]
pub struct SlotRead {
    beats: Vec<[u64; BEAT_WORDS]>,
    read: Read,
    piece: Option<Piece>,
    unexpected: bool,
    mismatched: bool,
    free: bool,
}

impl SlotRead {
    /// A reader of up to so many entries at once.
    ///
    /// # Panics
    /// Unless there are 2, 4, 8 or 16.
    pub fn new(batch: usize) -> SlotRead {
        assert!(batch.is_power_of_two() && batch > 1, "2, 4, 8 or 16 entries");
        assert!(batch < 1 << BATCH_BITS, "16 entries at most");
        SlotRead {
            beats: vec![[0; BEAT_WORDS]; batch / BEAT_WORDS + 1],
            read: Read::default(),
            piece: None,
            unexpected: false,
            mismatched: false,
            free: false,
        }
    }

    /// One cycle; a read has at least one entry, and at most those of a batch.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out();
        (self.unexpected, self.mismatched, self.free) = (false, false, false);
        // A tag that is lost is lost, also if its last beat comes in this cycle.
        if input.lost_valid && self.read.state == State::Waits {
            self.read.state = State::Failed;
            if let Some(piece) = &mut self.piece {
                piece.is_ours = false;
            }
        }
        if input.in_valid {
            self.beat(&input);
        }
        let Read { count, left, state, .. } = self.read;
        if out.entry_valid && input.entry_ready {
            self.read.left += 1;
            if state == State::Failed || left + 1 == count {
                self.read.state = State::Idle;
            }
        }
        if out.ask_valid && input.ask_ready {
            self.read.state = State::Waits;
        }
        if out.read_ready && input.read_valid {
            self.read = Read {
                pair: input.read_pair,
                address: input.read_address,
                count: input.read_count.into(),
                state: State::Asks,
                ..Read::default()
            };
        }
        out
    }

    /// What stands at the outputs in this cycle; it does not depend on what enters.
    pub fn out(&self) -> Out {
        let Read { pair, address, count, left, state, .. } = self.read;
        let mut out = Out {
            read_ready: state == State::Idle,
            ask_valid: state == State::Asks,
            free_valid: self.free,
            unexpected: self.unexpected,
            mismatched: self.mismatched,
            entry_valid: matches!(state, State::Whole | State::Failed),
            entry_failed: state == State::Failed,
            ..Out::default()
        };
        if out.ask_valid {
            out.ask_pair = pair;
            (out.ask_address, out.ask_bytes) = (address, (ENTRY_BYTES * count) as u16);
        }
        if out.entry_valid {
            out.entry_pair = pair;
        }
        if state == State::Whole {
            let word = self.read.word(left);
            out.entry_word = self.beats[word / BEAT_WORDS][word % BEAT_WORDS];
        }
        out
    }

    /// A completion begins.
    fn piece(&self, input: &In) -> Piece {
        let (bytes, remaining) = (usize::from(input.in_bytes), usize::from(input.in_remaining));
        let Read { count, came, state, .. } = self.read;
        let entries = bytes / ENTRY_BYTES;
        let [first, end] = [came, came + entries].map(|entry| self.read.word(entry));
        // The standard cuts completions at multiples of 64 bytes, so at the end of a beat.
        let fits = remaining == ENTRY_BYTES * (count - came)
            && bytes <= remaining
            && bytes.is_multiple_of(ENTRY_BYTES)
            && (bytes == remaining || end.is_multiple_of(BEAT_WORDS));
        let at = first / BEAT_WORDS;
        Piece {
            is_ours: state == State::Waits,
            failed: input.in_failed,
            entries: if fits { entries } else { 0 },
            at,
            lacks: if fits { end.div_ceil(BEAT_WORDS) - at } else { 0 },
        }
    }

    /// A beat of a completion.
    fn beat(&mut self, input: &In) {
        let mut piece = self.piece.take().unwrap_or_else(|| self.piece(input));
        let comes = piece.lacks == 1;
        if piece.is_ours && piece.lacks > 0 {
            self.beats[piece.at] = input.in_data;
            piece.at += 1;
            piece.lacks -= 1;
        }
        if !input.in_last {
            self.piece = Some(piece);
            return;
        }
        if !piece.is_ours {
            self.unexpected = true;
            return;
        }
        self.mismatched = !(piece.failed || comes);
        if comes {
            self.read.came += piece.entries;
        }
        self.free = piece.failed || self.read.came == self.read.count;
        if self.free {
            self.read.state = if piece.failed { State::Failed } else { State::Whole };
        }
    }
}

#[cfg(test)]
mod tests;
