//! A receive queue that several queue pairs share.

use crate::receive_queue::ReceiveQueue;

/// Handle of a shared receive queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedReceiveQueue {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Buffers of several queue pairs: the next message of any of them takes the oldest.
///
/// They reserve no completion entry: their completion queue is not known until a message comes.
/// Without a free entry the message waits.
#[derive(Debug)]
pub(crate) struct SharedReceives {
    pub(crate) receives: ReceiveQueue,
    pub(crate) depth: usize,
    /// Queue pairs that use this queue.
    pub(crate) users: usize,
    /// A message has found no buffer here and waits.
    pub(crate) starved: bool,
}

impl SharedReceives {
    pub(crate) fn new(depth: usize) -> Self {
        let receives = ReceiveQueue::with_capacity(depth);
        SharedReceives { receives, depth, users: 0, starved: false }
    }
}
