//! The receives that wait at one queue pair, or at a shared receive queue.

use bellwire_device::Buffer;
use std::mem::MaybeUninit;

/// A buffer that waits for a message.
#[derive(Debug)]
pub(crate) struct Receive {
    pub(crate) buffer: Buffer,
    pub(crate) context: u64,
}

/// Receives in the order in which they were posted: a ring that grows to the largest number posted
/// at once.
///
/// Every message looks at the oldest one and takes it out. Each costs a mask and a move.
#[derive(Default)]
pub(crate) struct ReceiveQueue {
    /// Their number is a power of two, or zero. Those from `oldest` to `next`, both modulo this
    /// number, hold a receive. The others are empty.
    slots: Box<[MaybeUninit<Receive>]>,
    oldest: usize,
    next: usize,
}

impl ReceiveQueue {
    /// An empty queue with room for `capacity` before it grows.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        let slots = Box::new_uninit_slice(capacity.next_power_of_two());
        ReceiveQueue { slots, oldest: 0, next: 0 }
    }

    #[inline(always)]
    pub(crate) fn len(&self) -> usize {
        self.next.wrapping_sub(self.oldest)
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.next == self.oldest
    }

    #[inline(always)]
    fn place(&self, index: usize) -> usize {
        index & self.slots.len().wrapping_sub(1)
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, buffer: Buffer, context: u64) {
        if self.len() == self.slots.len() {
            self.grow();
        }
        let place = self.place(self.next);
        // SAFETY: `grow` left at least one slot, so the mask keeps the place below their number.
        unsafe { self.slots.get_unchecked_mut(place) }.write(Receive { buffer, context });
        self.next = self.next.wrapping_add(1);
    }

    #[cold]
    fn grow(&mut self) {
        let mut larger = ReceiveQueue::with_capacity((2 * self.slots.len()).max(16));
        while let Some(Receive { buffer, context }) = self.pop() {
            larger.push(buffer, context);
        }
        *self = larger;
    }

    /// The oldest receive. The caller may look at it, then take it out or leave it.
    #[inline(always)]
    pub(crate) fn front(&mut self) -> Option<Front<'_>> {
        if self.is_empty() {
            return None;
        }
        let place = self.place(self.oldest);
        // SAFETY: the queue is not empty, so there are slots, and the mask keeps the place below
        // their number.
        let slot = unsafe { self.slots.get_unchecked_mut(place) };
        Some(Front { slot, oldest: &mut self.oldest })
    }

    /// Takes the oldest receive out.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<Receive> {
        Some(self.front()?.take())
    }

    /// All of them, oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Receive> {
        // SAFETY: these slots hold receives.
        (0..self.len())
            .map(|n| unsafe { self.slots[self.place(self.oldest + n)].assume_init_ref() })
    }
}

/// The oldest receive of a queue.
pub(crate) struct Front<'a> {
    slot: &'a mut MaybeUninit<Receive>,
    oldest: &'a mut usize,
}

impl Front<'_> {
    #[inline(always)]
    pub(crate) fn buffer(&mut self) -> &mut Buffer {
        // SAFETY: the queue is not empty, so the slot of its oldest receive holds one.
        unsafe { &mut self.slot.assume_init_mut().buffer }
    }

    #[inline(always)]
    pub(crate) fn take(self) -> Receive {
        *self.oldest = self.oldest.wrapping_add(1);
        // SAFETY: as above; the queue no longer counts the slot.
        unsafe { self.slot.assume_init_read() }
    }
}

impl Iterator for ReceiveQueue {
    type Item = Receive;

    fn next(&mut self) -> Option<Receive> {
        self.pop()
    }
}

impl Drop for ReceiveQueue {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Receives come out whole and in the order in which they went in, at any fill level, across
    /// the wrap, and while it grows.
    #[test]
    fn receives_come_out_as_they_went_in() {
        for start in [0, usize::MAX - 7] {
            let mut queue = ReceiveQueue::default();
            (queue.oldest, queue.next) = (start, start);
            let (mut pushed, mut popped) = (0, 0);
            for fill in [0, 1, 16, 3, 17, 40, 2, 90, 64, 0, 5] {
                while pushed - popped < fill {
                    queue.push(vec![pushed as u8; 3].into(), pushed);
                    pushed += 1;
                }
                assert_eq!(queue.len() as u64, pushed - popped);
                let contexts: Vec<u64> = queue.iter().map(|receive| receive.context).collect();
                assert_eq!(contexts, (popped..pushed).collect::<Vec<_>>());
                while pushed - popped > fill / 2 {
                    assert_eq!(queue.front().map(|mut front| front.buffer().len()), Some(3));
                    let out = queue.pop().expect("it is not empty");
                    assert_eq!(out.context, popped);
                    assert_eq!(out.buffer.into_vec(), Some(vec![popped as u8; 3]));
                    popped += 1;
                }
            }
            assert!(!queue.is_empty());
        }
    }
}
