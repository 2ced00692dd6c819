//! Receives, of one queue pair or shared by several.

use crate::memory::Sge;
use crate::send_queue::Parts;
use bellwire_ring::canary::planted;
use std::collections::VecDeque;

/// A posted receive.
pub(crate) struct Receive {
    pub(crate) id: u64,
    pub(crate) parts: Parts,
}

/// Posted receives, oldest first.
pub(crate) struct ReceiveQueue {
    posted: VecDeque<Receive>,
    pub(crate) depth: usize,
}

impl ReceiveQueue {
    pub(crate) fn new(depth: usize) -> ReceiveQueue {
        ReceiveQueue { posted: VecDeque::with_capacity(depth.min(256)), depth }
    }

    /// `false`: it is full.
    #[inline(always)]
    pub(crate) fn push(&mut self, id: u64, parts: &[Sge]) -> bool {
        let has_room = self.posted.len() < self.depth;
        if has_room {
            self.posted.push_back(Receive { id, parts: Parts::of(parts) });
        }
        has_room
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Receive> {
        self.posted.pop_front()
    }

    /// The oldest receive, where it is.
    #[inline]
    pub(crate) fn front(&self) -> Option<&Receive> {
        self.posted.front()
    }

    /// Drops the oldest receive, which is filled.
    #[inline]
    pub(crate) fn drop_front(&mut self) {
        drop(self.posted.pop_front());
    }

    pub(crate) fn len(&self) -> usize {
        self.posted.len()
    }

    /// Puts a receive back to the front.
    pub(crate) fn unpop(&mut self, receive: Receive) {
        self.posted.push_front(receive);
    }

    pub(crate) fn clear(&mut self) {
        self.posted.clear();
    }
}

/// Handle of a shared receive queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SrqId(pub(crate) u32);

/// Receives that several queue pairs take.
pub(crate) struct SharedReceives {
    pub(crate) domain: crate::Domain,
    pub(crate) queue: ReceiveQueue,
    pub(crate) most_parts: usize,
    /// An event is due when fewer receives are left; 0: none is.
    pub(crate) limit: usize,
    pub(crate) object: usize,
    pub(crate) users: usize,
}

impl SharedReceives {
    /// The next receive, and whether the limit was crossed.
    #[inline]
    pub(crate) fn take(&mut self) -> (Option<Receive>, bool) {
        let receive = self.queue.pop();
        let late = usize::from(planted("limit-late"));
        let left = (self.queue.len() + late).saturating_sub(usize::from(planted("limit-early")));
        let crossed = self.limit > 0 && left < self.limit;
        if crossed && !planted("limit-kept") {
            self.limit = 0;
        }
        (receive, crossed)
    }
}
