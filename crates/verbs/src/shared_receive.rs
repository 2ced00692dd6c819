//! A receive queue that several queue pairs share.

/// Handle of a shared receive queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedReceiveQueue {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}
