//! The entries of a completion queue, oldest first.

use crate::abi::CqEntry;
use std::ptr::null_mut;

/// A ring of entries, each with its source. It grows when it is full.
///
/// Not a `VecDeque`: an entry is built in place here. A move would read fresh narrow stores with
/// wider loads, which defeats store forwarding and costs more than the rest of the queue's work.
pub struct Entries {
    /// The slots; their number is a power of two.
    slots: Box<[(CqEntry, u64)]>,
    first: usize,
    length: usize,
}

const NOTHING: (CqEntry, u64) =
    (CqEntry { context: null_mut(), flags: 0, len: 0, buf: null_mut(), data: 0, tag: 0 }, 0);

impl Entries {
    /// An empty ring with room for `size` entries.
    pub fn new(size: usize) -> Entries {
        let slots = vec![NOTHING; size.max(1).next_power_of_two()].into();
        Entries { slots, first: 0, length: 0 }
    }

    /// The number of entries.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Adds an entry at the end.
    #[inline(always)]
    pub fn push(&mut self, entry: CqEntry, source: u64) {
        if self.length == self.slots.len() {
            self.grow();
        }
        let place = (self.first + self.length) & (self.slots.len() - 1);
        self.slots[place] = (entry, source);
        self.length += 1;
    }

    /// The oldest entry; the ring must not be empty.
    #[inline(always)]
    pub fn first(&self) -> &(CqEntry, u64) {
        &self.slots[self.first]
    }

    /// Removes the oldest entry; the ring must not be empty.
    #[inline(always)]
    pub fn pass(&mut self) {
        self.length -= 1;
        // An empty ring restarts at its first slots, which are in the cache.
        self.first = if self.length == 0 { 0 } else { (self.first + 1) & (self.slots.len() - 1) };
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![NOTHING; 2 * self.slots.len()].into_boxed_slice();
        let (last, first) = self.slots.split_at(self.first);
        slots[..first.len()].copy_from_slice(first);
        slots[first.len()..self.length].copy_from_slice(last);
        (self.slots, self.first) = (slots, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries come out whole and in order, at any fill level, across the wrap, and when the ring
    /// grows.
    #[test]
    fn entries_come_out_as_they_went_in() {
        let mut entries = Entries::new(3);
        let (mut pushed, mut taken) = (0, 0);
        for fill in [1, 4, 3, 5, 2, 1, 9, 0, 17, 4, 33] {
            while pushed - taken < fill {
                let entry = CqEntry { len: pushed as usize, tag: !pushed, ..NOTHING.0 };
                entries.push(entry, 3 * pushed);
                pushed += 1;
            }
            while pushed - taken > fill / 2 {
                let (entry, source) = entries.first();
                assert_eq!((entry.len as u64, entry.tag, *source), (taken, !taken, 3 * taken));
                entries.pass();
                taken += 1;
            }
            assert_eq!(entries.len() as u64, pushed - taken);
        }
        assert_eq!(entries.slots.len(), 64);
    }
}
