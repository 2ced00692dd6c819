//! A queue whose places are used again.

/// Entries in order, in places that grow in number as needed. A new entry is written in its place,
/// field by field. An entry that is built first and then moved there would be loaded as a whole
/// just after it was stored in parts, and that load waits until all earlier stores have left the
/// store buffer.
pub(crate) struct Places<T> {
    /// As many as a power of two.
    slots: Vec<T>,
    first: usize,
    length: usize,
}

impl<T: Default> Places<T> {
    /// Room for `capacity` entries at first.
    pub(crate) fn new(capacity: usize) -> Places<T> {
        let mut slots = Vec::new();
        slots.resize_with(capacity.max(1).next_power_of_two(), T::default);
        Places { slots, first: 0, length: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    #[inline]
    fn slot(&self, place: usize) -> usize {
        self.first.wrapping_add(place) & (self.slots.len() - 1)
    }

    #[inline]
    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        (place < self.length).then(|| &self.slots[self.slot(place)])
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        let slot = self.slot(place);
        (place < self.length).then(|| &mut self.slots[slot])
    }

    /// Adds an entry, and returns its place. It still has what was there before.
    #[inline(always)]
    pub(crate) fn add(&mut self) -> &mut T {
        if self.length == self.slots.len() {
            self.grow();
        }
        let slot = self.slot(self.length);
        self.length += 1;
        &mut self.slots[slot]
    }

    #[cold]
    fn grow(&mut self) {
        self.slots.rotate_left(self.first);
        self.first = 0;
        self.slots.resize_with(2 * self.length, T::default);
    }

    /// Drops the oldest entry. Its place keeps what it has.
    #[inline]
    pub(crate) fn drop_front(&mut self) {
        if self.length > 0 {
            (self.first, self.length) = (self.slot(1), self.length - 1);
        }
    }

    /// The entries from `start` on.
    #[inline]
    pub(crate) fn since(&self, start: usize) -> impl Iterator<Item = &T> {
        (start..self.length).map(|place| &self.slots[self.slot(place)])
    }

    /// The same, to be changed.
    #[inline]
    pub(crate) fn since_mut(&mut self, start: usize) -> impl Iterator<Item = &mut T> {
        let (first, length) = (self.first, self.length);
        let end = (first + length).min(self.slots.len());
        let (wrapped, straight) = self.slots.split_at_mut(first);
        let straight = &mut straight[..end - first];
        let wrapped = &mut wrapped[..length - straight.len()];
        straight.iter_mut().chain(wrapped).skip(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries keep their order while places wrap and grow.
    #[test]
    fn entries_keep_their_order() {
        let mut places = Places::<u32>::new(2);
        let (mut oldest, mut next) = (0, 0);
        for step in 0..200 {
            if step % 3 == 2 {
                places.drop_front();
                oldest += 1;
            } else {
                *places.add() = next;
                next += 1;
            }
            let wanted: Vec<u32> = (oldest..next).collect();
            assert_eq!(places.len(), wanted.len());
            assert!(places.since(0).eq(wanted.iter()));
            assert!(places.since_mut(0).map(|entry| *entry).eq(wanted.iter().copied()));
            assert!(places.since_mut(1).map(|entry| *entry).eq(wanted.iter().skip(1).copied()));
            assert_eq!(places.get(wanted.len()), None);
            assert_eq!(places.get_mut(0).copied(), wanted.first().copied());
        }
        while places.len() > 0 {
            places.drop_front();
        }
        places.drop_front();
        assert_eq!(places.get(0), None);
    }
}
