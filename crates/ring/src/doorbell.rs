//! The receiver's doorbell: one bit for each lane, a summary word above them, and a word that says
//! whether the receiver sleeps.
//!
//! A sender rings only when its lane is parked, so busy lanes cause no traffic here. An awake
//! receiver reads one word per poll, which stays in its cache.

use crate::segment::{LINE_WORDS, Words};
use crate::sync::{Ordering, fence};

/// Lanes that one doorbell serves.
pub const LANES: usize = 64 * 64;

// Line 0: summary. Line 1: sleeper. Lines 2-9: one bit per lane.
const SUMMARY: usize = 0;
const SLEEPER: usize = LINE_WORDS;
const BITS: usize = 2 * LINE_WORDS;

/// Lines of a doorbell.
pub const DOORBELL_LINES: usize = 2 + 64 / LINE_WORDS;

/// The doorbell, as both sides see it, at the start of `words`.
pub struct Doorbell<W> {
    words: W,
}

impl<W: Words> Doorbell<W> {
    /// The doorbell at the start of `words`.
    pub fn new(words: W) -> Self {
        Doorbell { words }
    }

    /// Sender: rings for `lane`. `true`: the receiver slept, and this caller must wake it.
    pub fn ring(&self, lane: usize) -> bool {
        assert!(lane < LANES);
        // Release, both: pair with the acquires in `answer`. The bit comes first: a receiver that
        // sees the summary sees the bit.
        self.words.word(BITS + lane / 64).fetch_or(1 << (lane % 64), Ordering::Release);
        if !crate::canary::planted("bell-lost") {
            self.words.word(SUMMARY).fetch_or(1 << (lane / 64), Ordering::Release);
        }
        // Pairs with the fence in `prepare_sleep`: either the receiver sees the bell or we see the
        // sleeper. Fences instead of SeqCst accesses: the model checker treats the latter as
        // acquire and release only.
        fence(Ordering::SeqCst);
        self.words.word(SLEEPER).load(Ordering::Relaxed) != 0
            && self.words.word(SLEEPER).swap(0, Ordering::Relaxed) != 0
    }

    /// Receiver: whether any lane rang.
    #[inline(always)]
    pub fn is_rung(&self) -> bool {
        self.words.word(SUMMARY).load(Ordering::Relaxed) != 0
    }

    /// Receiver: clears all bells and passes their lanes to `lane`.
    #[cold]
    pub fn answer(&self, mut lane: impl FnMut(usize)) {
        // Acquire, both: pair with the releases in `ring`: everything written before a ring is
        // visible.
        let mut groups = self.words.word(SUMMARY).swap(0, Ordering::Acquire);
        while groups != 0 {
            let group = groups.trailing_zeros() as usize;
            groups &= groups - 1;
            let mut bits = self.words.word(BITS + group).swap(0, Ordering::Acquire);
            while bits != 0 {
                lane(group * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// Receiver: announces sleep, after all lanes are parked. `false`: a bell rang, do not sleep.
    pub fn prepare_sleep(&self) -> bool {
        // Swaps, here and in `end_sleep`: every change of SLEEPER reads the one before. So a
        // ringer's late swap for an earlier sleep cannot hide this announcement.
        self.words.word(SLEEPER).swap(1, Ordering::Relaxed);
        // Pairs with the fence in `ring`.
        fence(Ordering::SeqCst);
        if !crate::canary::planted("sleep-without-look")
            && self.words.word(SUMMARY).load(Ordering::Relaxed) != 0
        {
            self.end_sleep();
            return false;
        }
        true
    }

    /// Receiver: withdraws the announcement.
    pub fn end_sleep(&self) {
        self.words.word(SLEEPER).swap(0, Ordering::Relaxed);
    }
}

// Each condition in a line of its own: cargo-mutants takes only `cfg(test)` for test code.
#[cfg(test)]
#[cfg(not(loom))]
mod tests;
