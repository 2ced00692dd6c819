//! A node's host memory and software, and what its host does with the interface.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;

use bellwire_model::cycle::nic_core::{CLASSES, COUNTS, In, Out, REFILL_FAILED, TOLD};
use bellwire_model::engine::Random;
use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::entry::Entry;
use bellwire_wire::event::{EVENT_BYTES, EventRepr, Status, phase};
use bellwire_wire::primitive::Primitive;

use super::places::*;
use super::{
    BAD_STORE, FULL_FIFO, Fault, Interface, MISPLACED, Mood, NO_RING, Node, OUTSIDE, PASSED_OVER,
    Read, Seen, Shape, Told, WRONG, WRONG_GET, WRONG_PACKET,
};

impl Node {
    pub(super) fn new(
        core: Box<dyn Interface>,
        shape: Shape,
        [number, cpu, cpus]: [u8; 3],
        seed: u64,
        fault: Fault,
    ) -> Node {
        let mut random = Random::new(seed);
        let mut memory = vec![0; (FUNCTIONS * WINDOW) as usize];
        for function in 0..FUNCTIONS {
            let at = index(window(function) + SOURCES);
            memory[at..at + SOURCE_BYTES as usize].fill_with(|| random.word() as u8);
            let at = index(edge(function) - EDGE);
            let mut same = Random::new(1);
            memory[at..at + EDGE as usize].fill_with(|| same.word() as u8);
        }
        let mut node = Node {
            core,
            shape,
            number,
            cpu,
            cpus,
            random,
            memory,
            host: VecDeque::new(),
            bells: VecDeque::new(),
            reads: Vec::new(),
            piece: None,
            written: 0,
            network: VecDeque::new(),
            credits: [0; CLASSES],
            read: vec![0; 8 * FUNCTIONS as usize],
            listed: vec![0; PAIRS as usize],
            slots: vec![VecDeque::new(); PAIRS as usize],
            due: BTreeMap::new(),
            arrives: BTreeMap::new(),
            next: vec![(0, 0); FUNCTIONS as usize],
            fault,
            seen: Seen::default(),
            mood: Mood { reads: 6, writes: 6, to: 6, from: 6, completes: 6, polls: 6 },
            errs: false,
            must: Told::default(),
            told: Told::default(),
            counts: [0; COUNTS],
        };
        node.open();
        node
    }

    /// Software opens windows, queue pairs, rings and lists of slots.
    fn open(&mut self) {
        for function in 0..FUNCTIONS {
            self.host.push_back(In {
                keys_valid: true,
                keys_window: true,
                keys_function: function as u8,
                keys_base: (window(function) >> 12) as u32,
                keys_pages: PAGES[function as usize] as u32,
                ..In::default()
            });
        }
        for pair in 0..4 * FUNCTIONS {
            let base = window(pair / 4);
            self.host.push_back(In {
                keys_valid: true,
                keys_opens: true,
                keys_pair: pair as u8,
                keys_key: key(self.number, pair),
                ..In::default()
            });
            for ring in [2 * pair, 2 * pair + 1] {
                if !hears(ring / 2, false) || (pair >= PAIRS && ring == 2 * pair) {
                    continue;
                }
                self.host.push_back(In {
                    rings_valid: true,
                    rings_opens: true,
                    rings_ring: ring as u8,
                    rings_base: ring_address(ring) / EVENT_BYTES as u64,
                    rings_count: ring_entries(ring) as u16,
                    ..In::default()
                });
            }
            if pair >= PAIRS {
                continue;
            }
            self.host.push_back(In {
                slots_valid: true,
                slots_opens: true,
                slots_pair: pair as u8,
                slots_page: ((base + LISTS) >> 12) as u32 + pair as u32 % 4,
                slots_count: list_entries(pair) as u16,
                ..In::default()
            });
            // One entry is left for what is none.
            for slot in 0..list_entries(pair) - 1 {
                self.list(pair, base + SLOTS + (pair % 4 * LONGEST_LIST + slot) * SLOT_BYTES);
            }
        }
    }

    /// Software lists a free slot of a queue pair.
    fn list(&mut self, pair: u64, slot: u64) {
        let entry = window(pair / 4) + LISTS + pair % 4 * 4096;
        self.slots[pair as usize].push_back(slot);
        let listed = &mut self.listed[pair as usize];
        let at = index(entry + *listed % list_entries(pair) * 8);
        *listed += 1;
        self.memory[at..at + 8].copy_from_slice(&slot.to_le_bytes());
        self.host.push_back(In {
            slots_valid: true,
            slots_pair: pair as u8,
            slots_count: (*listed % 512) as u16,
            ..In::default()
        });
    }

    /// A NAP has used this slot, which is free again. Before it, software may list what is none.
    fn reuse(&mut self, pair: u64, slot: u64) {
        let is_slot = |slot: &u64| {
            let is_inside = *slot / WINDOW * WINDOW == window(pair / 4);
            is_inside && slot.is_multiple_of(SLOT_BYTES)
        };
        let slots = &mut self.slots[pair as usize];
        if let Some(wrong) = slots.front().copied().filter(|slot| !is_slot(slot)) {
            slots.pop_front();
            let is_address = wrong.is_multiple_of(SLOT_BYTES) && wrong < 1 << ADDRESS_BITS;
            self.must.told[PASSED_OVER] += u64::from(is_address);
        }
        assert_eq!(slots.pop_front(), Some(slot), "slots are used in their order");
        if slots.iter().all(is_slot) && self.random.below(2) == 0 {
            // Another function's slot, or a bit that is zero in the address of each.
            let below = u64::from(SLOT_BYTES.ilog2());
            let bit = self.random.below(below + u64::from(u64::BITS - ADDRESS_BITS));
            let wrong = match self.random.below(8) {
                0 => window((pair / 4 + 1) % FUNCTIONS) + SLOTS,
                _ if bit < below => slot | 1 << bit,
                _ => slot | 1 << (bit - below + u64::from(ADDRESS_BITS)),
            };
            self.list(pair, wrong);
        }
        self.list(pair, slot);
    }

    /// Software does what must be dropped or refused.
    fn err(&mut self) {
        let store = In { store_address: 7 << 12, store_bytes: 8, ..In::default() };
        // A descriptor of 32 bytes outside of the window.
        let bell = In { store_data: [32 << 48, 0], ..store };
        match self.random.below(6) {
            0 => {
                self.must.told[BAD_STORE] += 1;
                self.bells.push_back(In { store_bytes: 4, ..bell });
            }
            // The function has no ring for the event.
            at @ 1..=2 => {
                let count = if at == 1 { 1 } else { 2 * self.shape.bells };
                self.must.told[NO_RING] += count as u64;
                self.bells.extend(std::iter::repeat_n(bell, count));
            }
            at => {
                self.must.refused[at as usize - 3] += 1;
                self.host.push_back(match at {
                    3 => In {
                        keys_valid: true,
                        keys_window: true,
                        keys_function: 7,
                        keys_base: (1 << 28) - 1,
                        keys_pages: 2,
                        ..In::default()
                    },
                    // More records than a run writes there.
                    4 => In {
                        rings_valid: true,
                        rings_ring: 63,
                        rings_count: 1 << 12,
                        ..In::default()
                    },
                    _ => In { slots_valid: true, slots_pair: 31, slots_count: 1, ..In::default() },
                });
            }
        }
    }

    pub(super) fn bytes(&self, address: u64, length: u64) -> Vec<u8> {
        self.memory[index(address)..][..length as usize].to_vec()
    }

    /// Entries of a list in a function's sources with this sum, and their bytes.
    pub(super) fn sources(&mut self, function: u64, sum: u64, breaks: bool) -> Vec<Entry> {
        let (mut entries, mut left) = (Vec::new(), sum);
        let count = 1 + self.random.below(3);
        for at in 1..=count {
            let length = if at == count { left } else { self.random.below(left + 1) };
            let area = if breaks && at == count {
                BROKEN..SOURCES + SOURCE_BYTES
            } else {
                SOURCES..BROKEN
            };
            let place = self.random.below(area.end - area.start - length);
            entries.push(Entry { address: window(function) + area.start + place, length });
            left -= length;
        }
        entries
    }

    /// Entries of fresh places in a function's destinations.
    pub(super) fn targets(&mut self, function: u64, sum: u64) -> Vec<Entry> {
        let (mut entries, mut left) = (Vec::new(), sum);
        let count = 1 + self.random.below(3);
        for at in 1..=count {
            let length = if at == count { left } else { self.random.below(left + 1) };
            let next = &mut self.next[function as usize].1;
            *next += self.random.below(9);
            if *next + length > SLOTS - TARGETS {
                // A test does not get so far, and only a test looks at them.
                *next = 0;
            }
            entries.push(Entry { address: window(function) + TARGETS + *next, length });
            *next += length;
            left -= length;
        }
        entries
    }

    fn change_mood(&mut self) {
        let mut rate = || [2, 4, 6, 8][self.random.below(4) as usize];
        let [reads, writes, to, from, completes, polls] = [(); 6].map(|()| rate());
        self.mood = Mood { reads, writes, to, from, completes, polls };
    }

    /// The host's registers, doorbells, completions, and what the network brings.
    pub(super) fn input(&mut self) -> In {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        if self.errs && self.random.below(512) == 0 {
            self.err();
        }
        let Node { cpu, cpus, .. } = *self;
        let mut input = In { cpu, cpus, ..In::default() };
        if self.random.below(4) == 0
            && let Some(host) = self.host.pop_front()
        {
            input = In { cpu, cpus, ..host };
        }
        if self.host.is_empty()
            && self.random.below(4) == 0
            && let Some(bell) = self.bells.pop_front()
        {
            input.store_valid = true;
            input.store_last = true;
            input.store_address = bell.store_address;
            input.store_bytes = bell.store_bytes;
            input.store_data = bell.store_data;
        }
        let mood = self.mood;
        input.read_ready = self.random.below(8) < mood.reads;
        input.write_ready = self.random.below(8) < mood.writes;
        input.to_ready = self.random.below(8) < mood.to;
        self.complete(&mut input);
        for class in 0..CLASSES {
            input.to_credit[class] = self.credits[class] > 0 && self.random.below(2) == 0;
            self.credits[class] -= u64::from(input.to_credit[class]);
        }
        if let Some(beat) = self.network.front().filter(|_| self.random.below(8) < mood.from) {
            input.from_valid = true;
            input.from_class = beat.from_class;
            input.from_last = beat.from_last;
            input.from_to = beat.from_to;
            input.from_data = beat.from_data;
        }
        input
    }

    /// A beat of a completion of any read.
    fn complete(&mut self, input: &mut In) {
        if self.piece.is_none() && !self.reads.is_empty() && self.random.below(3) > 0 {
            let at = self.random.below(self.reads.len() as u64) as usize;
            let Read { tag, address, bytes, fails } = self.reads[at];
            let cut = (64 * (1 + self.random.below(2)) - address % 64).min(bytes);
            let says = In {
                in_tag: tag,
                in_failed: fails,
                in_bytes: cut as u16,
                in_remaining: bytes as u16,
                ..In::default()
            };
            self.piece = Some((says, address, cut));
            if fails || cut == bytes {
                self.reads.swap_remove(at);
            } else {
                (self.reads[at].address, self.reads[at].bytes) = (address + cut, bytes - cut);
            }
        }
        let rate = self.mood.completes;
        let piece = self.piece.filter(|_| self.random.below(8) < rate);
        let Some((says, address, left)) = piece else { return };
        let first = address / LANES * LANES;
        let mut data = self.words(first);
        if self.fault == Fault::Turned && self.random.below(64) == 0 {
            data[1] ^= 1 << 17;
        }
        let here = (LANES - address % LANES).min(left);
        input.in_valid = true;
        input.in_last = says.in_failed || here == left;
        input.in_tag = says.in_tag;
        if self.fault == Fault::Mixed && self.random.below(64) == 0 {
            input.in_tag = (says.in_tag + 1) % self.shape.tags as u8;
        }
        (input.in_failed, input.in_bytes) = (says.in_failed, says.in_bytes);
        (input.in_remaining, input.in_data) = (says.in_remaining, data);
        self.piece = (!input.in_last).then_some((says, address + here, left - here));
    }

    /// The two words of a beat of memory.
    fn words(&self, at: u64) -> [u64; 2] {
        [0, 8].map(|from: usize| {
            let at = index(at) + from;
            u64::from_le_bytes(self.memory[at..at + 8].try_into().expect("8 bytes"))
        })
    }

    /// What the core has done with it. Says which beat goes into the network.
    pub(super) fn note(&mut self, input: &In, out: &Out) -> Option<In> {
        let is_right = |at: &usize| *at != REFILL_FAILED && !WRONG.contains(at);
        let told = (0..TOLD).filter(is_right).filter(|&at| out.told[at]).count();
        assert_eq!(told, 0, "nothing is dropped: {:?}", out.told);
        for (count, told) in self.told.told.iter_mut().zip(out.told) {
            *count += u64::from(told);
        }
        for (count, refused) in self.told.refused.iter_mut().zip(out.refused) {
            *count += u64::from(refused);
        }
        self.counts = out.counts;
        if out.read_valid && input.read_ready {
            let (address, bytes) = (out.read_address, u64::from(out.read_bytes));
            let at = address % WINDOW;
            assert_eq!(u64::from(out.read_function), owner(address), "whose read it is");
            assert!(at + bytes <= WINDOW && bytes > 0);
            let is_list = (LISTS..RINGS).contains(&at);
            let lacks = DESCRIPTOR_BYTES * (PLACES - 1)..DESCRIPTOR_BYTES * PLACES;
            let is_broken = (BROKEN..TARGETS).contains(&at) || lacks.contains(&at);
            let fails = is_broken || (is_list && self.random.below(8) == 0);
            // Until the time-out nothing else leaves.
            let is_forgotten = fails && self.random.below(16) == 0;
            self.seen.forgotten += u64::from(is_forgotten);
            if !is_forgotten {
                self.reads.push(Read { tag: out.read_tag, address, bytes, fails });
            }
        }
        if out.write_valid && input.write_ready {
            self.write(out);
        }
        let goes = out.to_valid && input.to_ready;
        goes.then_some(In {
            from_valid: true,
            from_class: out.to_class,
            from_last: out.to_last,
            from_to: out.to_to,
            from_data: out.to_data,
            ..In::default()
        })
    }

    /// A beat of a write.
    fn write(&mut self, out: &Out) {
        let address = out.write_address + self.written;
        let lane = address % LANES;
        let left = u64::from(out.write_bytes) - self.written;
        let here = left.min(LANES - lane);
        assert_eq!(u64::from(out.write_function), owner(address), "whose write it is");
        assert_eq!(out.write_last, here == left, "a write is whole");
        let bytes: Vec<u8> = out.write_data.iter().flat_map(|word| word.to_le_bytes()).collect();
        if self.fault != Fault::Lost || self.random.below(64) > 0 {
            let at = index(address);
            let lanes = lane as usize..(lane + here) as usize;
            self.memory[at..at + here as usize].copy_from_slice(&bytes[lanes]);
        }
        self.written = if out.write_last { 0 } else { self.written + here };
    }

    /// Software reads the next record of a ring, if it is there.
    pub(super) fn poll(&mut self, ring: u64) {
        let count = self.read[ring as usize];
        let entries = ring_entries(ring);
        let place = ring_address(ring) + count % entries * EVENT_BYTES as u64;
        let record = self.bytes(place, EVENT_BYTES as u64);
        let is_new = phase(count, NonZeroU64::new(entries).expect("it is above zero"));
        let Ok(event) = EventRepr::parse(&record) else { return };
        if event.phase != is_new {
            return;
        }
        self.read[ring as usize] += 1;
        self.host.push_back(In {
            rings_valid: true,
            rings_ring: ring as u8,
            rings_count: ((count + 1) % (1 << 13)) as u16,
            ..In::default()
        });
        assert_eq!(u64::from(event.queue_pair), ring / 2 % 4);
        if ring.is_multiple_of(2) {
            let due = self.due.remove(&event.address).expect("an operation has one event");
            assert_eq!((ring / 8, event.status), due, "{:x}", event.address);
            let due = event.status;
            self.seen.sent += 1;
            self.seen.failed += u64::from(due == Status::SourceFault);
            let refused = [Status::UnequalSums, Status::Unreachable];
            self.seen.refused += u64::from(refused.contains(&due));
            self.seen.bad += u64::from(due == Status::BadDescriptor);
            return;
        }
        let tail = event.tail.as_bytes()[..8].try_into().expect("it has a number");
        let due = self.arrives.remove(&u64::from_le_bytes(tail)).expect("it is told once");
        assert_eq!((event.primitive, event.peer, ring), (due.primitive, due.peer, due.ring));
        if due.primitive == Primitive::Nap {
            assert_eq!(event.length, due.data.len() as u64);
            assert_eq!(self.bytes(event.address, event.length), due.data, "of a NAP");
            self.reuse(ring / 2, event.address);
            self.seen.naps += 1;
        } else {
            self.seen.puts += 1;
        }
    }

    /// What was told is what software did wrong.
    pub(super) fn compare_told(&self) {
        let (mut told, must) = (self.told.told, self.must.told);
        // What has not left its FIFO lacks its ring.
        told[NO_RING] += std::mem::take(&mut told[FULL_FIFO]);
        // Nobody has asked for all that is no slot yet.
        told[REFILL_FAILED] = 0;
        told[MISPLACED] = 0;
        assert_eq!((told, self.told.refused), (must, self.must.refused), "each wrong is told once");
        let packets = must[WRONG_GET] + must[WRONG_PACKET] - self.must.astray;
        let [_, _, _, wrong_packets, wrong_targets] = self.counts.map(u64::from);
        let targets = must[OUTSIDE] + must[PASSED_OVER];
        assert_eq!((wrong_packets, wrong_targets), (packets, targets), "and counted");
    }
}
