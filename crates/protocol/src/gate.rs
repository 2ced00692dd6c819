//! STOP and GO: when to hold back the sender of one queue of a shared memory.
//!
//! Source: HPCL's messages STOP and GO (H-15, H-16), Sec. 3. HPCL has one buffer per channel and
//! stops when it is full. In a shared memory that is too late: one sender could take the last cell
//! from all others. A fixed limit per queue would be the private share that a DAMQ exists to avoid.
//! So the limit moves: a queue may hold at most half as many cells as are *free*. The idea is
//! Choudhury and Hahne's (Dynamic queue length thresholds, IEEE/ACM ToN 6(2), 1998). The limit
//! falls by itself as the memory fills, and hits the long queues first.

use alloc::boxed::Box;
use alloc::vec;

use crate::canary::planted;

/// What to tell the sender of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Send no more until [`Go`](Self::Go).
    Stop,
    /// Send again.
    Go,
}

/// Decides for each queue of a shared memory when its sender stops and when it goes on.
///
/// A queue is stopped when it holds more than half as many cells as are free. It is released when
/// it holds at most a quarter as many. The gap prevents a signal per message from a queue at the
/// limit. With `n` queues at the limit each holds `cells / (n + 2)`, and twice that is free. A lone
/// queue is stopped at a third of the memory; its packets in flight find the other two thirds.
///
/// A STOP takes effect only when it arrives, so a queue overshoots by what its sender has in
/// flight. The overshoot of all queues is bounded by the sum of the senders' windows (or credits),
/// whatever this policy does. If the free two thirds can take that sum, nothing is ever refused.
/// Otherwise [`Damq::push`](crate::Damq::push) refuses, and the message must stay where it is, or
/// be sent again.
///
/// No GO can be missed. A stopped queue holds at least one cell, so the owner will remove one and
/// call [`observe`](Self::observe). An empty queue is always released.
pub struct GatePolicy {
    stopped: Box<[bool]>,
}

impl GatePolicy {
    /// A policy for queues `0..queues`; no sender is stopped.
    pub fn new(queues: usize) -> Self {
        Self { stopped: vec![false; queues].into() }
    }

    /// Call it after each change of `queue`, which now holds `cells`; `free_cells` are free in all.
    ///
    /// Returns a signal for the sender exactly when its state changes. Changes of other queues move
    /// the limit but need no call.
    ///
    /// # Panics
    /// If `queue` is not below the number given to [`new`](Self::new).
    #[inline]
    pub fn observe(&mut self, queue: u32, cells: usize, free_cells: usize) -> Option<Signal> {
        let stopped = &mut self.stopped[queue as usize];
        if *stopped {
            (cells <= free_cells / 4 && !planted("gate-missed-go")).then(|| {
                *stopped = false;
                Signal::Go
            })
        } else {
            (cells > free_cells / 2).then(|| {
                *stopped = true;
                Signal::Stop
            })
        }
    }

    /// Whether the sender of `queue` has last been told to stop.
    #[inline]
    pub fn is_stopped(&self, queue: u32) -> bool {
        self.stopped[queue as usize]
    }
}
