//! Objects with handles that go stale: a slot number to index with, and a generation to check.

use std::sync::atomic::{AtomicU32, Ordering};

/// Each generation is used once per process, until the counter wraps after 2^32 objects. So a stale
/// handle, or one of another function, is detected.
static GENERATIONS: AtomicU32 = AtomicU32::new(1);

/// A generation that no other object has.
pub(crate) fn next_generation() -> u32 {
    // Relaxed: only uniqueness matters.
    GENERATIONS.fetch_add(1, Ordering::Relaxed)
}

/// Slots, free or in use.
pub(crate) struct Table<T> {
    slots: Vec<Slot<T>>,
    /// Freed slots, oldest first: a number is reused as late as possible.
    free: std::collections::VecDeque<u32>,
    /// Most objects that the table can hold.
    pub(crate) limit: usize,
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Table<T> {
    /// At most `limit` objects at once, in slots from 0.
    pub(crate) fn new(limit: usize) -> Self {
        Table { slots: Vec::new(), free: Default::default(), limit }
    }

    /// Inserts an object and returns its slot and generation. Returns the object if the table is
    /// full.
    pub(crate) fn insert(&mut self, value: T) -> Result<(u32, u32), T> {
        let generation = next_generation();
        let taken = Slot { generation, value: Some(value) };
        if self.slots.len() < self.limit {
            self.slots.push(taken);
            return Ok((self.slots.len() as u32 - 1, generation));
        }
        match self.free.pop_front() {
            Some(slot) => {
                self.slots[slot as usize] = taken;
                Ok((slot, generation))
            }
            None => Err(taken.value.expect("just put in")),
        }
    }

    /// The object behind a handle.
    #[inline]
    pub(crate) fn find(&self, slot: u32, generation: u32) -> Option<&T> {
        let slot = self.slots.get(slot as usize)?;
        if slot.generation == generation { slot.value.as_ref() } else { None }
    }

    /// The object behind a handle.
    #[inline]
    pub(crate) fn find_mut(&mut self, slot: u32, generation: u32) -> Option<&mut T> {
        let slot = self.slots.get_mut(slot as usize)?;
        if slot.generation == generation { slot.value.as_mut() } else { None }
    }

    /// The object in a slot.
    #[inline]
    pub(crate) fn at(&self, slot: u32) -> Option<&T> {
        self.slots.get(slot as usize)?.value.as_ref()
    }

    /// The object in a slot.
    #[inline]
    pub(crate) fn at_mut(&mut self, slot: u32) -> Option<&mut T> {
        self.slots.get_mut(slot as usize)?.value.as_mut()
    }

    /// Takes the object out; its handle is then stale.
    pub(crate) fn remove(&mut self, slot: u32, generation: u32) -> Option<T> {
        self.find(slot, generation)?;
        self.free.push_back(slot);
        self.slots[slot as usize].value.take()
    }

    /// All objects with their slots, lowest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbered = self.slots.iter().enumerate();
        numbered.filter_map(|(slot, entry)| Some((slot as u32, entry.value.as_ref()?)))
    }
}

/// The object in a slot that is known to be in use.
impl<T> std::ops::Index<u32> for Table<T> {
    type Output = T;

    #[inline]
    fn index(&self, slot: u32) -> &T {
        self.at(slot).expect("a slot that is taken")
    }
}

impl<T> std::ops::IndexMut<u32> for Table<T> {
    #[inline]
    fn index_mut(&mut self, slot: u32) -> &mut T {
        self.at_mut(slot).expect("a slot that is taken")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full table gives the object back. A slot is used again only then, the one that was freed
    /// first, and its old handle finds nothing.
    #[test]
    fn slots_are_used_again_when_none_is_new() {
        let mut table = Table::new(3);
        let handles: Vec<_> = (0..3).map(|n| table.insert(n).expect("room")).collect();
        assert_eq!(handles.iter().map(|handle| handle.0).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(table.insert(9), Err(9));
        for place in [1, 0] {
            let (slot, generation) = handles[place];
            assert_eq!(table.remove(slot, generation), Some(place as i32));
        }
        let (slot, generation) = table.insert(7).expect("a slot is free");
        assert_eq!(slot, 1);
        assert_eq!(table.find(slot, handles[1].1), None, "the old handle is stale");
        assert_eq!(table.find_mut(slot, generation), Some(&mut 7));
        assert_eq!(table.iter().collect::<Vec<_>>(), [(1, &7), (2, &2)]);
    }
}
