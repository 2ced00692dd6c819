//! A fixed delay in cycles, without an event per item.

use std::iter::Flatten;
use std::slice::Iter;

/// A ring of lists, one per coming cycle.
pub(super) struct Delay<T> {
    slots: Vec<Vec<T>>,
    held: usize,
}

impl<T> Delay<T> {
    /// For delays of 1 to `most` cycles.
    pub fn new(most: u32) -> Delay<T> {
        let slots = (most as usize + 1).next_power_of_two();
        Delay { slots: (0..slots).map(|_| Vec::new()).collect(), held: 0 }
    }

    #[inline]
    pub fn put(&mut self, cycle: u64, item: T) {
        let mask = self.slots.len() as u64 - 1;
        self.slots[(cycle & mask) as usize].push(item);
        self.held += 1;
    }

    /// Takes everything for this cycle. Return the list with [`Delay::recycle`].
    #[inline]
    pub fn take(&mut self, cycle: u64) -> Vec<T> {
        let mask = self.slots.len() as u64 - 1;
        let items = std::mem::take(&mut self.slots[(cycle & mask) as usize]);
        self.held -= items.len();
        items
    }

    /// Recycles the memory of a taken list.
    #[inline]
    pub fn recycle(&mut self, cycle: u64, mut items: Vec<T>) {
        items.clear();
        let mask = self.slots.len() as u64 - 1;
        let slot = &mut self.slots[(cycle & mask) as usize];
        if slot.is_empty() {
            *slot = items;
        }
    }

    /// The first cycle at or after `cycle` that has items.
    pub fn next(&self, cycle: u64) -> Option<u64> {
        if self.held == 0 {
            return None;
        }
        let mask = self.slots.len() as u64 - 1;
        (cycle..=cycle + mask).find(|at| !self.slots[(at & mask) as usize].is_empty())
    }

    /// All items in the delay line.
    pub fn iter(&self) -> Flatten<Iter<'_, Vec<T>>> {
        self.slots.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::Delay;

    /// A line for 5 cycles gives what is put for a cycle in that cycle, and says what comes next.
    #[test]
    fn items_come_in_their_cycle() {
        let mut line = Delay::new(5);
        assert_eq!((line.next(0), line.iter().count()), (None, 0));
        line.put(3, 'a');
        line.put(5, 'b');
        line.put(3, 'c');
        assert_eq!((line.next(0), line.next(3), line.next(4)), (Some(3), Some(3), Some(5)));
        assert_eq!(line.iter().collect::<String>(), "acb");
        let items = line.take(3);
        assert_eq!(items, ['a', 'c']);
        line.recycle(3, items);
        assert_eq!((line.next(0), line.take(4)), (Some(5), vec![]));
        line.put(10, 'd');
        assert_eq!((line.take(5), line.next(6), line.take(10)), (vec!['b'], Some(10), vec!['d']));
        assert_eq!((line.next(6), line.iter().count()), (None, 0));
    }
}
