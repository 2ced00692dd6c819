//! Completion queues.

/// Handle of a completion queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompletionQueue {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}
