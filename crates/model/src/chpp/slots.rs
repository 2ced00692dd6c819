//! Buffer management for NAPs (C-20, C-21; cHPP section 4.2): an on-chip cache of free slot
//! addresses. It is refilled from a list in host memory before it is empty.

use super::function::{Layout, SLOT_BYTES};
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

    /// Drops the slots in front that do not lie in the window of their function: software may list
    /// any address, and a NAP shall not reach another function's memory (C-39). Returns how many.
    pub fn drop_outside(&mut self, window: &Layout, now: Time) -> u64 {
        let mut dropped = 0;
        while let Some(&slot) = self.cached.front()
            && !window.holds(slot, SLOT_BYTES)
        {
            self.cached.pop(now);
            dropped += 1;
        }
        dropped
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
    use crate::chpp::Config;
    use crate::cycle::slot_cache::{self, COUNT_BITS, In, PAGE_SHIFT, SLOT_SHIFT};
    use crate::engine::Random;

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

    /// Slots outside of the window are dropped from the front, also one that lies in it in part.
    /// Those behind the first one inside stay.
    // shows: C-39
    #[test]
    fn slots_outside_of_the_window_are_dropped() {
        let window = Layout::new(&Config::prototype(), 1, 2);
        let (base, end) = (window.base, window.base + window.length);
        let [before, across] = [base - SLOT_BYTES, end - SLOT_BYTES / 2];
        let listed = [before, across, end, base, before, end - SLOT_BYTES, !0, end];
        let mut slots = SlotCache::new(0, 8, 8, 8, listed.into_iter());
        let mut taken = Vec::new();
        let dropped = [(); 4].map(|()| {
            let dropped = slots.drop_outside(&window, Time::ZERO);
            taken.extend(slots.cached.pop(Time::ZERO));
            dropped
        });
        assert_eq!((dropped, taken), ([3, 1, 2, 0], vec![base, end - SLOT_BYTES]));
    }

    /// What is due now; it stays due.
    fn due(slots: &mut SlotCache) -> Option<Run> {
        let run = slots.refill();
        if run.is_some() {
            slots.postpone();
        }
        run
    }

    /// The block `cycle::slot_cache` reads the same runs of the lists, at most one turn of all
    /// queue pairs after they are due. It gives the same slots, has as many, and ignores the same
    /// reports, over random NAPs, reports and answers of some queue pairs.
    // shows: C-20
    #[test]
    fn gates_give_the_same_slots() {
        assert_eq!(1 << SLOT_SHIFT, SLOT_BYTES);
        // Pages of the lists, whose slots have numbers of their own.
        let pages = [1, 0x2_0000, 0x880_0000, 0xfff_ffff];
        let slot = |pair: usize, number: u64| ((pair as u64) << 24 | number) << SLOT_SHIFT;
        for (sizes, (capacity, batch), count_bits, seed) in [
            ([256, 256, 64, 40], (32, 16), COUNT_BITS, 1),
            ([1, 2, 6, 5], (4, 2), 3, 2),
            ([1, 1, 2, 2], (8, 3), 2, 3),
        ] {
            let mut random = Random::new(seed);
            let mut gates = slot_cache::SlotCache::new(4, capacity, batch, count_bits);
            let mut caches: [SlotCache; 4] = std::array::from_fn(|pair| {
                let (list, none) = (pages[pair] << PAGE_SHIFT, std::iter::empty());
                SlotCache { posted: 0, ..SlotCache::new(list, sizes[pair], capacity, batch, none) }
            });
            for pair in 0..4 {
                gates.cycle(In {
                    host_valid: true,
                    host_opens: true,
                    host_pair: pair,
                    host_page: pages[usize::from(pair)] as u32,
                    host_count: sizes[usize::from(pair)] as u16,
                    ..In::default()
                });
            }
            // Reads that are answered, by queue pair and entries to come, and what has come.
            let mut reads: Vec<(usize, u64)> = Vec::new();
            let mut came: [Vec<u8>; 4] = Default::default();
            // What the cycle before has left behind, and what happened in all.
            let (mut dues, mut is_ignored, mut slot_out) = ([None; 4], false, 0);
            let (mut waited, mut most_waited) = ([0; 4], 0);
            let (mut none, mut ignored, mut given) = (0, 0, [0; 4]);
            for cycle in 0..200_000 {
                let now = Time::from_ps(4000 * cycle);
                let [about, from] = [(); 2].map(|()| random.below(4) as usize);
                // Software and NAPs pause now and then. An answer comes to the event-driven model
                // as a whole, so its queue pair does nothing else meanwhile.
                let reports = cycle & 8192 == 0 && random.below(2) == 0 && came[about].is_empty();
                let takes = cycle & 4096 == 0 && random.below(2) == 0 && came[from].is_empty();
                let SlotCache { posted, fetched, .. } = caches[about];
                let most = sizes[about] - (posted - fetched) + u64::from(random.below(8) == 0);
                let count = posted + random.below(most + 1);
                let mut input = In {
                    host_valid: reports,
                    host_pair: about as u8,
                    host_count: (count % (1 << count_bits)) as u16,
                    take_valid: takes,
                    take_pair: from as u8,
                    read_ready: true,
                    ..In::default()
                };
                let answers = random.below(reads.len() as u64 + 1) as usize;
                if let Some((pair, left)) = reads.get_mut(answers) {
                    let word = slot(*pair, caches[*pair].fetched + came[*pair].len() as u64 / 8);
                    came[*pair].extend(word.to_le_bytes());
                    (input.in_valid, input.in_pair, input.in_word) = (true, *pair as u8, word);
                    *left -= 1;
                }
                let out = gates.cycle(input);
                assert_eq!((out.refused, out.slot), (is_ignored, slot_out), "cycle {cycle}");
                if out.read_valid {
                    let pair = usize::from(out.read_pair);
                    let length = 8 * u64::from(out.read_count);
                    let run = Run { address: out.read_address, length };
                    assert_eq!(dues[pair].take(), Some(run), "cycle {cycle}");
                    caches[pair].refilling = true;
                    reads.push((pair, u64::from(out.read_count)));
                }
                for ((is_due, slots), waits) in dues.iter_mut().zip(&mut caches).zip(&mut waited) {
                    *is_due = due(slots);
                    *waits = if is_due.is_some() { *waits + 1 } else { 0 };
                    most_waited = most_waited.max(*waits);
                }

                if takes {
                    let has_slot = !caches[from].cached.is_empty();
                    assert_eq!(usize::from(out.cached), caches[from].cached.len());
                    assert_eq!((out.take_ready, out.lacks_slot), (has_slot, !has_slot));
                    slot_out = caches[from].cached.pop(now).unwrap_or(slot_out);
                    given[from] += u64::from(has_slot);
                    none += u64::from(!has_slot);
                }
                if reports {
                    caches[about].posted(count);
                }
                is_ignored = reports && caches[about].posted != count;
                ignored += u64::from(is_ignored);
                if reads.get(answers).is_some_and(|(_, left)| *left == 0) {
                    let (pair, _) = reads.swap_remove(answers);
                    caches[pair].refilled(&came[pair], now);
                    came[pair].clear();
                }
            }
            assert_eq!(most_waited, 4, "a turn of all queue pairs");
            assert!(none > 1000 && ignored > 100, "{none} got none, {ignored} were ignored");
            assert!(given.iter().all(|&it| it > 2 << count_bits), "{given:?}");
        }
    }
}
