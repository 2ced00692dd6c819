//! Completion queues of a program.

use crate::completion::WorkCompletion;
use crate::events::EventQueue;
use std::collections::VecDeque;
use std::sync::Arc;

/// Handle of a completion queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CqId(pub(crate) u32);

/// Which completion raises the next event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Armed {
    No,
    Solicited,
    Any,
}

/// Finished work requests, oldest first.
pub(crate) struct WorkQueue {
    ring: VecDeque<WorkCompletion>,
    depth: usize,
    armed: Armed,
    channel: Option<Arc<EventQueue<usize>>>,
    /// The program's number of this queue.
    pub(crate) object: usize,
    /// Queue pairs that complete here; both sides count.
    pub(crate) users: usize,
    /// A completion found no room. The queue takes no more.
    pub(crate) overrun: bool,
}

impl WorkQueue {
    pub(crate) fn new(
        depth: usize,
        channel: Option<Arc<EventQueue<usize>>>,
        object: usize,
    ) -> WorkQueue {
        let (ring, armed) = (VecDeque::with_capacity(depth.min(4096)), Armed::No);
        WorkQueue { ring, depth, armed, channel, object, users: 0, overrun: false }
    }

    /// Adds a completion. `false`: there was no room for the first time.
    // Always inlined: a completion in memory would be loaded as a whole just after it was stored in
    // parts.
    #[inline(always)]
    pub(crate) fn push(&mut self, completion: WorkCompletion, solicited: bool) -> bool {
        if !self.has_room() {
            return std::mem::replace(&mut self.overrun, true);
        }
        let failed = completion.status != crate::WorkStatus::Success;
        self.ring.push_back(completion);
        if self.armed != Armed::No && (self.armed == Armed::Any || solicited || failed) {
            self.armed = Armed::No;
            if let Some(channel) = &self.channel {
                channel.push(self.object);
            }
        }
        true
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<WorkCompletion> {
        self.ring.pop_front()
    }

    /// The oldest completion, where it is.
    #[inline]
    pub(crate) fn front(&self) -> Option<&WorkCompletion> {
        self.ring.front()
    }

    /// Drops the oldest completion, which was read.
    #[inline]
    pub(crate) fn drop_front(&mut self) {
        self.ring.pop_front();
    }

    /// Whether the next completion is kept.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.ring.len() < self.depth && !self.overrun
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// The next completion raises an event; only a solicited or failed one if `solicited`.
    pub(crate) fn arm(&mut self, solicited: bool) {
        // A request for any completion is not weakened by a later one.
        if !solicited || self.armed == Armed::No {
            self.armed = if solicited { Armed::Solicited } else { Armed::Any };
        }
    }

    /// Sets another depth. `false`: more completions wait.
    pub(crate) fn resize(&mut self, depth: usize) -> bool {
        let fits = self.ring.len() <= depth;
        if fits {
            self.depth = depth;
        }
        fits
    }

    /// Drops the completions of a queue pair that is destroyed.
    pub(crate) fn forget(&mut self, queue_pair: u32) {
        self.ring.retain(|completion| completion.queue_pair != queue_pair);
    }
}
