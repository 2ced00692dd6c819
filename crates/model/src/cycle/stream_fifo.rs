//! `stream_fifo`: a FIFO of streams in a clocked memory, as `hardware/stream_fifo` builds it.

use std::collections::VecDeque;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A word is offered.
        in_valid: bool = 1,
        /// The word.
        in_data: u64 = 64,
        /// A word is taken, if one is offered.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The offered word is taken.
        in_ready: bool = 1,
        /// A word is offered.
        out_valid: bool = 1,
        /// The word; zero if none is offered.
        out_data: u64 = 64,
        /// Words that entered and have not left.
        count: u16 = 16,
    }
}

/// A FIFO of `depth` words. A word that enters in cycle `t` can leave from `t + 2` on.
#[derive(Clone, Debug)]
pub struct StreamFifo<T = u64> {
    words: VecDeque<T>,
    depth: usize,
    out_valid: bool,
}

impl<T> StreamFifo<T> {
    /// An empty FIFO.
    pub fn new(depth: usize) -> StreamFifo<T> {
        StreamFifo { words: VecDeque::with_capacity(depth), depth, out_valid: false }
    }

    /// Whether an offered word is taken in this cycle.
    pub fn in_ready(&self) -> bool {
        self.words.len() < self.depth
    }

    /// The word that is offered in this cycle.
    pub fn offered(&self) -> Option<&T> {
        self.words.front().filter(|_| self.out_valid)
    }

    /// The clock edge that ends a cycle, in which a word is offered to the FIFO or not, and the one
    /// that it offers is taken or not.
    pub fn clock(&mut self, word: Option<T>, out_ready: bool) {
        let word = word.filter(|_| self.in_ready());
        if self.out_valid && out_ready {
            self.words.pop_front();
        }
        // The memory is read before it is written, so this cycle's word is not yet seen.
        self.out_valid = !self.words.is_empty();
        self.words.extend(word);
    }
}

impl StreamFifo {
    /// What stands at the outputs in this cycle; it does not depend on what enters.
    #[inline]
    pub fn out(&self) -> Out {
        Out {
            in_ready: self.in_ready(),
            out_valid: self.out_valid,
            out_data: self.offered().copied().unwrap_or_default(),
            count: self.words.len() as u16,
        }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out();
        self.clock(input.in_valid.then_some(input.in_data), input.out_ready);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A word needs two cycles. Then one enters and one leaves in every cycle; a full FIFO takes
    /// none, even while one leaves.
    #[test]
    fn a_word_takes_two_cycles() {
        let mut fifo = StreamFifo::new(2);
        let mut offer = |in_data, out_ready| {
            let out = fifo.cycle(In { in_valid: in_data > 0, in_data, out_ready });
            (out.in_ready, out.out_valid.then_some(out.out_data), out.count)
        };
        assert_eq!(offer(7, true), (true, None, 0));
        assert_eq!(offer(8, true), (true, None, 1));
        assert_eq!(offer(9, true), (false, Some(7), 2));
        assert_eq!(offer(9, false), (true, Some(8), 1));
        assert_eq!(offer(0, true), (false, Some(8), 2));
        assert_eq!(offer(0, true), (true, Some(9), 1));
        assert_eq!(offer(0, true), (true, None, 0));
    }
}
