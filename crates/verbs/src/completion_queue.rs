//! Completion queues: rings that cannot overflow.

use bellwire_device::Completion;

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
    /// As many as the depth, `None` where there is nothing. A completion is built in its slot, and moved once, out of it.
    slots: Box<[Option<Completion>]>,
    oldest: usize,
    length: usize,
    reserved: usize,
    /// Queue pair sides that complete here.
    pub(crate) users: usize,
    /// Something had to wait because there was no room.
    pub(crate) starved: bool,
}

impl CompletionRing {
    pub(crate) fn new(depth: usize) -> Self {
        let slots = (0..depth).map(|_| None).collect();
        CompletionRing { slots, oldest: 0, length: 0, reserved: 0, users: 0, starved: false }
    }

    pub(crate) fn depth(&self) -> usize {
        self.slots.len()
    }

    /// Whether one more entry can be used or reserved.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.length + self.reserved < self.slots.len()
    }

    /// Keeps an entry free for later; `false` if there is none.
    #[inline]
    pub(crate) fn reserve(&mut self) -> bool {
        let room = self.has_room();
        self.reserved += room as usize;
        room
    }

    /// Gives a reservation up.
    #[inline(always)]
    pub(crate) fn release(&mut self) {
        debug_assert!(self.reserved > 0, "a reservation is released once");
        self.reserved -= 1;
    }

    /// Uses a reservation.
    #[inline(always)]
    pub(crate) fn push_reserved(&mut self, completion: Completion) {
        self.release();
        self.push(completion);
    }

    /// Uses an entry that [`CompletionRing::has_room`] promised.
    #[inline(always)]
    pub(crate) fn push(&mut self, completion: Completion) {
        debug_assert!(self.has_room(), "the ring holds what was reserved and no more");
        let (depth, next) = (self.slots.len(), self.oldest + self.length);
        self.slots[if next < depth { next } else { next - depth }] = Some(completion);
        self.length += 1;
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Completion> {
        if self.length == 0 {
            return None;
        }
        let slot = self.oldest;
        self.oldest = if slot + 1 < self.slots.len() { slot + 1 } else { 0 };
        self.length -= 1;
        self.slots[slot].take()
    }

    /// Whether there is nothing to pop.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }
}
