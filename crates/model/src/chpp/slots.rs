//! Buffer management for NAPs (C-20, C-21; cHPP section 4.2): an on-chip cache of free slot
//! addresses. It is refilled from a list in host memory before it is empty.

use super::pcie::Run;
use crate::stats::Queue;
use crate::units::Time;

/// Slot addresses of one queue pair.
pub struct SlotCache {
    list: u64,
    list_entries: u64,
    capacity: usize,
    batch: usize,
    /// Free slots.
    pub cached: Queue<u64>,
    /// Addresses read from the list since the beginning.
    fetched: u64,
    /// Addresses that software has put into the list since the beginning.
    posted: u64,
    refilling: bool,
    /// Refills; each is one read.
    pub refills: u64,
}

impl SlotCache {
    /// A cache for `capacity` addresses of the list at `list`. At initialisation it has the first
    /// entries of the list, from `first`.
    pub fn new(
        list: u64,
        list_entries: u64,
        capacity: usize,
        batch: usize,
        first: impl Iterator<Item = u64>,
    ) -> SlotCache {
        let mut cached = Queue::default();
        first.take(capacity).for_each(|slot| cached.push(Time::ZERO, slot));
        let fetched = cached.len() as u64;
        SlotCache {
            list,
            list_entries,
            capacity,
            batch,
            cached,
            fetched,
            posted: list_entries,
            refilling: false,
            refills: 0,
        }
    }

    /// The read that is due: at most half of the capacity is cached, and the list has more entries.
    /// It is not returned again until it is answered.
    pub fn refill(&mut self) -> Option<Run> {
        let left = self.posted - self.fetched;
        if self.refilling || left == 0 || self.cached.len() > self.capacity / 2 {
            return None;
        }
        let index = self.fetched % self.list_entries;
        // One read does not wrap, and does not exceed the free room.
        let count = left
            .min(self.batch as u64)
            .min(self.list_entries - index)
            .min((self.capacity - self.cached.len()) as u64);
        self.refilling = true;
        Some(Run { address: self.list + 8 * index, length: 8 * count })
    }

    /// The refill got no tag: it becomes due again.
    pub fn postpone(&mut self) {
        self.refilling = false;
    }

    /// The answer to a refill.
    pub fn refilled(&mut self, addresses: &[u8], now: Time) {
        let (words, _) = addresses.as_chunks::<8>();
        words.iter().for_each(|word| self.cached.push(now, u64::from_le_bytes(*word)));
        self.fetched += words.len() as u64;
        self.refilling = false;
        self.refills += 1;
    }

    /// Software reports how many addresses it has listed since the beginning. Implausible counts
    /// are ignored.
    pub fn posted(&mut self, count: u64) {
        if count >= self.posted && count - self.fetched <= self.list_entries {
            self.posted = count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A read ends where the list ends, and brings no more than the cache has room for.
    #[test]
    fn a_refill_has_its_limits() {
        let run = |at: u64, count: u64| Some(Run { address: 8 * at, length: 8 * count });
        let mut slots = SlotCache::new(0, 6, 4, 100, 0..6);
        slots.posted = 100;
        for _ in 0..2 {
            slots.cached.pop(Time::ZERO);
        }
        // Two are left to the end of the list, and there is room for two.
        assert_eq!(slots.refill(), run(4, 2));
        let answer: Vec<u8> = [4_u64, 5].iter().flat_map(|slot| slot.to_le_bytes()).collect();
        slots.refilled(&answer, Time::ZERO);
        for _ in 0..2 {
            slots.cached.pop(Time::ZERO);
        }
        assert_eq!(slots.refill(), run(0, 2), "there is room for two");
        let mut slots = SlotCache::new(0, 5, 4, 100, 0..5);
        slots.posted = 100;
        for _ in 0..4 {
            slots.cached.pop(Time::ZERO);
        }
        assert_eq!(slots.refill(), run(4, 1), "the list ends");
    }

    /// A cache of 8 of a list of 10 addresses, refilled by 3: from half full on, not beyond the end
    /// of the list, and as far as software has listed addresses.
    // shows: C-20
    #[test]
    fn refills_are_due_at_half() {
        let mut slots = SlotCache::new(0x1000, 10, 8, 3, 100..110);
        assert_eq!((slots.cached.len(), slots.refill()), (8, None));
        let mut taken = Vec::new();
        for _ in 0..3 {
            taken.extend(slots.cached.pop(Time::ZERO));
            assert_eq!(slots.refill(), None);
        }
        taken.extend(slots.cached.pop(Time::ZERO));
        assert_eq!(taken, [100, 101, 102, 103]);
        // Two are left of the list.
        let run = Run { address: 0x1000 + 8 * 8, length: 16 };
        assert_eq!((slots.refill(), slots.refill()), (Some(run), None));
        slots.postpone();
        assert_eq!(slots.refill(), Some(run));
        let answer: Vec<u8> = [108_u64, 109].iter().flat_map(|slot| slot.to_le_bytes()).collect();
        slots.refilled(&answer, Time::ZERO);
        assert_eq!((slots.cached.len(), slots.refills, slots.refill()), (6, 1, None));
        assert_eq!(slots.cached.iter().copied().last(), Some(109));
        for _ in 0..3 {
            slots.cached.pop(Time::ZERO);
        }
        // Nothing is listed until software says so, and implausible counts say nothing.
        assert_eq!(slots.refill(), None);
        slots.posted(9);
        slots.posted(21);
        assert_eq!(slots.refill(), None);
        slots.posted(20);
        // All ten are listed again: a batch of three, from the beginning.
        assert_eq!(slots.refill(), Some(Run { address: 0x1000, length: 24 }));
        slots.refilled(&[1; 24], Time::ZERO);
        slots.cached.pop(Time::ZERO);
        slots.cached.pop(Time::ZERO);
        assert_eq!(slots.refill(), Some(Run { address: 0x1000 + 24, length: 24 }));
    }
}
