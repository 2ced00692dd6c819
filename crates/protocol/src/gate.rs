//! STOP and GO: when to hold back the sender of one queue of a shared memory.
//!
//! Source: HPCL's messages STOP and GO (H-15, H-16), Sec. 3. HPCL has one buffer per channel and stops when it is full.
//! Where many queues share a memory that is too late, as one sender could take the last cell from all the others, and
//! a fixed limit per queue would be the private share that a DAMQ exists to avoid. So the limit moves: a queue may hold
//! at most half as many cells as are *free*. The idea is Choudhury and Hahne's (Dynamic queue length
//! thresholds, IEEE/ACM ToN 6(2), 1998): the limit falls by itself as the memory fills, for the long queues first.

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

/// Decides for each queue of a shared memory when its sender is stopped and when it may go on.
///
/// A queue is stopped when it holds more than half as many cells as are free, and released when it holds at most a
/// quarter as many; the gap keeps a queue that hovers at the limit from sending a signal per message. With `n` queues
/// at the limit each holds `cells / (n + 2)` and twice that is free: a lone queue is stopped at a third of the
/// memory, and what is in flight towards it finds the other two thirds.
///
/// A STOP takes effect only when it arrives. The overshoot of a queue is therefore what its sender has in flight, and
/// that of all queues together is bounded by the sum of the senders' windows (or credits), whatever this policy does.
/// If the free two thirds can take that sum nothing is ever refused; otherwise [`Damq::push`](crate::Damq::push)
/// refuses, and the message must stay where it is, or be sent again.
///
/// No GO can be missed: a stopped queue holds at least one cell, so there is a later removal from it at which the owner
/// calls [`observe`](Self::observe), and an empty queue is always released.
pub struct GatePolicy {
    stopped: Box<[bool]>,
}

impl GatePolicy {
    /// A policy for queues `0..queues`, all of them going.
    pub fn new(queues: usize) -> Self {
        Self { stopped: vec![false; queues].into() }
    }

    /// Tells of the state after a change of `queue`: it now holds `cells` and `free_cells` are free in all.
    ///
    /// Returns a signal for the sender exactly when its state changes. Call it after each change of the queue's own
    /// content; changes of other queues move the limit but need no call.
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
