//! A receive queue that several queue pairs share.

use crate::receive_queue::ReceiveQueue;

/// Handle of a shared receive queue, whose buffers several queue pairs take.
///
/// ```no_run
/// # use bellwire::{CompletionQueue, Function, QueuePairOptions, Result};
/// # fn example(function: &mut Function, completions: CompletionQueue) -> Result<()> {
/// let shared = function.create_shared_receive_queue(256)?;
/// let options = QueuePairOptions::new(completions).shared_receive(shared);
/// let pairs = [function.create_queue_pair(&options)?, function.create_queue_pair(&options)?];
/// function.post_shared_receive(shared, vec![0; 4096], 1)?;
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedReceiveQueue {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Buffers of several queue pairs: the next message of any of them takes the oldest.
///
/// They reserve no completion entry: their completion queue is not known until a message comes.
/// Without a free entry the message waits.
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
