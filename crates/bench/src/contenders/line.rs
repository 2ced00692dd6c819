//! Limit of every latency: a cache line goes back and forth between two processes; for a put, one
//! line for each direction. Also the probe of near and far.

use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;

use super::{Contender, Kind, Start};
use crate::op::{Op, Wire};
use crate::worker::{InHouse, Outcome, SharedMemory, Side, meet, spin_until};

pub const CONTENDER: Contender = Contender {
    name: "line",
    about: "bare cache line, back and forth",
    kind: Kind::Limit,
    wires: &[Wire::Memory],
    start: Start::InHouse(InHouse::pair(&[Op::Latency, Op::PutLatency], |party| {
        Ok(Box::new(Line { index: party.index, shared: party.shared }))
    })),
};

/// The words that carry the numbers; words 0 and 1 are those of [`meet`].
const BALLS: [usize; 2] = [2, 3];

/// Pauses between a put and the first poll of the answer. An immediate poll disturbs the store in
/// flight. On the processor where this was measured, it cut 52 ns to 37 ns near, and changed
/// nothing far.
const REST: usize = 3;

struct Line {
    index: usize,
    shared: SharedMemory,
}

impl Side for Line {
    fn run(&mut self, op: Op, _bytes: usize, count: u64) -> Result<Outcome> {
        // A put writes memory of the other side: one line for each direction.
        let (own, theirs, rest) = match op {
            Op::PutLatency => (BALLS[self.index], BALLS[1 - self.index], REST),
            _ => (BALLS[0], BALLS[0], 0),
        };
        let (own, theirs) = (self.shared.word(own), self.shared.word(theirs));
        own.store(0, Ordering::Relaxed);
        meet(self.shared, self.index);
        let start = Instant::now();
        // Odd values are the leader's, even ones the follower's. Release pairs with the other
        // side's Acquire.
        for turn in 0..count {
            let (due, next) = (2 * turn + self.index as u64, 2 * turn + 1 + self.index as u64);
            spin_until(|| theirs.load(Ordering::Acquire) == due);
            own.store(next, Ordering::Release);
            (0..rest).for_each(|_| std::hint::spin_loop());
        }
        if self.index == 0 {
            spin_until(|| theirs.load(Ordering::Acquire) == 2 * count);
        }
        Ok(Outcome::since(start))
    }
}
