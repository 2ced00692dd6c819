//! The board: what a function publishes to all its peers. They map it read-only.
//!
//! Two tables: a gate for each queue pair (does it exist, does it take sends), and a stamp for each region (which key is
//! valid there now).

use crate::segment::Words;
use crate::sync::Ordering;

/// The board at the start of `words`: `gates` bytes, eight to a word, then `regions` words.
pub struct Board<W> {
    words: W,
    gates: usize,
    regions: usize,
}

impl<W: Words> Board<W> {
    /// Words that a board of this size needs.
    pub const fn words(gates: usize, regions: usize) -> usize {
        gates.div_ceil(8) + regions
    }

    /// The board at the start of `words`.
    pub fn new(words: W, gates: usize, regions: usize) -> Self {
        Board { words, gates, regions }
    }

    /// The gate of a queue pair; 0 for one that cannot exist.
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

    /// The stamp of a region: changes when its key dies; 0 when there is none.
    #[inline]
    pub fn stamp(&self, region: usize) -> u64 {
        if region >= self.regions {
            return 0;
        }
        // SeqCst: in one order with the busy mark of a peer that copies by system call (see the device's `retract`).
        self.words.word(self.gates.div_ceil(8) + region).load(Ordering::SeqCst)
    }

    /// Owner: sets a stamp. Panics above the table.
    pub fn set_stamp(&self, region: usize, stamp: u64) {
        assert!(region < self.regions);
        self.words.word(self.gates.div_ceil(8) + region).store(stamp, Ordering::SeqCst);
    }
}
