//! The board: state that a function publishes to all its peers. They map it read-only.
//!
//! It has two tables. Each queue pair has a gate: does it exist, does it take sends. Each region
//! has a notice: the valid key, and the facts for its holder.

use crate::segment::Words;
use crate::sync::Ordering;

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
    #[inline]
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
