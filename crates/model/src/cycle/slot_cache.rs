//! `slot_cache`: the caches of free NAP slots of all queue pairs (C-19 to C-21; cHPP section 4.2),
//! as `hardware/slot_cache` builds them.
//!
//! Software lists the addresses of free slots in host memory. This block reads them before a queue
//! pair runs out of them, and gives one to each NAP. Its rules are those of the event-driven
//! model's caches, with one entry in and one slot out a cycle.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use bellwire_wire::ADDRESS_BITS;

/// Bits of the number of a queue pair: 4 of each of 8 functions.
pub const PAIR_BITS: usize = 5;
/// Bits of a count of slots in the cache of a queue pair, which has at most 32.
pub const CACHED_BITS: usize = 6;
/// Bits of a count of entries in a read: at most half of a cache.
pub const BATCH_BITS: usize = 5;
/// Bits of a count of entries in a list. The model's lists have up to 256, and all that such a
/// count can tell lie in one page: so no read crosses a page.
pub const COUNT_BITS: usize = 9;
/// Bits of the number of a byte in a page of host memory.
pub const PAGE_SHIFT: usize = 12;
/// Bits of the number of a page.
pub const PAGE_BITS: usize = ADDRESS_BITS as usize - PAGE_SHIFT;
/// Bits of the number of a byte in a slot (C-19).
pub const SLOT_SHIFT: usize = 11;
/// Bytes of an entry of a list.
const ENTRY_BYTES: u64 = 8;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The host writes.
        host_valid: bool = 1,
        /// It opens a list, or else it reports how many entries it has listed.
        host_opens: bool = 1,
        /// The queue pair.
        host_pair: u8 = PAIR_BITS,
        /// The page of the list, which begins with it.
        host_page: u32 = PAGE_BITS,
        /// The list's entries, none to close it; or the entries listed since it was opened.
        host_count: u16 = COUNT_BITS,
        /// A NAP takes a slot.
        take_valid: bool = 1,
        /// The queue pair that is asked for a slot; counts without `take_valid`, too.
        take_pair: u8 = PAIR_BITS,
        /// A read is taken, if one is offered.
        read_ready: bool = 1,
        /// An entry comes.
        in_valid: bool = 1,
        /// The queue pair whose refill it is for.
        in_pair: u8 = PAIR_BITS,
        /// Instead of this entry and all behind it, the refill has failed.
        in_failed: bool = 1,
        /// The entry.
        in_word: u64 = 64,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// What the host wrote in the cycle before cannot be, and changed nothing.
        refused: bool = 1,
        /// A slot leaves, if a NAP takes one.
        take_ready: bool = 1,
        /// None does: the list of the queue pair is closed.
        lacks_list: bool = 1,
        /// None does: no slot is in the cache.
        lacks_slot: bool = 1,
        /// Slots in the cache of the queue pair; none if its list is closed.
        cached: u8 = CACHED_BITS,
        /// Global address of the slot that was taken last; zero before the first one.
        slot: u64 = ADDRESS_BITS as usize,
        /// A read of a list is offered.
        read_valid: bool = 1,
        /// The queue pair it is for; zero if there is none.
        read_pair: u8 = PAIR_BITS,
        /// Global address of its first entry; zero if there is none.
        read_address: u64 = ADDRESS_BITS as usize,
        /// Entries, at least one; zero if there is none.
        read_count: u8 = BATCH_BITS,
        /// The entry enters.
        in_ready: bool = 1,
        /// The entry of the cycle before was dropped: no refill of its queue pair is under way.
        unexpected: bool = 1,
        /// A refill has failed in the cycle before; what did not come is asked for again.
        failed: bool = 1,
        /// The entry of the cycle before was dropped: it is not the address of a slot.
        misplaced: bool = 1,
        /// The queue pair of which one of these three is told; zero if none is.
        told_pair: u8 = PAIR_BITS,
    }
}

/// An open list, and the slots that were read from it.
#[derive(Clone, Debug)]
struct List {
    page: u64,
    entries: NonZeroU64,
    /// Entries listed since it was opened, and those of them that have come.
    posted: u64,
    fetched: u64,
    /// Free slots, oldest first.
    cached: VecDeque<u64>,
}

impl List {
    /// Entries that are listed and have not come.
    fn left(&self) -> u64 {
        self.posted - self.fetched
    }
}

/// A refill that is under way.
#[derive(Clone, Copy, Debug)]
struct Refill {
    /// Entries that have not come.
    lacks: u64,
    /// The list was closed or opened anew meanwhile.
    is_stale: bool,
}

/// The caches of an interface; all lists are closed at first.
///
/// One queue pair is looked at in every cycle. The read of one that is looked at in cycle `t` is
/// offered from `t + 1` on. An entry that enters in cycle `t` can be taken from `t + 1` on. A slot
/// that is taken in cycle `t` stands at the output from `t + 1` on. What the host writes in cycle
/// `t` counts from `t + 1` on.
#[derive(Clone, Debug)]
pub struct SlotCache {
    lists: Vec<Option<List>>,
    refills: Vec<Option<Refill>>,
    /// Slots of a queue pair in its cache.
    slots: usize,
    /// Entries of a read.
    batch: u64,
    /// Bits of a count of entries.
    count_bits: usize,
    /// The queue pair that is looked at in this cycle.
    probe: usize,
    /// The registers at the outputs; what follows the inputs of a cycle has no meaning here.
    output: Out,
}

impl SlotCache {
    /// Closed lists of `pairs` queue pairs with `slots` places each. A read has up to `batch`
    /// entries, and counts of entries have `count_bits` bits.
    ///
    /// # Panics
    /// Unless there are 2 to 32 queue pairs and 2 to 32 places, both a power of two, a read has at
    /// most half of these, and counts have 1 to 9 bits.
    pub fn new(pairs: usize, slots: usize, batch: usize, count_bits: usize) -> SlotCache {
        assert!(pairs.is_power_of_two() && (2..=1 << PAIR_BITS).contains(&pairs), "2, 4, ... 32");
        assert!(slots.is_power_of_two() && (2..1 << CACHED_BITS).contains(&slots), "2, 4, ... 32");
        assert!((1..=slots / 2).contains(&batch), "a read has at most half of the places");
        assert!((1..=COUNT_BITS).contains(&count_bits), "counts have 1 to {COUNT_BITS} bits");
        SlotCache {
            lists: vec![None; pairs],
            refills: vec![None; pairs],
            slots,
            batch: batch as u64,
            count_bits,
            probe: 0,
            output: Out::default(),
        }
    }

    /// What stands at the outputs in this cycle, by what enters.
    #[inline]
    pub fn out(&self, input: &In) -> Out {
        // Each memory has one write port, and an opening takes that of its queue pair's counts.
        let is_opened = input.host_valid && input.host_opens;
        let list = self.lists[usize::from(input.take_pair)].as_ref();
        let cached = list.map_or(0, |list| list.cached.len());
        Out {
            take_ready: cached > 0 && !is_opened,
            lacks_list: list.is_none(),
            lacks_slot: list.is_some() && cached == 0,
            cached: cached as u8,
            in_ready: !is_opened,
            ..self.output
        }
    }

    /// One cycle; all numbers of queue pairs are below those that there are.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out(&input);
        let due = self.due(self.probe);
        self.output.refused = input.host_valid && !self.host(&input);
        if input.take_valid && out.take_ready {
            let list = self.lists[usize::from(input.take_pair)].as_mut();
            self.output.slot = list.and_then(|list| list.cached.pop_front()).unwrap_or(0);
        }
        let told = (input.in_valid && out.in_ready).then(|| self.enter(&input));
        let Told { unexpected, failed, misplaced } = told.unwrap_or_default();
        let is_told = unexpected || failed || misplaced;
        let told_pair = if is_told { input.in_pair } else { 0 };
        self.output = Out { unexpected, failed, misplaced, told_pair, ..self.output };
        // An entry that comes in the cycle of its request was not asked for.
        self.ask(due, &input, input.host_valid && input.host_opens);
        out
    }

    /// Asks for what is due for the queue pair that is looked at, if the output is free. Until then
    /// no other one is looked at.
    fn ask(&mut self, due: Option<(u64, u64)>, input: &In, is_opened: bool) {
        let has_output = !self.output.read_valid || input.read_ready;
        if has_output {
            self.output = Out {
                read_valid: false,
                read_pair: 0,
                read_address: 0,
                read_count: 0,
                ..self.output
            };
        }
        if let Some((read_address, count)) = due {
            if !has_output || is_opened {
                return;
            }
            self.refills[self.probe] = Some(Refill { lacks: count, is_stale: false });
            let (read_pair, read_count) = (self.probe as u8, count as u8);
            self.output =
                Out { read_valid: true, read_pair, read_address, read_count, ..self.output };
        }
        self.probe = (self.probe + 1) % self.lists.len();
    }

    /// Address and entries of the read that is due: at most half of the places are filled, and
    /// software has listed more entries.
    fn due(&self, pair: usize) -> Option<(u64, u64)> {
        let list = self.lists[pair].as_ref()?;
        let is_low = list.cached.len() <= self.slots / 2;
        if self.refills[pair].is_some() || !is_low || list.left() == 0 {
            return None;
        }
        let index = list.fetched % list.entries;
        // One read does not wrap. It has room, as it is no more than half of the places.
        let count = list.left().min(self.batch).min(list.entries.get() - index);
        Some(((list.page << PAGE_SHIFT) + ENTRY_BYTES * index, count))
    }

    /// What the host writes; false if it cannot be.
    fn host(&mut self, input: &In) -> bool {
        let (pair, count) = (usize::from(input.host_pair), u64::from(input.host_count));
        if input.host_opens {
            // Entries that are on their way are those of the old list.
            if let Some(refill) = &mut self.refills[pair] {
                refill.is_stale = true;
            }
            self.lists[pair] = NonZeroU64::new(count).map(|entries| List {
                page: input.host_page.into(),
                entries,
                posted: 0,
                fetched: 0,
                cached: VecDeque::with_capacity(self.slots),
            });
            return true;
        }
        let Some(list) = &mut self.lists[pair] else { return false };
        let news = count.wrapping_sub(list.posted) % (1 << self.count_bits);
        let is_plausible = news <= list.entries.get() - list.left();
        if is_plausible {
            list.posted += news;
        }
        is_plausible
    }

    /// An entry comes, or word that no more do.
    fn enter(&mut self, input: &In) -> Told {
        let pair = usize::from(input.in_pair);
        let Some(refill) = &mut self.refills[pair] else {
            return Told { unexpected: true, ..Told::default() };
        };
        let is_stale = refill.is_stale;
        refill.lacks -= 1;
        if input.in_failed || refill.lacks == 0 {
            self.refills[pair] = None;
        }
        if input.in_failed {
            return Told { failed: true, ..Told::default() };
        }
        let list = self.lists[pair].as_mut().filter(|_| !is_stale);
        let Some(list) = list else { return Told::default() };
        list.fetched += 1;
        let is_slot =
            input.in_word.is_multiple_of(1 << SLOT_SHIFT) && input.in_word >> ADDRESS_BITS == 0;
        if is_slot {
            list.cached.push_back(input.in_word);
        }
        Told { misplaced: !is_slot, ..Told::default() }
    }
}

/// What is told of an entry.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    unexpected: bool,
    failed: bool,
    misplaced: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chpp::Config;

    fn host(host_pair: u8, host_count: u16) -> In {
        In { host_valid: true, host_pair, host_count, ..In::default() }
    }

    fn open(pair: u8, host_page: u32, entries: u16) -> In {
        In { host_opens: true, host_page, ..host(pair, entries) }
    }

    fn entry(in_pair: u8, in_word: u64) -> In {
        In { in_valid: true, in_pair, in_word, ..In::default() }
    }

    fn failed(pair: u8) -> In {
        In { in_failed: true, ..entry(pair, 0) }
    }

    /// The slot with this number.
    fn slot(number: u64) -> u64 {
        number << SLOT_SHIFT
    }

    /// Pair, address and entries of the read that is offered; without one they are zero.
    fn read(out: Out) -> Option<(u8, u64, u8)> {
        let told = (out.read_pair, out.read_address, out.read_count);
        assert!(out.read_valid || told == (0, 0, 0), "{told:?}");
        out.read_valid.then_some(told)
    }

    /// Some caches, driven one thing after the other.
    struct Driven(SlotCache);

    impl Driven {
        /// Four caches of four places, the first with a list of `entries` entries in page 5. A read
        /// has at most two, and counts have 3 bits.
        fn new(entries: u16) -> Driven {
            let mut driven = Driven(SlotCache::new(4, 4, 2, 3));
            assert!(driven.host(open(0, 5, entries)));
            driven
        }

        /// Whether the host may write so.
        fn host(&mut self, input: In) -> bool {
            self.0.cycle(input);
            !self.0.cycle(In::default()).refused
        }

        /// The next read that is offered, within twice as many cycles as there are queue pairs; it
        /// is taken.
        fn read(&mut self) -> Option<(u8, u64, u8)> {
            let found = (0..8).find_map(|_| read(self.0.cycle(In::default())))?;
            self.0.cycle(In { read_ready: true, ..In::default() });
            Some(found)
        }

        /// Slots with these numbers come for a queue pair.
        fn come(&mut self, pair: u8, numbers: &[u64]) {
            for &number in numbers {
                self.0.cycle(entry(pair, slot(number)));
                let told = self.0.cycle(In::default());
                assert!(!told.unexpected && !told.failed && !told.misplaced, "{number}");
            }
        }

        /// The number of the slot that a NAP gets.
        fn take(&mut self, take_pair: u8) -> Option<u64> {
            let out = self.0.cycle(In { take_valid: true, take_pair, ..In::default() });
            let given = self.0.cycle(In::default()).slot;
            out.take_ready.then_some(given >> SLOT_SHIFT)
        }

        fn cached(&mut self, take_pair: u8) -> u8 {
            self.0.cycle(In { take_pair, ..In::default() }).cached
        }

        /// What is told of an entry: unexpected, failed, misplaced, and the queue pair.
        fn told(&mut self, input: In) -> (bool, bool, bool, u8) {
            self.0.cycle(input);
            let out = self.0.cycle(In::default());
            (out.unexpected, out.failed, out.misplaced, out.told_pair)
        }
    }

    /// There is a number for each queue pair of the model's interface, a place for each slot that
    /// it caches, and a count for the longest list.
    #[test]
    fn all_queue_pairs_of_the_model_have_numbers() {
        let config = Config::prototype();
        let nic = &config.nic;
        assert_eq!(nic.functions * nic.queue_pairs, 1 << PAIR_BITS);
        assert!(nic.slot_cache < 1 << CACHED_BITS && nic.slot_batch < 1 << BATCH_BITS);
        assert!(nic.slot_batch <= nic.slot_cache / 2);
        assert!(config.host.slots <= 256 && 256 < 1 << COUNT_BITS);
        assert_eq!((ENTRY_BYTES << COUNT_BITS, PAGE_BITS), (1 << PAGE_SHIFT, 28));
    }

    /// A cache of four is read two at a time: what software has listed, while it is at most half
    /// full, and not beyond the end of the list. Slots leave in the order of the list.
    // shows: C-20
    #[test]
    fn slots_are_read_before_they_run_out() {
        let mut driven = Driven::new(5);
        assert_eq!(driven.read(), None, "nothing is listed");
        assert!(driven.host(host(0, 5)));
        assert_eq!(driven.read(), Some((0, 0x5000, 2)));
        assert_eq!(driven.read(), None, "one refill is under way");
        driven.come(0, &[10]);
        assert_eq!((driven.read(), driven.cached(0)), (None, 1));
        driven.come(0, &[11]);
        assert_eq!((driven.read(), driven.cached(0)), (Some((0, 0x5010, 2)), 2));
        driven.come(0, &[12, 13]);
        assert_eq!((driven.read(), driven.cached(0)), (None, 4), "the cache is full");
        assert_eq!((driven.take(0), driven.read()), (Some(10), None), "it is more than half full");
        // One entry is left to the end of the list, whatever else is listed.
        assert!(driven.host(host(0, 6)));
        assert_eq!((driven.take(0), driven.read()), (Some(11), Some((0, 0x5020, 1))));
        driven.come(0, &[14]);
        assert_eq!((driven.take(0), driven.read()), (Some(12), Some((0, 0x5000, 1))));
        driven.come(0, &[15]);
        assert_eq!([(); 4].map(|()| driven.take(0)), [Some(13), Some(14), Some(15), None]);
        assert_eq!(driven.read(), None, "nothing more is listed");
    }

    /// Counts of software wrap. Those that it cannot have are refused: more entries than the list
    /// has, or fewer than before. The last count again is none of them.
    #[test]
    fn counts_wrap_and_wrong_ones_are_refused() {
        let mut driven = Driven::new(3);
        for lap in 0..20_u16 {
            let before = 2 * lap % 8;
            for wrong in [4, 5, 6, 7] {
                assert!(!driven.host(host(0, (before + wrong) % 8)), "{wrong} in lap {lap}");
            }
            assert!(driven.host(host(0, before)));
            assert!(driven.host(host(0, (before + 1) % 8)));
            assert!(!driven.host(host(0, (before + 4) % 8)), "one is listed, and two have room");
            assert!(driven.host(host(0, (before + 2) % 8)));
            let mut left = 2;
            while left > 0 {
                let (pair, address, count) = driven.read().unwrap();
                let index = (2 * u64::from(lap) + 2 - left) % 3;
                assert_eq!((pair, address), (0, 0x5000 + 8 * index), "lap {lap}");
                (0..count).for_each(|_| driven.come(0, &[7]));
                left -= u64::from(count);
            }
            assert_eq!((driven.take(0), driven.take(0)), (Some(7), Some(7)));
        }
    }

    /// Lists are closed at first, and after one is opened without entries. Then they take no
    /// report, have no slot and read nothing. One that is opened anew begins with its first entry,
    /// and without slots.
    #[test]
    fn a_list_is_read_while_it_is_open() {
        let mut driven = Driven::new(3);
        let lacks = |driven: &mut Driven, take_pair| {
            let out = driven.0.cycle(In { take_pair, ..In::default() });
            (out.take_ready, out.lacks_list, out.lacks_slot)
        };
        assert_eq!(lacks(&mut driven, 3), (false, true, false));
        assert_eq!(lacks(&mut driven, 0), (false, false, true));
        assert!(!driven.host(host(3, 0)));
        for (page, listed) in [(9, 2), ((1 << PAGE_BITS) - 1, 3)] {
            assert!(driven.host(host(0, listed)));
            assert!(driven.read().is_some());
            driven.come(0, &[1, 2]);
            assert_eq!(lacks(&mut driven, 0), (true, false, false));
            assert_eq!(driven.take(0), Some(1));
            assert!(driven.host(open(0, page, 4)));
            assert_eq!((driven.cached(0), driven.take(0), driven.read()), (0, None, None));
            assert!(driven.host(host(0, 1)));
            assert_eq!(driven.read(), Some((0, u64::from(page) << PAGE_SHIFT, 1)));
            driven.come(0, &[4]);
            assert_eq!(driven.take(0), Some(4));
        }
        assert!(driven.host(host(0, 2)));
        assert!(driven.host(open(0, 9, 0)));
        assert_eq!(lacks(&mut driven, 0), (false, true, false));
        assert!(!driven.host(host(0, 0)));
        // The read that was offered before still leaves, and no other one.
        driven.read();
        assert_eq!((driven.read(), driven.cached(0)), (None, 0));
    }

    /// Entries for a list that was closed or opened anew are dropped. The next refill begins behind
    /// the last of them.
    #[test]
    fn entries_of_an_old_list_are_dropped() {
        for reopened in [0, 3] {
            let mut driven = Driven::new(3);
            assert!(driven.host(host(0, 3)));
            assert_eq!(driven.read(), Some((0, 0x5000, 2)));
            assert!(driven.host(open(0, 6, reopened)));
            driven.come(0, &[1]);
            if reopened == 0 {
                assert!(driven.host(open(0, 6, 3)));
            }
            assert!(driven.host(host(0, 3)));
            assert_eq!((driven.read(), driven.cached(0)), (None, 0));
            driven.come(0, &[2]);
            assert_eq!(driven.cached(0), 0);
            assert_eq!(driven.read(), Some((0, 0x6000, 2)));
            driven.come(0, &[3, 4]);
            assert_eq!((driven.take(0), driven.take(0)), (Some(3), Some(4)));
        }
    }

    /// A refill that fails is told. The entries that came before are kept, and the others are asked
    /// for again.
    #[test]
    fn a_failed_refill_is_asked_for_again() {
        let mut driven = Driven::new(5);
        assert!(driven.host(host(0, 3)));
        assert_eq!(driven.read(), Some((0, 0x5000, 2)));
        driven.come(0, &[1]);
        assert_eq!(driven.told(failed(0)), (false, true, false, 0));
        assert_eq!(driven.read(), Some((0, 0x5008, 2)));
        assert_eq!(driven.told(failed(0)), (false, true, false, 0));
        assert_eq!(driven.read(), Some((0, 0x5008, 2)));
        driven.come(0, &[2, 3]);
        assert_eq!([(); 4].map(|()| driven.take(0)), [Some(1), Some(2), Some(3), None]);
    }

    /// An entry that nobody asked for is dropped, and so is one that is not the address of a slot.
    /// Both are told with their queue pair, and so is a failure of nothing.
    #[test]
    fn wrong_entries_are_dropped() {
        let mut driven = Driven::new(7);
        for input in [entry(3, slot(1)), failed(3)] {
            assert_eq!(driven.told(input), (true, false, false, 3));
        }
        assert!(driven.host(open(2, 8, 7)) && driven.host(host(2, 7)));
        let last = (1 << ADDRESS_BITS) - (1 << SLOT_SHIFT);
        let words = [1, 1 << (SLOT_SHIFT - 1), 1 << ADDRESS_BITS, 1 << 63, u64::MAX, last, 0];
        for (at, word) in (0..).zip(words) {
            if at % 2 == 0 {
                assert_eq!(driven.read(), Some((2, 0x8000 + 8 * at, if at < 6 { 2 } else { 1 })));
            }
            let is_wrong = at < 5;
            let told = (false, false, is_wrong, if is_wrong { 2 } else { 0 });
            assert_eq!(driven.told(entry(2, word)), told, "{word:x}");
        }
        assert_eq!(driven.told(entry(2, 0)), (true, false, false, 2));
        assert_eq!(driven.cached(2), 2);
        assert_eq!([(); 3].map(|()| driven.take(2)), [Some((1 << 29) - 1), Some(0), None]);
    }

    /// An entry that comes in the cycle in which it is asked for is one that nobody asked for.
    #[test]
    fn no_entry_comes_with_its_request() {
        let mut caches = SlotCache::new(2, 2, 1, 3);
        caches.cycle(open(1, 1, 7));
        caches.cycle(In::default());
        caches.cycle(host(1, 7));
        // The second queue pair is looked at in this cycle.
        assert_eq!(read(caches.cycle(entry(1, slot(1)))), None);
        let out = caches.cycle(In { take_pair: 1, ..entry(1, slot(2)) });
        assert_eq!((read(out), out.unexpected, out.cached), (Some((1, 0x1000, 1)), true, 0));
        let out = caches.cycle(In { take_pair: 1, ..In::default() });
        assert_eq!((out.unexpected, out.cached), (false, 1));
    }

    /// Queue pairs are looked at in turn, and none waits longer than all others together. They do
    /// not know of each other's slots.
    #[test]
    fn queue_pairs_take_turns() {
        let mut driven = Driven::new(1);
        for pair in 1..4 {
            assert!(driven.host(open(pair, 5 + u32::from(pair), 7)));
        }
        for pair in 0..4 {
            assert!(driven.host(host(pair, 1)));
        }
        let mut order: Vec<_> = (0..4).map(|_| driven.read().unwrap()).collect();
        let turns: Vec<_> = order.iter().map(|(pair, ..)| *pair).collect();
        assert!((1..4).all(|at| turns[at] == (turns[at - 1] + 1) % 4), "{turns:?}");
        order.sort_unstable();
        assert_eq!(order, [0, 1, 2, 3].map(|pair| (pair, 0x5000 + 0x1000 * u64::from(pair), 1)));
        for pair in [2, 0, 3, 1] {
            driven.come(pair, &[10 + u64::from(pair)]);
        }
        let taken = [1, 1, 0, 3, 2].map(|pair| driven.take(pair));
        assert_eq!(taken, [Some(11), None, Some(10), Some(13), Some(12)]);
    }

    /// A report counts from the next cycle on, and the read stands at the output in the one behind
    /// that, until it is taken. An entry can be taken in the next cycle, and its slot stands at the
    /// output in the one behind that, until the next one is taken. Nothing else happens while a
    /// list is opened.
    #[test]
    fn a_cycle_is_a_cycle() {
        let mut caches = SlotCache::new(2, 2, 1, 3);
        let take = |take_pair| In { take_valid: true, take_pair, ..In::default() };
        caches.cycle(open(1, 1, 7));
        caches.cycle(open(0, 2, 7));
        assert_eq!(read(caches.cycle(host(1, 4))), None);
        // The second queue pair is looked at in every other cycle; this is one of them.
        assert_eq!(read(caches.cycle(In::default())), None);
        let one = Some((1, 0x1000, 1));
        assert_eq!(read(caches.cycle(host(0, 7))), one);
        assert_eq!(read(caches.cycle(In::default())), one);
        // The first one is due meanwhile, and keeps its turn.
        let opens = In { read_ready: true, ..open(1, 1, 7) };
        assert_eq!(read(caches.cycle(In { in_valid: true, in_pair: 1, ..opens })), one);
        assert_eq!(read(caches.cycle(host(1, 7))), None, "nothing is asked for with an opening");
        let other = Some((0, 0x2000, 1));
        let ready = In { read_ready: true, ..In::default() };
        assert_eq!(read(caches.cycle(ready)), other);
        // The entry of the old list has not entered with the opening, and is still to come.
        let out = caches.cycle(entry(1, slot(1)));
        assert_eq!((read(out), out.in_ready, out.unexpected), (None, true, false));
        // The next refill is asked for in this cycle.
        assert_eq!(read(caches.cycle(entry(0, slot(2)))), None);
        let out = caches.cycle(take(0));
        assert_eq!((read(out), out.take_ready, out.cached, out.slot), (one, true, 1, 0));
        let out = caches.cycle(In { read_ready: true, ..take(0) });
        assert_eq!((read(out), out.take_ready, out.lacks_slot), (one, false, true));
        assert_eq!(out.slot, slot(2));
        let out = caches.cycle(entry(1, slot(3)));
        assert_eq!((read(out), out.slot), (Some((0, 0x2008, 1)), slot(2)));
        let out = caches.cycle(In { take_valid: true, take_pair: 1, ..open(0, 0, 0) });
        assert_eq!((out.take_ready, out.lacks_list, out.lacks_slot), (false, false, false));
        let out = caches.cycle(take(1));
        assert_eq!((out.take_ready, out.cached, out.slot), (true, 1, slot(2)));
        assert_eq!(caches.cycle(In::default()).slot, slot(3));
    }
}
