//! Atomics on words of 8 bytes.

use crate::{Operation, View};

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
    #[must_use]
    pub fn apply(self, memory: View<'_>, offset: usize) -> Option<u64> {
        match self {
            AtomicOperation::FetchAdd(operand) => memory.fetch_add(offset, operand),
            AtomicOperation::CompareSwap { expected, new } => {
                memory.compare_swap(offset, expected, new)
            }
        }
    }

    /// The kind that its completion names.
    #[must_use]
    pub fn kind(self) -> Operation {
        self.parts().0
    }

    /// Its number in the `aux` field of a packet, and the two operands in the payload.
    #[must_use]
    pub fn to_packet(self) -> (u16, [u64; 2]) {
        let (_, number, operands) = self.parts();
        (number, operands)
    }

    fn parts(self) -> (Operation, u16, [u64; 2]) {
        match self {
            AtomicOperation::FetchAdd(operand) => (Operation::FetchAdd, 0, [operand, 0]),
            AtomicOperation::CompareSwap { expected, new } => {
                (Operation::CompareSwap, 1, [new, expected])
            }
        }
    }

    /// The inverse of [`AtomicOperation::to_packet`]; `None` for a number of a newer peer.
    #[must_use]
    pub fn from_packet(number: u16, [operand, expected]: [u64; 2]) -> Option<AtomicOperation> {
        match number {
            0 => Some(AtomicOperation::FetchAdd(operand)),
            1 => Some(AtomicOperation::CompareSwap { expected, new: operand }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomics_survive_their_packets() {
        let swap = AtomicOperation::CompareSwap { expected: 1, new: 2 };
        for atomic in [AtomicOperation::FetchAdd(3), swap] {
            let (number, operands) = atomic.to_packet();
            assert_eq!(AtomicOperation::from_packet(number, operands), Some(atomic));
        }
        assert_eq!(AtomicOperation::from_packet(9, [0, 0]), None);
    }
}
