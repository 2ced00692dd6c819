//! The board: state that a function publishes to all its peers. They map it read-only.
//!
//! It has two tables. Each queue pair has a gate: does it exist, does it take sends. Each region
//! has a notice: the valid key, and the facts for its holder.

use crate::segment::Words;
use crate::sync::Ordering;

#[cfg(not(loom))]
pub use stamp::Stamp;

/// The board's entry of a region. The device masks all fields but `stamp`, so only holders of the
/// key can read them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Notice {
    /// Proves the key; 0 when there is no region.
    pub stamp: u64,
    /// Address of the region in its owner's memory.
    pub address: u64,
    /// Length and rights.
    pub extent: u64,
}

const NOTICE_WORDS: usize = 4;

/// The board at the start of `words`: `gates` bytes, eight to a word, then four words for each of
/// `regions`.
pub struct Board<W> {
    words: W,
    gates: usize,
    regions: usize,
    /// The word at which the notices begin.
    notices: usize,
}

impl<W: Words> Board<W> {
    /// Words that a board of this size needs.
    pub const fn words(gates: usize, regions: usize) -> usize {
        gates.div_ceil(8) + regions * NOTICE_WORDS
    }

    /// The board at the start of `words`.
    pub fn new(words: W, gates: usize, regions: usize) -> Self {
        Board { words, gates, regions, notices: gates.div_ceil(8) }
    }

    /// The gate of a queue pair; 0 above the table.
    #[inline(always)]
    pub fn gate(&self, queue_pair: usize) -> u8 {
        if queue_pair >= self.gates {
            return 0;
        }
        (self.words.word(queue_pair / 8).load(Ordering::Relaxed) >> (queue_pair % 8 * 8)) as u8
    }

    /// Owner: sets a gate. Only one thread of the owner writes the board. Panics above the table.
    pub fn set_gate(&self, queue_pair: usize, gate: u8) {
        assert!(queue_pair < self.gates);
        let word = self.words.word(queue_pair / 8);
        let shift = queue_pair % 8 * 8;
        let rest = word.load(Ordering::Relaxed) & !(0xff << shift);
        word.store(rest | u64::from(gate) << shift, Ordering::Release);
    }

    #[inline(always)]
    fn notice_word(&self, region: usize) -> usize {
        self.notices + region * NOTICE_WORDS
    }

    /// The stamp of a region: it changes when the key dies; 0 when there is no region.
    #[inline(always)]
    pub fn stamp(&self, region: usize) -> u64 {
        if region >= self.regions {
            return 0;
        }
        // SeqCst: one total order with the busy mark of a peer that copies by system call (see
        // `LaneSender::mark_busy`).
        self.words.word(self.notice_word(region)).load(Ordering::SeqCst)
    }

    /// The board's whole entry of a region.
    pub fn notice(&self, region: usize) -> Notice {
        let stamp = self.stamp(region);
        if stamp == 0 {
            return Notice::default();
        }
        let at = self.notice_word(region);
        Notice {
            stamp,
            address: self.words.word(at + 1).load(Ordering::Relaxed),
            extent: self.words.word(at + 2).load(Ordering::Relaxed),
        }
    }

    /// Owner: publishes a region. Panics above the table.
    pub fn post(&self, region: usize, notice: Notice) {
        assert!(region < self.regions);
        let at = self.notice_word(region);
        self.words.word(at + 1).store(notice.address, Ordering::Relaxed);
        self.words.word(at + 2).store(notice.extent, Ordering::Relaxed);
        // SeqCst includes release: pairs with the load in `stamp`.
        self.words.word(at).store(notice.stamp, Ordering::SeqCst);
    }

    /// Owner: withdraws a region. Panics above the table.
    pub fn withdraw(&self, region: usize) {
        assert!(region < self.regions);
        self.words.word(self.notice_word(region)).store(0, Ordering::SeqCst);
    }
}

#[cfg(not(loom))]
mod stamp {
    use super::Board;
    use crate::segment::{Segment, Words};
    use crate::sync::{AtomicU64, Ordering};
    use std::ptr::NonNull;

    /// The stamp of one region, to be looked at again and again.
    pub struct Stamp {
        word: NonNull<AtomicU64>,
        value: u64,
        // Keeps the word mapped.
        _words: Segment,
    }

    // SAFETY: the word is only read, atomically, and the segment stays in place when it moves.
    unsafe impl Send for Stamp {}
    // SAFETY: as above.
    unsafe impl Sync for Stamp {}

    impl Stamp {
        /// Whether it is still the one that was expected: the key has not died.
        #[inline(always)]
        pub fn stands(&self) -> bool {
            // SAFETY: a segment's words stay in place while one of its clones lives.
            let word = unsafe { self.word.as_ref() };
            // SeqCst: as in `Board::stamp`.
            word.load(Ordering::SeqCst) == self.value
        }
    }

    impl Board<Segment> {
        /// The stamp of a region, which is `value` while its key is valid. `None` above the table.
        pub fn watch(&self, region: usize, value: u64) -> Option<Stamp> {
            let word = || NonNull::from(self.words.word(self.notice_word(region)));
            let stamp = || Stamp { word: word(), value, _words: self.words.clone() };
            (region < self.regions).then(stamp)
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::{Board, Notice};
    use crate::segment::{Segment, Words, zeroed};
    use crate::sync::Ordering;

    /// Gates are bytes, and notices are four words each behind them: the layout on which two
    /// processes agree.
    #[test]
    fn layout() {
        assert_eq!(
            [(9, 3), (16, 1), (0, 2)].map(|(g, r)| Board::<Segment>::words(g, r)),
            [14, 6, 8]
        );
        let words = zeroed(3);
        let board = Board::new(words.clone(), 11, 3);
        for (queue_pair, gate) in [(0, 0x11), (7, 0x77), (9, 0xff), (10, 0x80), (9, 0x22)] {
            board.set_gate(queue_pair, gate);
        }
        board.post(0, Notice { stamp: 5, address: 6, extent: 7 });
        board.post(2, Notice { stamp: 8, address: 9, extent: 10 });
        let found: Vec<u64> = (0..15).map(|at| words.word(at).load(Ordering::Relaxed)).collect();
        assert_eq!(found[..2], [0x7700_0000_0000_0011, 0x80_2200]);
        assert_eq!(found[2..], [5, 6, 7, 0, 0, 0, 0, 0, 8, 9, 10, 0, 0]);
        assert_eq!([0, 1, 7, 8, 9, 10].map(|at| board.gate(at)), [0x11, 0, 0x77, 0, 0x22, 0x80]);
    }

    /// A stamp stands while the region has it, and for as long as somebody looks.
    #[test]
    fn a_stamp_that_is_watched() {
        let board = Board::new(zeroed(3), 11, 3);
        assert!(board.watch(3, 0).is_none());
        let [first, last] = [(0, 5), (2, 8)].map(|(at, value)| board.watch(at, value).unwrap());
        let stand = || [first.stands(), last.stands()];
        assert_eq!(stand(), [false, false]);
        board.post(2, Notice { stamp: 8, ..Notice::default() });
        assert_eq!(stand(), [false, true]);
        board.post(0, Notice { stamp: 5, ..Notice::default() });
        board.withdraw(2);
        assert_eq!(stand(), [true, false]);
        drop(board);
        assert!(first.stands());
    }

    /// What stands above the tables is no gate and no notice.
    #[test]
    fn nothing_is_read_above_the_tables() {
        let words = zeroed(3);
        let board = Board::new(words.clone(), 11, 3);
        (0..24).for_each(|at| words.word(at).store(u64::MAX, Ordering::Relaxed));
        assert_eq!((board.gate(10), board.gate(11), board.gate(usize::MAX)), (0xff, 0, 0));
        assert_eq!((board.stamp(2), board.stamp(3), board.stamp(usize::MAX)), (u64::MAX, 0, 0));
        assert_eq!(board.notice(3), Notice::default());
    }

    /// A region that was withdrawn shows nothing of its last notice, and others stay.
    #[test]
    fn a_withdrawn_region_shows_nothing() {
        let board = Board::new(zeroed(2), 8, 2);
        let notice = Notice { stamp: 5, address: 6, extent: 7 };
        board.post(0, notice);
        board.post(1, notice);
        assert_eq!((board.notice(0), board.stamp(0)), (notice, 5));
        board.withdraw(1);
        assert_eq!((board.notice(1), board.stamp(1)), (Notice::default(), 0));
        assert_eq!(board.notice(0), notice);
    }
}
