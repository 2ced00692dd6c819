//! Slots that wait for something, in turn.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A queue that holds each slot once.
#[derive(Default)]
pub(super) struct SlotList {
    queue: VecDeque<u16>,
    /// Whether each slot is in the queue.
    is_listed: Vec<bool>,
}

impl SlotList {
    /// Appends a slot, unless it is there.
    #[inline]
    pub fn push(&mut self, slot: usize) {
        if slot >= self.is_listed.len() {
            self.is_listed.resize(slot + 1, false);
        }
        if !self.is_listed[slot] {
            self.is_listed[slot] = true;
            self.queue.push_back(slot as u16);
        }
    }

    #[inline]
    pub fn contains(&self, slot: usize) -> bool {
        self.is_listed.get(slot) == Some(&true)
    }

    /// The first slot.
    #[inline]
    pub fn front(&self) -> Option<usize> {
        self.queue.front().map(|&slot| slot as usize)
    }

    /// Removes the first slot.
    #[inline]
    pub fn pop(&mut self) -> Option<usize> {
        let slot = self.queue.pop_front()? as usize;
        self.is_listed[slot] = false;
        Some(slot)
    }

    /// Moves the first slot to the end.
    #[inline]
    pub fn rotate(&mut self) {
        self.queue.rotate_left(1);
    }

    /// The slot has another owner, who may append it again.
    pub fn release(&mut self, slot: usize) {
        if let Some(is_listed) = self.is_listed.get_mut(slot) {
            *is_listed = false;
        }
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::SlotList;

    /// Each slot is listed once and in turn, until it is taken out or its owner changes.
    #[test]
    fn each_slot_is_listed_once() {
        let mut list = SlotList::default();
        assert!(list.is_empty() && !list.contains(0) && list.front().is_none());
        [4, 7, 4, 0, 7].into_iter().for_each(|slot| list.push(slot));
        assert_eq!((list.len(), list.is_empty(), list.front()), (3, false, Some(4)));
        assert_eq!(
            [0, 4, 5, 7, 8].map(|slot| list.contains(slot)),
            [true, true, false, true, false]
        );
        list.rotate();
        assert_eq!((list.pop(), list.contains(7), list.front()), (Some(7), false, Some(0)));
        list.push(7);
        list.release(0);
        list.release(99);
        assert!(!list.contains(0) && list.len() == 3);
        list.push(0);
        assert_eq!([(); 5].map(|()| list.pop()), [Some(0), Some(4), Some(7), Some(0), None]);
    }
}
