//! Contiguous runs of chunks out of one pool, lowest address first.
//!
//! The pool is a bitmap of up to 64 words of 64 bits, one bit per chunk. A summary word has one bit
//! per word. It always takes the lowest free run. So a lone user cycles through the same few
//! chunks, which stay in its cache, however large the pool is.

use alloc::boxed::Box;
use alloc::vec;
use core::fmt;
use core::ops::Range;

use crate::canary::planted;

/// Bits in a word of the bitmap.
const WORD: u16 = 64;

/// A run of chunks `first..first + count`. A plain value: holding one grants nothing by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Extent {
    /// Index of the lowest chunk.
    pub first: u16,
    /// Number of chunks; a pool never hands out 0.
    pub count: u16,
}

impl Extent {
    /// The indices of the chunks.
    pub fn chunks(self) -> Range<usize> {
        self.first as usize..self.first as usize + self.count as usize
    }
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chunks {}..{}", self.chunks().start, self.chunks().end)
    }
}

/// Which of the chunks `0..chunks` are free.
pub struct ExtentPool {
    /// A set bit is a free chunk. Bits beyond the last chunk are never set.
    words: Box<[u64]>,
    /// Bit `w` is set if `words[w]` has a set bit.
    summary: u64,
    chunks: u16,
    free: u16,
}

/// Why an extent was not taken back. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GiveError {
    /// The extent is empty or reaches beyond the pool.
    #[error("{extent} are no chunks of a pool of {chunks}; give only what was taken")]
    Outside {
        /// What was given.
        extent: Extent,
        /// Chunks in the pool.
        chunks: u16,
    },
    /// At least one of the chunks is free already.
    #[error("{extent} are free already, in part or all; give each extent once")]
    DoubleFree {
        /// What was given.
        extent: Extent,
    },
}

impl ExtentPool {
    /// The most chunks that a pool can have: as many words as the summary has bits.
    pub const MAX_CHUNKS: u16 = WORD * WORD;

    /// A pool of `chunks` free chunks.
    ///
    /// # Panics
    /// If `chunks` is 0 or above [`MAX_CHUNKS`](Self::MAX_CHUNKS).
    pub fn new(chunks: u16) -> Self {
        assert!((1..=Self::MAX_CHUNKS).contains(&chunks), "a pool has 1 to 4096 chunks");
        let words = vec![0; chunks.div_ceil(WORD) as usize].into();
        let mut pool = Self { words, summary: 0, chunks, free: 0 };
        pool.mark_free(Extent { first: 0, count: chunks });
        pool
    }

    /// Takes the lowest run of exactly `count` free chunks. `None` if there is none, or if `count`
    /// is 0.
    ///
    /// One chunk costs two bit scans; a run at most one pass over the 64 words.
    #[inline]
    pub fn take(&mut self, count: u16) -> Option<Extent> {
        if count == 0 || count > self.free {
            return None;
        }
        let extent = Extent { first: self.lowest_run(count)?, count };
        self.mark_taken(extent);
        Some(extent)
    }

    /// Takes the lowest run of the largest power of two that is at most `count` and free in one
    /// piece.
    ///
    /// `None` only if no chunk is free or `count` is 0.
    #[inline]
    pub fn take_up_to(&mut self, count: u16) -> Option<Extent> {
        let mut count = 1 << count.min(self.free).checked_ilog2()?;
        loop {
            if let Some(extent) = self.take(count) {
                return Some(extent);
            }
            count /= 2;
        }
    }

    /// Takes chunks back. They need not be an extent as it was taken: any run of taken chunks will
    /// do.
    ///
    /// # Errors
    /// [`GiveError`]; nothing has changed then.
    #[inline]
    pub fn give(&mut self, extent: Extent) -> Result<(), GiveError> {
        if extent.count == 0 || extent.chunks().end > self.chunks as usize {
            return Err(GiveError::Outside { extent, chunks: self.chunks });
        }
        let twice = masks(extent).any(|(word, mask)| self.words[word] & mask != 0);
        if twice && !planted("extent-double-free") {
            return Err(GiveError::DoubleFree { extent });
        }
        self.mark_free(extent);
        Ok(())
    }

    /// Whether `chunk` is free; `false` for a chunk beyond the pool.
    pub fn is_free(&self, chunk: u16) -> bool {
        let word = self.words.get((chunk / WORD) as usize).copied().unwrap_or(0);
        word >> (chunk % WORD) & 1 == 1
    }

    /// Chunks that are free.
    #[inline]
    pub fn free_chunks(&self) -> u16 {
        self.free
    }

    /// All chunks, free or not.
    pub fn chunks(&self) -> u16 {
        self.chunks
    }

    /// First chunk of the lowest run of `count` free chunks; `count` is at least 1.
    fn lowest_run(&self, count: u16) -> Option<u16> {
        if self.summary == 0 {
            return None;
        }
        let start = self.summary.trailing_zeros() as u16;
        // Free chunks in a row just below the current word.
        let mut below = 0;
        for (at, &word) in
            (start * WORD..).step_by(WORD as usize).zip(&self.words[start as usize..])
        {
            if below + word.trailing_ones() as u16 >= count {
                return Some(at - below);
            }
            if let Some(bit) = lowest_run_within(word, count) {
                return Some(at + bit);
            }
            below = if word == u64::MAX { below + WORD } else { word.leading_ones() as u16 };
        }
        None
    }

    fn mark_taken(&mut self, extent: Extent) {
        for (word, mask) in masks(extent) {
            self.words[word] &= !mask;
            if self.words[word] == 0 {
                self.summary &= !(1 << word);
            }
        }
        self.free -= extent.count;
    }

    fn mark_free(&mut self, extent: Extent) {
        for (word, mask) in masks(extent) {
            self.words[word] |= mask;
            self.summary |= 1 << word;
        }
        self.free += extent.count;
    }
}

/// Lowest bit at which `count` set bits begin, all within `word`.
#[inline]
fn lowest_run_within(word: u64, count: u16) -> Option<u16> {
    if count > WORD {
        return None;
    }
    // Bit i of `starts` is set if `known` set bits begin at bit i; each step at most doubles
    // `known`.
    let (mut starts, mut known) = (word, 1);
    while known < count && starts != 0 {
        let step = known.min(count - known);
        starts &= starts >> step;
        known += step;
    }
    (starts != 0).then(|| starts.trailing_zeros() as u16)
}

/// The words that an extent touches, each with the bits that belong to it.
#[inline]
fn masks(extent: Extent) -> impl Iterator<Item = (usize, u64)> {
    let Range { start: mut at, end } = extent.chunks();
    core::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (word, low) = (at / 64, at % 64);
        let high = (end - word * 64).min(64);
        at = word * 64 + high;
        Some((word, (u64::MAX << low) & (u64::MAX >> (64 - high))))
    })
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Every search ends: for runs within a word, across words, of any length, and for none.
    #[test]
    fn every_search_ends() {
        let (ended, end) = channel();
        std::thread::spawn(move || {
            let mut pool = ExtentPool::new(200);
            for free in [1, 2, 3, 5, 63, 64, 65, 130] {
                assert_eq!(pool.take(200), Some(Extent { first: 0, count: 200 }));
                assert_eq!(pool.take_up_to(1), None);
                pool.give(Extent { first: 10, count: free }).expect("it was taken");
                pool.give(Extent { first: 150, count: 2 }).expect("it was taken");
                assert_eq!(pool.take(free + 2), None);
                let most = 1 << free.max(2).ilog2();
                let first = if free == 1 { 150 } else { 10 };
                assert_eq!(pool.take_up_to(200), Some(Extent { first, count: most }), "{free}");
                pool = ExtentPool::new(200);
            }
            ended.send(()).expect("the test waits");
        });
        end.recv_timeout(Duration::from_secs(8)).expect("all searches end");
    }
}
