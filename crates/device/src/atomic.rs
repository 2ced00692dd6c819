//! Atomics on words of 8 bytes.

use crate::View;

/// What an atomic does to a word. It returns the previous value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicOperation {
    /// Add this number; the sum wraps.
    FetchAdd(u64),
    /// Replace the word if it equals `expected`.
    CompareSwap {
        /// The value that the word must have.
        expected: u64,
        /// The value that it gets.
        new: u64,
    },
}

impl AtomicOperation {
    /// Changes the word at `offset` by the processor's own instruction, and returns its previous
    /// value. `None`: the word is misaligned or outside of `memory`, which is unchanged.
    #[inline]
    pub fn apply(self, memory: View<'_>, offset: usize) -> Option<u64> {
        match self {
            AtomicOperation::FetchAdd(operand) => memory.fetch_add(offset, operand),
            AtomicOperation::CompareSwap { expected, new } => {
                memory.compare_swap(offset, expected, new)
            }
        }
    }
}
