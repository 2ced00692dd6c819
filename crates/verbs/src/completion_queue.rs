//! Completion queues: rings that cannot overflow.

use bellwire_device::Completion;
use std::collections::VecDeque;

/// Handle of a completion queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompletionQueue {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Finished descriptors, oldest first (C-13, C-14). Each posted descriptor holds a reservation, so that there is room for its
/// completion whenever it finishes, and a program that does not poll loses nothing (C-16).
#[derive(Debug)]
pub(crate) struct CompletionRing {
    entries: VecDeque<Completion>,
    depth: usize,
    reserved: usize,
    /// Queue pair sides that complete here.
    pub(crate) users: usize,
    /// Something had to wait because there was no room.
    pub(crate) starved: bool,
}

impl CompletionRing {
    pub(crate) fn new(depth: usize) -> Self {
        let entries = VecDeque::with_capacity(depth);
        CompletionRing { entries, depth, reserved: 0, users: 0, starved: false }
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// Whether one more entry can be used or reserved.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.entries.len() + self.reserved < self.depth
    }

    /// Keeps an entry free for later; `false` if there is none.
    #[inline]
    pub(crate) fn reserve(&mut self) -> bool {
        let room = self.has_room();
        self.reserved += room as usize;
        room
    }

    /// Gives a reservation up.
    #[inline]
    pub(crate) fn release(&mut self) {
        debug_assert!(self.reserved > 0, "a reservation is released once");
        self.reserved -= 1;
    }

    /// Uses a reservation.
    #[inline]
    pub(crate) fn push_reserved(&mut self, completion: Completion) {
        self.release();
        self.push(completion);
    }

    /// Uses an entry that [`CompletionRing::has_room`] promised.
    #[inline]
    pub(crate) fn push(&mut self, completion: Completion) {
        debug_assert!(self.has_room(), "the ring holds what was reserved and no more");
        self.entries.push_back(completion);
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Completion> {
        self.entries.pop_front()
    }
}
