//! `cdc_fifo_gray`: a FIFO between two clocks, as `hardware/cdc_fifo_gray` builds it.

use std::collections::VecDeque;

crate::ports! {
    /// What enters in a step.
    pub struct In {
        /// The clock of the writing side rises.
        in_tick: bool = 1,
        /// A word is offered.
        in_valid: bool = 1,
        /// The word.
        in_data: u64 = 64,
        /// The clock of the reading side rises.
        out_tick: bool = 1,
        /// A word is taken, if one is offered.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a step, before the edges that end it.
    pub struct Out {
        /// The offered word is taken.
        in_ready: bool = 1,
        /// A word is offered.
        out_valid: bool = 1,
        /// The word; zero if none is offered.
        out_data: u64 = 64,
    }
}

/// A FIFO of `depth` words and one more at its output. A step has an edge of either clock, of both
/// or of none.
///
/// Each side sees the other side's count two edges of its own later. A count that changes at the
/// very edge that catches it is caught as the old one.
#[derive(Clone, Debug)]
pub struct CdcFifoGray {
    words: VecDeque<u64>,
    depth: u64,
    output: Option<u64>,
    written: u64,
    read: u64,
    /// What the writing side has caught of `read`, the older one last.
    read_seen: [u64; 2],
    written_seen: [u64; 2],
}

impl CdcFifoGray {
    /// An empty FIFO.
    pub fn new(depth: usize) -> CdcFifoGray {
        CdcFifoGray {
            words: VecDeque::with_capacity(depth),
            depth: depth as u64,
            output: None,
            written: 0,
            read: 0,
            read_seen: [0; 2],
            written_seen: [0; 2],
        }
    }

    /// One step.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = Out {
            in_ready: self.written - self.read_seen[1] < self.depth,
            out_valid: self.output.is_some(),
            out_data: self.output.unwrap_or(0),
        };
        let (written, read) = (self.written, self.read);
        if input.out_tick {
            if self.output.is_none() || input.out_ready {
                let is_there = self.written_seen[1] > read;
                self.output = if is_there { self.words.pop_front() } else { None };
                self.read += u64::from(is_there);
            }
            self.written_seen = [written, self.written_seen[0]];
        }
        if input.in_tick {
            if input.in_valid && out.in_ready {
                self.words.push_back(input.in_data);
                self.written += 1;
            }
            self.read_seen = [read, self.read_seen[0]];
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With both clocks at once a word is offered in the fifth step. Its place is free for the
    /// writing side two edges after the word has left the memory, whatever the other clock does.
    #[test]
    fn each_side_sees_the_other_later() {
        let mut fifo = CdcFifoGray::new(2);
        let mut step = |in_data, in_tick, out_tick| {
            let input = In { in_tick, in_valid: in_data > 0, in_data, out_tick, out_ready: false };
            let out = fifo.cycle(input);
            (out.in_ready, out.out_data)
        };
        assert_eq!(step(7, true, true), (true, 0));
        assert_eq!(step(8, true, true), (true, 0));
        assert_eq!(step(9, true, true), (false, 0));
        assert_eq!(step(9, true, true), (false, 0));
        // The first word is at the output.
        assert_eq!(step(9, true, false), (false, 7));
        assert_eq!(step(9, false, true), (false, 7));
        assert_eq!(step(9, true, false), (false, 7));
        assert_eq!(step(9, true, false), (true, 7));
        assert_eq!(step(10, true, false), (false, 7));
    }

    /// Words leave in order, each once, at any ratio of the clocks.
    #[test]
    fn words_stay_in_order() {
        for (slow, fast) in [(1, 1), (1, 7), (7, 1), (3, 4)] {
            let mut fifo = CdcFifoGray::new(4);
            let (mut next, mut expected) = (1, 1);
            for step in 0..1000 {
                let (in_tick, out_tick) = (step % slow == 0, step % fast == 0);
                let input =
                    In { in_tick, in_valid: true, in_data: next, out_tick, out_ready: true };
                let out = fifo.cycle(input);
                next += u64::from(in_tick && out.in_ready);
                if out_tick && out.out_valid {
                    assert_eq!(out.out_data, expected);
                    expected += 1;
                }
            }
            assert!(expected > 100, "{slow} to {fast}: {expected}");
        }
    }
}
