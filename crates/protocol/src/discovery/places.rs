//! Names for places: the protocol knows paths by number only.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::canary::planted;
use crate::reliable::PathId;

/// Most places with a name at once: four for each of 1,024 links, and as many for others.
pub const PLACES: usize = 8_192;

/// Places that frames go to and come from, by name. When all names are taken, unused places lose
/// theirs. A name is never given to another place.
///
/// ```text
///   63                              16 15            0
///   +---------------------------------+--------------+
///   | how many had this slot before   | slot         |   a name
///   +---------------------------------+--------------+
/// ```
pub struct Places<P> {
    slots: Vec<Slot<P>>,
    free: Vec<u16>,
    names: BTreeMap<P, PathId>,
    /// The place asked for last: frames come in bursts.
    last: Option<(P, PathId)>,
}

struct Slot<P> {
    place: Option<P>,
    generation: u64,
}

impl<P: Copy + Ord> Places<P> {
    /// No places yet.
    pub fn new() -> Self {
        Places { slots: Vec::new(), free: Vec::new(), names: BTreeMap::new(), last: None }
    }

    /// The name of a place. `used` yields all names that must stay, fewer than [`PLACES`]. It is
    /// called only if all names are taken.
    #[inline]
    pub fn name<Used: Iterator<Item = PathId>>(
        &mut self,
        place: P,
        used: impl FnOnce() -> Used,
    ) -> PathId {
        match self.last {
            Some((last, name)) if last == place => name,
            _ => self.look_up(place, used),
        }
    }

    /// The name of a place, if it has one.
    #[inline]
    pub fn known(&mut self, place: P) -> Option<PathId> {
        match self.last {
            Some((last, name)) if last == place => Some(name),
            _ => {
                let name = *self.names.get(&place)?;
                self.last = Some((place, name));
                Some(name)
            }
        }
    }

    fn look_up<Used: Iterator<Item = PathId>>(
        &mut self,
        place: P,
        used: impl FnOnce() -> Used,
    ) -> PathId {
        let name = match self.names.get(&place) {
            Some(&name) => name,
            None => {
                let is_full = self.free.is_empty() && self.slots.len() >= PLACES;
                if is_full && !planted("discovery-endless-places") {
                    self.sweep(used());
                }
                self.add(place)
            }
        };
        self.last = Some((place, name));
        name
    }

    fn add(&mut self, place: P) -> PathId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { place: None, generation: 0 });
            self.slots.len() as u16 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.place = Some(place);
        let name = PathId(slot.generation << 16 | index as u64);
        self.names.insert(place, name);
        name
    }

    /// Forgets all places whose names are not in use.
    fn sweep(&mut self, used: impl Iterator<Item = PathId>) {
        let used: alloc::collections::BTreeSet<PathId> = used.collect();
        self.last = None;
        let Places { slots, free, names, .. } = self;
        names.retain(|_, name| {
            let is_used = used.contains(name);
            if !is_used {
                let index = name.0 as u16;
                let slot = &mut slots[index as usize];
                slot.place = None;
                slot.generation += 1;
                free.push(index);
            }
            is_used
        });
    }

    /// The place with this name; `None` if it was forgotten.
    #[inline]
    pub fn place(&self, name: PathId) -> Option<P> {
        let slot = self.slots.get(name.0 as usize & 0xffff)?;
        slot.place.filter(|_| slot.generation == name.0 >> 16)
    }

    /// Places that have a name.
    pub fn count(&self) -> usize {
        self.names.len()
    }
}

impl<P: Copy + Ord> Default for Places<P> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made-up places do not fill the table, and do not take the names of places in use.
    #[test]
    fn places_that_nobody_uses_are_forgotten() {
        let mut places = Places::new();
        let none = core::iter::empty::<PathId>;
        let friend = places.name(7, none);
        let first = places.name(1_000, none);
        for place in 0..30_000_u32 {
            let name = places.name(1_000 + place, || core::iter::once(friend));
            assert_eq!(places.place(name), Some(1_000 + place));
            assert!(places.count() <= PLACES);
        }
        assert_eq!((places.place(friend), places.name(7, none)), (Some(7), friend));
        // The slot has another owner, and the old name does not lead there.
        assert_eq!(places.place(first), None);
        assert_ne!(places.name(1_000, || core::iter::once(friend)), first);
        assert_eq!(places.place(PathId(u64::MAX)), None);
    }
}
