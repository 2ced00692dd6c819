//! Numbers of places: the protocol knows paths by number only.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::canary::planted;
use crate::reliable::PathId;

/// Most places with a number at once: four for each of 1,024 links, and as many for others.
pub const PLACES: usize = 8_192;

/// Places that frames go to and come from, by number. When all numbers are taken, unused places
/// lose theirs. A number is never given to another place.
///
/// ```text
///   63                              16 15            0
///   +---------------------------------+--------------+
///   | how many had this slot before   | slot         |   a number
///   +---------------------------------+--------------+
/// ```
pub struct Places<P> {
    slots: Vec<Slot<P>>,
    free: Vec<u16>,
    numbers: BTreeMap<P, PathId>,
    /// The place asked for last: frames come in bursts.
    last: Option<(P, PathId)>,
}

struct Slot<P> {
    place: Option<P>,
    generation: u64,
}

impl<P: Copy + Ord> Places<P> {
    /// The number of a place. `used` yields all numbers that must stay, fewer than [`PLACES`]. It
    /// is called only if all numbers are taken.
    #[inline]
    pub fn number<Used: Iterator<Item = PathId>>(
        &mut self,
        place: P,
        used: impl FnOnce() -> Used,
    ) -> PathId {
        if let Some(number) = self.known_number(place) {
            return number;
        }
        let is_full = self.free.is_empty() && self.slots.len() >= PLACES;
        if is_full && !planted("discovery-endless-places") {
            self.sweep(used());
        }
        let number = self.add(place);
        self.last = Some((place, number));
        number
    }

    /// The number of a place, if it has one.
    #[inline]
    pub fn known_number(&mut self, place: P) -> Option<PathId> {
        match self.last {
            Some((last, number)) if last == place => Some(number),
            _ => {
                let number = *self.numbers.get(&place)?;
                self.last = Some((place, number));
                Some(number)
            }
        }
    }

    fn add(&mut self, place: P) -> PathId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { place: None, generation: 0 });
            self.slots.len() as u16 - 1
        });
        let slot = &mut self.slots[index as usize];
        slot.place = Some(place);
        let number = PathId(slot.generation << 16 | index as u64);
        self.numbers.insert(place, number);
        number
    }

    /// Forgets all places whose numbers are not in use.
    fn sweep(&mut self, used: impl Iterator<Item = PathId>) {
        let used: alloc::collections::BTreeSet<PathId> = used.collect();
        self.last = None;
        let Places { slots, free, numbers, .. } = self;
        numbers.retain(|_, number| {
            let is_used = used.contains(number);
            if !is_used {
                let index = number.0 as u16;
                let slot = &mut slots[index as usize];
                slot.place = None;
                slot.generation += 1;
                free.push(index);
            }
            is_used
        });
    }

    /// The place with this number; `None` if it was forgotten.
    #[inline]
    pub fn place(&self, number: PathId) -> Option<P> {
        let slot = self.slots.get(number.0 as usize & 0xffff)?;
        slot.place.filter(|_| slot.generation == number.0 >> 16)
    }

    /// Places that have a number.
    pub fn count(&self) -> usize {
        self.numbers.len()
    }
}

impl<P: Copy + Ord> Default for Places<P> {
    fn default() -> Self {
        Places { slots: Vec::new(), free: Vec::new(), numbers: BTreeMap::new(), last: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made-up places do not fill the table, and do not take the numbers of places in use.
    #[test]
    fn places_that_nobody_uses_are_forgotten() {
        let mut places = Places::default();
        let none = core::iter::empty::<PathId>;
        let friend = places.number(7, none);
        let first = places.number(1_000, none);
        for place in 0..30_000_u32 {
            let number = places.number(1_000 + place, || core::iter::once(friend));
            assert_eq!(places.place(number), Some(1_000 + place));
            assert!(places.count() <= PLACES);
        }
        assert_eq!((places.place(friend), places.number(7, none)), (Some(7), friend));
        // The slot has another owner, and the old number does not lead there.
        assert_eq!(places.place(first), None);
        assert_ne!(places.number(1_000, || core::iter::once(friend)), first);
        assert_eq!(places.place(PathId(u64::MAX)), None);
    }
}
