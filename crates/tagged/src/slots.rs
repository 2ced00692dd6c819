//! Numbered entries in flight. Peers repeat the numbers to us, so numbers of entries that have
//! ended are detected.

/// Numbered entries.
pub(crate) struct Slots<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
    length: usize,
    /// Generation of places that were never used.
    first: u32,
}

impl<T> Slots<T> {
    pub(crate) fn new() -> Self {
        Self::from(0)
    }

    /// Numbers begin with this generation.
    pub(crate) fn from(first: u32) -> Self {
        Slots { slots: Vec::new(), free: Vec::new(), length: 0, first }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Adds an entry. Returns its number, which is never zero.
    pub(crate) fn insert(&mut self, value: T) -> u64 {
        self.length += 1;
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push((self.first, None));
                self.slots.len() as u32 - 1
            }
        };
        let place = &mut self.slots[slot as usize];
        place.0 = place.0.wrapping_add(1).max(1);
        place.1 = Some(value);
        u64::from(place.0) << 32 | u64::from(slot)
    }

    pub(crate) fn find(&mut self, number: u64) -> Option<&mut T> {
        let (generation, value) = self.slots.get_mut(number as u32 as usize)?;
        if *generation == (number >> 32) as u32 { value.as_mut() } else { None }
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<T> {
        self.find(number)?;
        let value = self.slots[number as u32 as usize].1.take();
        self.free.push(number as u32);
        self.length -= 1;
        value
    }

    /// Numbers of all entries that are `wanted`.
    pub(crate) fn numbers(&self, wanted: impl Fn(&T) -> bool) -> Vec<u64> {
        let slots = self.slots.iter().enumerate();
        slots
            .filter(|(_, (_, value))| value.as_ref().is_some_and(&wanted))
            .map(|(slot, (generation, _))| u64::from(*generation) << 32 | slot as u64)
            .collect()
    }

    /// All entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().filter_map(|(_, value)| value.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number is invalid once its entry has ended, even if its place is reused.
    #[test]
    fn dead_numbers_are_noticed() {
        let mut slots = Slots::new();
        let first = slots.insert("first");
        assert_eq!(slots.remove(first), Some("first"));
        let second = slots.insert("second");
        assert_eq!(second as u32, first as u32, "the same place");
        assert_eq!((slots.remove(first), slots.find(first)), (None, None));
        assert_eq!((slots.find(second).copied(), slots.len()), (Some("second"), 1));
        assert_eq!(slots.numbers(|_| true), [second]);
        assert_eq!(slots.remove(u64::MAX), None);
    }
}
