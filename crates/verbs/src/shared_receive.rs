//! A receive queue that several queue pairs share.

use crate::receive_queue::ReceiveQueue;

/// Handle of a shared receive queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedReceiveQueue {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Buffers for whichever queue pair gets a message first.
///
/// They reserve no completion, because it is not known yet where they will complete: the message waits if there is no room.
#[derive(Debug)]
pub(crate) struct SharedReceives {
    pub(crate) receives: ReceiveQueue,
    pub(crate) depth: usize,
    /// Queue pairs that take from here.
    pub(crate) users: usize,
    /// A message found no buffer here.
    pub(crate) starved: bool,
}

impl SharedReceives {
    pub(crate) fn new(depth: usize) -> Self {
        let receives = ReceiveQueue::with_capacity(depth);
        SharedReceives { receives, depth, users: 0, starved: false }
    }
}
