//! A queue from whose middle entries are taken: receives and messages that wait for each other.

/// Entries in the order in which they came.
pub(crate) struct Queue<T> {
    slots: Vec<Slot<T>>,
    first: u32,
    last: u32,
    free: u32,
    length: usize,
}

struct Slot<T> {
    value: Option<T>,
    previous: u32,
    next: u32,
}

/// No slot.
const NONE: u32 = u32::MAX;

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Queue { slots: Vec::new(), first: NONE, last: NONE, free: NONE, length: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Appends `value`; returns its place.
    #[inline]
    pub(crate) fn push(&mut self, value: T) -> u32 {
        let slot = Slot { value: Some(value), previous: self.last, next: NONE };
        let at = match self.free {
            NONE => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
            at => {
                self.free = self.slots[at as usize].next;
                self.slots[at as usize] = slot;
                at
            }
        };
        match self.last {
            NONE => self.first = at,
            last => self.slots[last as usize].next = at,
        }
        self.last = at;
        self.length += 1;
        at
    }

    /// The place of the oldest entry that is `wanted`.
    // Always inlined: the operands of `wanted` can stay in registers then.
    #[inline(always)]
    pub(crate) fn find(&self, wanted: impl Fn(&T) -> bool) -> Option<u32> {
        let mut at = self.first;
        while let Some(slot) = self.slots.get(at as usize) {
            if slot.value.as_ref().is_some_and(&wanted) {
                return Some(at);
            }
            at = slot.next;
        }
        None
    }

    /// The entry at a place.
    #[inline(always)]
    pub(crate) fn at(&mut self, at: u32) -> &mut T {
        self.slots[at as usize].value.as_mut().expect("it was found there")
    }

    /// Removes the entry at a place.
    #[inline(always)]
    pub(crate) fn take(&mut self, at: u32) -> T {
        let value = self.slots[at as usize].value.take().expect("it was found there");
        self.unlink(at);
        value
    }

    /// Drops the entry at a place, where it is.
    #[inline(always)]
    pub(crate) fn remove(&mut self, at: u32) {
        self.slots[at as usize].value = None;
        self.unlink(at);
    }

    #[inline(always)]
    fn unlink(&mut self, at: u32) {
        let slot = &mut self.slots[at as usize];
        let (previous, next) = (slot.previous, slot.next);
        slot.next = self.free;
        self.free = at;
        match previous {
            NONE => self.first = next,
            previous => self.slots[previous as usize].next = next,
        }
        match next {
            NONE => self.last = previous,
            next => self.slots[next as usize].previous = previous,
        }
        self.length -= 1;
    }

    /// Removes all entries that are `unwanted`, oldest first.
    pub(crate) fn drain(&mut self, unwanted: impl Fn(&T) -> bool) -> Vec<T> {
        let mut out = Vec::new();
        while let Some(at) = self.find(&unwanted) {
            out.push(self.take(at));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries leave from any place, the others stay in order, and places are reused.
    #[test]
    fn order_survives_what_is_taken_from_the_middle() {
        let mut queue = Queue::new();
        for round in 0..3 {
            for n in 0..10 {
                queue.push(n);
            }
            for (gone, unwanted) in [(4, 4), (0, 0), (9, 9)] {
                let at = queue.find(|n| *n == unwanted).unwrap();
                assert_eq!((*queue.at(at), queue.take(at)), (gone, gone), "round {round}");
            }
            assert_eq!(queue.find(|n| *n == 4), None);
            assert_eq!(queue.drain(|n| n % 2 == 1), [1, 3, 5, 7]);
            assert_eq!(queue.len(), 3);
            assert_eq!(queue.drain(|_| true), [2, 6, 8]);
            assert!(queue.slots.len() == 10 && queue.find(|_| true).is_none());
        }
    }
}
