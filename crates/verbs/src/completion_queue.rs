//! Completion queues: rings that cannot overflow.

use bellwire_device::Completion;
use std::mem::MaybeUninit;
use std::ptr::addr_of_mut;

/// Handle of a completion queue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CompletionQueue {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

/// Finished descriptors, oldest first (C-13, C-14). Each posted descriptor holds a reservation, so that there is room for its
/// completion whenever it finishes, and a program that does not poll loses nothing (C-16).
pub(crate) struct CompletionRing {
    /// As many as the depth. The `length` slots from `oldest` on hold a completion, the others nothing.
    slots: Box<[MaybeUninit<Completion>]>,
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
        let slots = Box::new_uninit_slice(depth);
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
        self.push_reserved_with(|| completion);
    }

    /// As [`CompletionRing::push_reserved`], for a completion that is made now: see [`CompletionRing::push_with`].
    #[inline(always)]
    pub(crate) fn push_reserved_with(&mut self, make: impl FnOnce() -> Completion) {
        self.release();
        self.push_with(make);
    }

    /// Uses an entry that [`CompletionRing::has_room`] promised.
    #[inline(always)]
    pub(crate) fn push(&mut self, completion: Completion) {
        self.push_with(|| completion);
    }

    /// As [`CompletionRing::push`]. The place is found before the completion is made, so that nothing between the two can panic:
    /// a value that a panic would have to drop is kept in memory instead of registers.
    #[inline(always)]
    pub(crate) fn push_with(&mut self, make: impl FnOnce() -> Completion) -> &mut Completion {
        debug_assert!(self.has_room(), "the ring holds what was reserved and no more");
        let (depth, next) = (self.slots.len(), self.oldest + self.length);
        let slot = self.slots[if next < depth { next } else { next - depth }].as_mut_ptr();
        // Field by field: built elsewhere and copied, it would be read in wider pieces than it was written in a moment before,
        // which costs more than everything else here.
        let completion = make();
        let Completion { queue_pair, operation, status, context, length, .. } = completion;
        let Completion { immediate, value, peer, buffer, chain, .. } = completion;
        // SAFETY: the slot holds nothing, so nothing is overwritten, and all fields are written before it counts.
        unsafe {
            addr_of_mut!((*slot).queue_pair).write(queue_pair);
            addr_of_mut!((*slot).operation).write(operation);
            addr_of_mut!((*slot).status).write(status);
            addr_of_mut!((*slot).context).write(context);
            addr_of_mut!((*slot).length).write(length);
            addr_of_mut!((*slot).immediate).write(immediate);
            addr_of_mut!((*slot).value).write(value);
            addr_of_mut!((*slot).peer).write(peer);
            addr_of_mut!((*slot).buffer).write(buffer);
            addr_of_mut!((*slot).chain).write(chain);
            self.length += 1;
            &mut *slot
        }
    }

    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Completion> {
        if self.length == 0 {
            return None;
        }
        let next = self.oldest + 1;
        let slot: *const Completion = self.slots[self.oldest].as_ptr();
        self.length -= 1;
        // An empty ring starts again at its first slots, which are in the cache.
        self.oldest = if self.length == 0 || next == self.slots.len() { 0 } else { next };
        // SAFETY: the oldest slot held a completion, and is not counted any more.
        Some(unsafe { slot.read() })
    }

    /// Whether there is nothing to pop.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl Drop for CompletionRing {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwire_device::{Address, Buffer, Operation, QueuePair, Status};

    fn completion(context: u64) -> Completion {
        Completion {
            queue_pair: QueuePair { number: 1, slot: 0, generation: 1 },
            operation: Operation::Receive,
            status: Status::Truncated,
            context,
            length: 3,
            immediate: Some(4),
            value: 5,
            peer: Address::new(6, 7, 8),
            buffer: Some(Buffer::Vec(vec![9; 10])),
            chain: vec![Buffer::Vec(vec![context as u8])],
        }
    }

    /// Completions come out whole and in the order in which they went in, at any fill level and across the wrap; what is left is
    /// dropped with the ring.
    // shows: C-13, C-14
    #[test]
    fn completions_come_out_as_they_went_in() {
        let mut ring = CompletionRing::new(5);
        let (mut pushed, mut popped) = (0, 0);
        for fill in [1, 5, 3, 4, 5, 2, 1, 5, 0, 5, 4] {
            while pushed - popped < fill {
                ring.push(completion(pushed));
                pushed += 1;
            }
            while pushed - popped > fill / 2 {
                let out = ring.pop().unwrap();
                assert_eq!(format!("{out:?}"), format!("{:?}", completion(popped)));
                popped += 1;
            }
            assert_eq!(ring.is_empty(), pushed == popped);
        }
        assert!(!ring.is_empty());
        drop(ring);
    }

    /// A reservation keeps its entry free, whatever else arrives.
    // shows: C-16
    #[test]
    fn reservations_keep_their_entries() {
        let mut ring = CompletionRing::new(3);
        assert!(ring.reserve() && ring.reserve());
        ring.push(completion(0));
        assert!(!ring.has_room() && !ring.reserve());
        ring.push_reserved(completion(1));
        ring.release();
        assert!(ring.has_room());
        ring.push(completion(2));
        assert!(!ring.has_room());
        assert_eq!(ring.pop().map(|out| out.context), Some(0));
        assert!(ring.has_room());
    }
}
