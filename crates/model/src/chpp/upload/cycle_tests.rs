//! The block `cycle::upload`, with the caches of slots, the event rings, the keys and the windows
//! around it, writes what a machine of the event-driven model writes, over random packets.
//!
//! Software of the machine does not read its rings, so that neither slots nor records come back.

use std::collections::VecDeque;

use super::*;
use crate::chpp::experiments::Kind;
use crate::chpp::experiments::single::{endpoint, post_free};
use crate::chpp::{Config, Machine};
use crate::cycle::data_reorder::LANES;
use crate::cycle::event_ring::{self, EventRing as Rings};
use crate::cycle::key_window::{self, KeyWindow, PAGE_SHIFT};
use crate::cycle::line::{Beat, bytes_of};
use crate::cycle::slot_cache::{self, SlotCache as Caches};
use crate::cycle::upload::{In, Upload};
use crate::engine::Random;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::span::ByteSpan;

/// Functions and queue pairs that packets are for.
const PAIRS: [(u8, u8); 3] = [(1, 0), (1, 3), (6, 2)];
const RECORDS: u64 = 256;
const SLOTS: usize = 64;

/// Both sides start with this memory: some slots that are listed lie outside of their windows.
fn machine() -> Machine {
    let mut config = Config::prototype();
    (config.host.ring_entries, config.host.slots) = (RECORDS, SLOTS);
    let mut machine = Machine::new(&config, 1).unwrap();
    let layouts = machine.nodes()[1].layouts.clone();
    let mut api = machine.api();
    // Packets that are put into the crossbar count as those of this operation.
    post_free(&mut api, Kind::Put, (endpoint(2), endpoint(3)), 16).unwrap();
    for (function, queue_pair) in PAIRS {
        let (function, queue_pair) = (usize::from(function), usize::from(queue_pair));
        api.consumes(1, function, queue_pair, false);
        let (own, other) = (&layouts[function], &layouts[3]);
        // The model's caches have the first 32 from the beginning.
        for (at, slot) in [(33, other.free), (36, own.base + own.length), (37, own.base - 2048)] {
            let entry = own.queue_pairs[queue_pair].slot_list + 8 * at;
            api.memory_mut(entry, 8).unwrap().copy_from_slice(&slot.to_le_bytes());
        }
    }
    machine
}

/// Packets for some queue pairs of node 1, of which some are wrong.
fn packets(machine: &mut Machine, count: usize, random: &mut Random) -> Vec<Vec<u8>> {
    let layouts = machine.nodes()[1].layouts.clone();
    let mut naps = [0; PAIRS.len()];
    let mut one = || {
        let pair = random.below(PAIRS.len() as u64) as usize;
        let (function, queue_pair) = PAIRS[pair];
        let destination = Endpoint::new(1, function, queue_pair).unwrap();
        let layout = &layouts[usize::from(function)];
        let is_nap = random.below(2) == 0 && naps[pair] < SLOTS - 4;
        naps[pair] += usize::from(is_nap);
        let most = [20, 150, 2048][random.below(3) as usize];
        let length = random.below(most + 1) as usize;
        let end = layout.base + layout.length;
        let address = match random.below(16) {
            _ if is_nap => 0,
            // Near the ends of the window.
            0 => layout.base - random.below(4),
            1 => end - (length as u64 + 2).saturating_sub(random.below(4)),
            2 => layouts[3].free,
            _ => layout.free + random.below(1 << 20),
        };
        let tail: Vec<u8> = (0..random.below(17)).map(|_| random.word() as u8).collect();
        let wrong = random.below(16);
        let header = HeaderRepr {
            primitive: if is_nap { Primitive::Nap } else { Primitive::Put },
            traffic_class: 0,
            requester_id: 0,
            magic: machine.api().key(destination) ^ u8::from(wrong == 0),
            source: Endpoint::new(0, random.below(8) as u8, random.below(4) as u8).unwrap(),
            destination,
            wants_event: random.below(2) == 0,
            span: ByteSpan::new(address, length).unwrap(),
        };
        let payload: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
        let packet = PacketRepr { header, payload: &payload, tail: Tail::new(&tail).unwrap() };
        let mut bytes = vec![0; packet.buffer_len()];
        packet.emit(&mut bytes).unwrap();
        if wrong == 1 {
            // Bits that are zero in every packet.
            bytes[1] |= 1;
        }
        bytes
    };
    (0..count).map(|_| one()).collect()
}

/// The blocks, connected as in gates, and memory.
struct Gates {
    upload: Upload,
    keys: KeyWindow,
    caches: Caches,
    rings: Rings,
    /// Entries that come for refills: the queue pair, and the entry.
    entries: VecDeque<(u8, u64)>,
    base: u64,
    memory: Vec<u8>,
    /// The next byte of the write that goes on, and bytes from it on.
    place: Option<(u64, u64)>,
    counters: ReceiveCounters,
}

impl Gates {
    /// With the memory, keys, windows, lists and rings of node 1.
    fn new(machine: &mut Machine) -> Gates {
        let layouts = machine.nodes()[1].layouts.clone();
        let (base, window) = (layouts[0].base, layouts[0].length);
        let all = window as usize * layouts.len();
        let mut gates = Gates {
            upload: Upload::new(128),
            keys: KeyWindow::new(8, 32, 32),
            caches: Caches::new(32, 32, 16, 9),
            rings: Rings::new(64, 13),
            entries: VecDeque::new(),
            base,
            memory: machine.api().memory(base, all).unwrap().to_vec(),
            place: None,
            counters: ReceiveCounters::default(),
        };
        for (function, layout) in (0..).zip(&layouts) {
            gates.keys.cycle(key_window::In {
                host_valid: true,
                host_window: true,
                host_function: function,
                host_base: (layout.base >> PAGE_SHIFT) as u32,
                host_pages: (layout.length >> PAGE_SHIFT) as u32,
                ..key_window::In::default()
            });
            for (queue_pair, places) in (0..).zip(&layout.queue_pairs) {
                let pair = function << 2 | queue_pair;
                let key = machine.api().key(Endpoint::new(1, function, queue_pair).unwrap());
                gates.keys.cycle(key_window::In {
                    host_valid: true,
                    host_opens: true,
                    host_pair: pair,
                    host_key: key,
                    ..key_window::In::default()
                });
                gates.rings.cycle(event_ring::In {
                    host_valid: true,
                    host_opens: true,
                    host_ring: pair << 1 | 1,
                    host_base: places.receive_ring / EVENT_BYTES as u64,
                    host_count: RECORDS as u16,
                    ..event_ring::In::default()
                });
                let list = slot_cache::In {
                    host_valid: true,
                    host_pair: pair,
                    host_page: (places.slot_list >> PAGE_SHIFT) as u32,
                    host_count: SLOTS as u16,
                    ..slot_cache::In::default()
                };
                gates.caches.cycle(slot_cache::In { host_opens: true, ..list });
                gates.caches.cycle(list);
            }
        }
        gates
    }

    fn write(&mut self, address: u64, bytes: &[u8]) {
        let at = (address - self.base) as usize;
        self.memory[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// One cycle, in which this beat is offered; true if it is taken.
    fn cycle(&mut self, beat: Option<In>, out_ready: bool) -> bool {
        let before = self.upload.out();
        // What the others answer does not depend on what is offered to them.
        let key = self.keys.clone().cycle(key_window::In::default());
        let ring_in =
            event_ring::In { in_ring: before.event_ring, out_ready: true, ..Default::default() };
        let ring = self.rings.clone().cycle(ring_in);
        let slots_in = slot_cache::In {
            take_pair: before.take_pair,
            read_ready: true,
            ..slot_cache::In::default()
        };
        let slots = self.caches.clone().cycle(slots_in);
        let input = In {
            cpu: 1,
            in_valid: beat.is_some(),
            packet_fits: key.packet_fits,
            target_fits: key.target_fits,
            take_ready: slots.take_ready,
            lacks_list: slots.lacks_list,
            slot: slots.slot,
            event_ready: ring.in_ready,
            lacks_ring: ring.lacks_ring,
            lacks_place: ring.lacks_place,
            out_ready,
            ..beat.unwrap_or_default()
        };
        let out = self.upload.cycle(input);
        self.keys.cycle(key_window::In {
            packet_valid: out.packet_valid,
            packet_pair: out.packet_pair,
            packet_key: out.packet_key,
            target_valid: out.target_valid,
            target_function: out.target_function,
            target_address: out.target_address,
            target_length: out.target_length.into(),
            ..key_window::In::default()
        });
        let event = self.rings.cycle(event_ring::In {
            in_valid: out.event_valid,
            in_event: out.event_record,
            ..ring_in
        });
        self.counters.events += u64::from(out.event_valid && event.in_ready);
        if event.out_valid {
            let record: Vec<u8> =
                event.out_event.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.write(event.out_address, &record);
        }
        let entry = self.entries.pop_front();
        let (in_pair, in_word) = entry.unwrap_or_default();
        let read = self.caches.cycle(slot_cache::In {
            take_valid: out.take_valid,
            in_valid: entry.is_some(),
            in_pair,
            in_word,
            ..slots_in
        });
        if read.read_valid {
            for at in 0..u64::from(read.read_count) {
                let from = (read.read_address + 8 * at - self.base) as usize;
                let word = self.memory[from..from + 8].try_into().unwrap();
                self.entries.push_back((read.read_pair, u64::from_le_bytes(word)));
            }
        }
        if out.out_valid && out_ready {
            let all = u64::from(out.out_bytes);
            let (at, left) = self.place.unwrap_or((out.out_address, all));
            let lane = at as usize % LANES;
            let count = left.min((LANES - lane) as u64);
            self.write(at, &bytes_of(out.out_data)[lane..lane + count as usize]);
            self.place = (!out.out_last).then_some((at + count, left - count));
            self.counters.bytes += count;
        }
        self.counters.unknown += u64::from(out.unknown);
        self.counters.refused += u64::from(out.refused);
        self.counters.outside += u64::from(out.outside);
        self.counters.outside_slots += u64::from(out.passed_over);
        assert!(!out.closed && !out.mismatched);
        beat.is_some() && out.in_ready
    }

    /// The packets come, with pauses, and the bus stalls at times.
    fn run(&mut self, packets: &[Vec<u8>], random: &mut Random) {
        for bytes in packets {
            let beats = bytes.len().div_ceil(LANES);
            for (at, lanes) in bytes.chunks(LANES).enumerate() {
                let mut all = [0xee; LANES];
                all[..lanes.len()].copy_from_slice(lanes);
                let beat = In {
                    in_last: at + 1 == beats,
                    in_to: lanes.len() as u8 - 1,
                    in_data: Beat { bytes: all, k: 0 }.words(),
                    ..In::default()
                };
                let is_taken = (0..10_000).any(|_| {
                    let offered = (random.below(8) > 0).then_some(beat);
                    self.cycle(offered, random.below(4) > 0)
                });
                assert!(is_taken, "it stands still");
            }
        }
        for _ in 0..1000 {
            self.cycle(None, true);
        }
    }
}

/// Puts the packets into the crossbar of the machine, in order.
fn run_machine(machine: &mut Machine, packets: &[Vec<u8>]) {
    for bytes in packets {
        while !machine.api().inject(0, 1, bytes) {
            machine.run_to_end(&mut ()).unwrap();
        }
    }
    machine.run_to_end(&mut ()).unwrap();
}

/// Whether both write the same, and count the same; the number of NAPs.
fn side_by_side(seed: u64, spoil: impl FnOnce(&mut [Vec<u8>])) -> (bool, ReceiveCounters) {
    let mut random = Random::new(seed);
    let mut machine = machine();
    let mut packets = packets(&mut machine, 300, &mut random);
    let mut gates = Gates::new(&mut machine);
    run_machine(&mut machine, &packets);
    spoil(&mut packets);
    gates.run(&packets, &mut random);
    let expected = machine.nodes()[1].receiver.counters;
    let memory = machine.api().memory(gates.base, gates.memory.len()).unwrap() == gates.memory;
    // Gates do not count what passes.
    let counters = ReceiveCounters { naps: expected.naps, puts: expected.puts, ..gates.counters };
    (memory && counters == expected, expected)
}

/// Random PUTs and NAPs, of which some have a wrong key or form or a target outside, and slots that
/// lie outside: memory, events and counts are the same.
// shows: C-09, C-14, C-21, C-22, C-39
#[test]
fn gates_write_the_same() {
    for seed in 1..=3 {
        let (is_same, counters) = side_by_side(seed, |_| ());
        assert!(is_same, "seed {seed}");
        let ReceiveCounters { naps, puts, unknown, refused, outside, outside_slots, .. } = counters;
        let all = [naps, puts, unknown, refused, outside, outside_slots];
        assert!(all.iter().all(|&count| count > 2), "{counters:?}");
    }
}

/// Canary: a byte that differs in long packets is noticed.
#[test]
fn another_byte_is_noticed() {
    let (is_same, _) = side_by_side(1, |packets| {
        packets.iter_mut().filter(|bytes| bytes.len() > 400).for_each(|bytes| bytes[200] ^= 1);
    });
    assert!(!is_same);
}
