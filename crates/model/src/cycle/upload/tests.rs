//! The upload module by itself: what it asks is answered by a bench.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use bellwire_wire::packet::PacketRepr;
use bellwire_wire::span::ByteSpan;

use super::*;
use crate::chpp::Config;

/// The upload module of processor 1, with what it asks. Everything is as wide open as it can
/// be, at first.
struct Bench {
    upload: Upload,
    most: u64,
    beats: VecDeque<In>,
    key: u8,
    window: Range<u64>,
    /// Slots that are cached; none if the list is closed.
    slots: Option<VecDeque<u64>>,
    /// Records that the ring has room for; none if it is closed.
    room: Option<u64>,
    out_ready: bool,
    /// What was answered, and the slot that was taken last.
    packet_fits: bool,
    target_fits: bool,
    slot: u64,
    cycle: u64,
    /// Beats that were taken, and the cycle of each.
    taken: Vec<u64>,
    /// Writes: address, bytes, and the cycles of their first and last beats.
    writes: Vec<(u64, u16, u64, u64)>,
    place: Option<(u64, u64, u64)>,
    memory: BTreeMap<u64, u8>,
    /// Events and their cycles.
    events: Vec<(u64, EventRepr)>,
    told: Vec<Told>,
}

const HOME: u64 = 1 << 36;

impl Bench {
    fn new(most: usize) -> Bench {
        Bench {
            upload: Upload::new(most),
            most: most as u64,
            beats: VecDeque::new(),
            key: 0x5a,
            window: HOME..HOME + (1 << 20),
            slots: Some((0..64).map(|at| HOME + 0x8_0000 + (at << 11)).collect()),
            room: Some(64),
            out_ready: true,
            packet_fits: false,
            target_fits: false,
            slot: 0,
            cycle: 0,
            taken: Vec::new(),
            writes: Vec::new(),
            place: None,
            memory: BTreeMap::new(),
            events: Vec::new(),
            told: Vec::new(),
        }
    }

    /// Sends the bytes of a packet.
    fn send(&mut self, packet: &[u8]) {
        let beats = packet.len().div_ceil(LANES);
        for (at, lanes) in packet.chunks(LANES).enumerate() {
            // Lanes behind the last byte are not zero.
            let mut bytes = [0xee; LANES];
            bytes[..lanes.len()].copy_from_slice(lanes);
            self.beats.push_back(In {
                in_last: at + 1 == beats,
                in_to: lanes.len() as u8 - 1,
                in_data: Beat { bytes, k: 0 }.words(),
                ..In::default()
            });
        }
    }

    fn cycle(&mut self) -> Out {
        let beat = self.beats.front().copied().unwrap_or_default();
        let input = In {
            cpu: 1,
            in_valid: !self.beats.is_empty(),
            packet_fits: self.packet_fits,
            target_fits: self.target_fits,
            take_ready: self.slots.as_ref().is_some_and(|slots| !slots.is_empty()),
            lacks_list: self.slots.is_none(),
            slot: self.slot,
            event_ready: self.room.is_some_and(|room| room > 0),
            lacks_ring: self.room.is_none(),
            lacks_place: self.room == Some(0),
            out_ready: self.out_ready,
            ..beat
        };
        let out = self.upload.cycle(input);
        self.packet_fits = out.packet_valid && out.packet_key == self.key;
        let end = out.target_address + u64::from(out.target_length);
        self.target_fits =
            out.target_valid && out.target_address >= self.window.start && end <= self.window.end;
        if input.in_valid && out.in_ready {
            self.beats.pop_front();
            self.taken.push(self.cycle);
        }
        if out.take_valid && input.take_ready {
            self.slot = self.slots.as_mut().and_then(VecDeque::pop_front).unwrap();
        }
        if out.event_valid && input.event_ready {
            let bytes: Vec<u8> =
                out.event_record.iter().flat_map(|word| word.to_le_bytes()).collect();
            self.events.push((self.cycle, EventRepr::parse(&bytes).unwrap()));
            self.room = self.room.map(|room| room - 1);
        }
        if out.out_valid && input.out_ready {
            self.writes(&out);
        }
        for (is_told, told) in [
            (out.unknown, Told::Unknown),
            (out.refused, Told::Refused),
            (out.outside, Told::Outside),
            (out.closed, Told::Closed),
            (out.passed_over, Told::PassedOver),
            (out.mismatched, Told::Mismatched),
        ] {
            self.told.extend(is_told.then_some(told));
        }
        self.cycle += 1;
        out
    }

    /// A beat of a write goes to memory.
    fn writes(&mut self, out: &Out) {
        let all = u64::from(out.out_bytes);
        let (at, left, begun) = self.place.unwrap_or((out.out_address, all, self.cycle));
        let lane = at as usize % LANES;
        let count = left.min((LANES - lane) as u64);
        for (of, byte) in bytes_of(out.out_data).into_iter().enumerate() {
            let is_meant = (lane..lane + count as usize).contains(&of);
            if is_meant {
                self.memory.insert(at - lane as u64 + of as u64, byte);
            }
            assert!(is_meant || byte == 0, "zeros are beside");
        }
        assert_eq!(out.out_last, count == left);
        self.place = (!out.out_last).then_some((at + count, left - count, begun));
        if out.out_last {
            let (first, last) = (out.out_address, out.out_address + all - 1);
            assert_eq!(first / self.most, last / self.most, "a write crosses its limit");
            self.writes.push((out.out_address, out.out_bytes, begun, self.cycle));
        }
    }

    /// Runs until everything is done that can be.
    fn run(&mut self) {
        for _ in 0..1000 {
            self.cycle();
        }
    }

    /// What is in memory from an address on.
    fn read(&self, address: u64, length: usize) -> Vec<u8> {
        let at = |address| self.memory.get(&address).copied().unwrap_or(0);
        (address..address + length as u64).map(at).collect()
    }
}

/// A packet for queue pair 2 of function 5 of processor 1.
fn packet(primitive: Primitive, address: u64, payload: &[u8], tail: &[u8]) -> Vec<u8> {
    let header = HeaderRepr {
        primitive,
        traffic_class: 3,
        requester_id: 0,
        magic: 0x5a,
        source: Endpoint::new(2, 6, 1).unwrap(),
        destination: Endpoint::new(1, 5, 2).unwrap(),
        wants_event: !tail.is_empty(),
        span: ByteSpan::new(address, payload.len()).unwrap(),
    };
    let packet = PacketRepr { header, payload, tail: Tail::new(tail).unwrap() };
    let mut bytes = vec![0; packet.buffer_len()];
    packet.emit(&mut bytes).unwrap();
    bytes
}

fn numbered(length: usize) -> Vec<u8> {
    (0..length).map(|at| at as u8 ^ 0x80).collect()
}

/// There is a number for each processor and queue pair that a packet can name, and writes are
/// those of the model's bus.
#[test]
fn all_endpoints_have_numbers() {
    assert_eq!(1 << CPU_BITS, Endpoint::CPUS);
    assert_eq!(1 << FUNCTION_BITS, Endpoint::FUNCTIONS);
    assert_eq!(1 << PAIR_BITS, usize::from(Endpoint::FUNCTIONS * Endpoint::QUEUE_PAIRS));
    assert_eq!(RING_BITS, PAIR_BITS + 1);
    assert_eq!(Config::prototype().pcie.max_payload.count(), 128);
}

/// A PUT's header comes in cycle 0; its data is taken from 2 on and leaves from 3 on, a beat a
/// cycle. Its event is offered when the last beat has left. The next header comes meanwhile, if
/// there is no event.
#[test]
fn a_cycle_is_a_cycle() {
    let mut bench = Bench::new(128);
    bench.send(&packet(Primitive::Put, HOME, &numbered(128), &[]));
    bench.send(&packet(Primitive::Put, HOME + 256, &numbered(64), &[7; 4]));
    bench.run();
    let put = [0, 2, 3, 4, 5, 6, 7, 8, 9];
    assert_eq!(bench.taken, [&put[..], &[10, 12, 13, 14, 15, 16]].concat());
    assert_eq!(bench.writes, [(HOME, 128, 3, 10), (HOME + 256, 64, 13, 16)]);
    // The tail comes while the last beat leaves.
    assert_eq!(bench.events.iter().map(|it| it.0).collect::<Vec<_>>(), [17]);

    // A NAP takes a slot in cycle 1, and asks for its window in 2.
    let mut bench = Bench::new(128);
    bench.send(&packet(Primitive::Nap, 0, &numbered(16), &[]));
    bench.send(&packet(Primitive::Put, HOME, &numbered(16), &[]));
    bench.run();
    assert_eq!(bench.taken, [0, 4, 7, 9]);
    assert_eq!(bench.writes, [(HOME + 0x8_0000, 16, 5, 5), (HOME, 16, 10, 10)]);
    assert_eq!(bench.events[0].0, 6);
}

/// An output that takes nothing holds the beat, and what comes behind it; nothing is lost.
#[test]
fn a_held_output_holds_the_packet() {
    let mut bench = Bench::new(128);
    bench.out_ready = false;
    bench.send(&packet(Primitive::Put, HOME + 4, &numbered(100), &[1]));
    let outs: Vec<Out> = (0..20).map(|_| bench.cycle()).collect();
    assert!(outs[3..].iter().all(|out| out.out_data == outs[3].out_data && !out.in_ready));
    assert_eq!((bench.taken.len(), bench.writes.len()), (2, 0));
    bench.out_ready = true;
    bench.run();
    assert_eq!(bench.read(HOME + 4, 100), numbered(100));
    assert_eq!(bench.events.len(), 1);
}

/// PUTs to all alignments, of all lengths around the ends of beats and writes, change exactly
/// their bytes. No write crosses a multiple of the limit, and no byte is written twice.
// shows: C-08, C-22
#[test]
fn puts_change_exactly_their_bytes() {
    for most in [16, 128, 4096] {
        for lead in (0..20).chain(108..132) {
            for length in (0..70).chain([127, 128, 129, 255]) {
                let mut bench = Bench::new(most);
                let address = HOME + 0x1000 + lead;
                let data = numbered(length);
                bench.send(&packet(Primitive::Put, address, &data, &[]));
                for _ in 0..40 {
                    bench.cycle();
                }
                assert_eq!(bench.memory.len(), length);
                assert_eq!(bench.read(address, length), data, "{lead}, {length}");
                let bytes: usize = bench.writes.iter().map(|it| usize::from(it.1)).sum();
                assert_eq!((bytes, bench.beats.len()), (length, 0));
                let end = (lead as usize + length).div_ceil(most) - lead as usize / most;
                assert_eq!(bench.writes.len(), if length == 0 { 0 } else { end });
                assert!(bench.events.is_empty() && bench.told.is_empty());
            }
        }
    }
}

/// A NAP goes into a slot, and always has an event. A PUT has one if its packet asks for it.
/// Both have the tail of their packet, of any length.
// shows: C-10, C-14
#[test]
fn events_say_what_was_written() {
    for length in [0, 1, 4, 5, 11, 12, 13, 16, 60, 128] {
        for tail in 1..=16 {
            let mut bench = Bench::new(128);
            let (data, all) = (numbered(length), numbered(16));
            let tail = &all[..tail];
            bench.send(&packet(Primitive::Nap, 0, &data, tail));
            bench.send(&packet(Primitive::Put, HOME + 3, &data, tail));
            bench.send(&packet(Primitive::Nap, 0, &data, &[]));
            bench.run();
            let slot = HOME + 0x8_0000;
            let event = EventRepr {
                phase: false,
                primitive: Primitive::Nap,
                status: Status::Success,
                queue_pair: 2,
                peer: Endpoint::new(2, 6, 1).unwrap(),
                address: slot,
                length: length as u64,
                tail: Tail::new(tail).unwrap(),
            };
            // An empty span has no first byte, only a DW.
            let target = if length == 0 { HOME } else { HOME + 3 };
            let put = EventRepr { primitive: Primitive::Put, address: target, ..event };
            let plain = EventRepr { address: slot + 2048, tail: Tail::EMPTY, ..event };
            let events: Vec<EventRepr> = bench.events.iter().map(|it| it.1).collect();
            assert_eq!(events, [event, put, plain]);
            for address in [slot, HOME + 3, slot + 2048] {
                assert_eq!(bench.read(address, length), data);
            }
            assert_eq!(bench.memory.len(), 3 * length);
        }
    }
}

/// While the ring is full or no slot is cached, nothing is written and no slot is taken, and
/// the packet waits. It goes on when both are there.
// shows: C-21
#[test]
fn packets_wait_for_slot_and_record() {
    for (has_slot, has_record) in [(false, true), (true, false), (false, false)] {
        let mut bench = Bench::new(128);
        let slots = bench.slots.clone();
        bench.slots = Some(VecDeque::new()).filter(|_| !has_slot).or(slots.clone());
        bench.room = Some(u64::from(has_record));
        bench.send(&packet(Primitive::Nap, 0, &numbered(20), &[]));
        bench.run();
        let cached = bench.slots.as_ref().map(VecDeque::len);
        assert_eq!(cached, Some(if has_slot { 64 } else { 0 }));
        assert!(bench.memory.is_empty() && bench.taken == [0] && bench.told.is_empty());
        (bench.slots, bench.room) = (slots, Some(1));
        bench.run();
        assert_eq!((bench.memory.len(), bench.events.len(), bench.room), (20, 1, Some(0)));
    }
    // A PUT without an event needs neither.
    let mut bench = Bench::new(128);
    (bench.slots, bench.room) = (None, None);
    bench.send(&packet(Primitive::Put, HOME, &numbered(20), &[]));
    bench.run();
    assert_eq!((bench.memory.len(), bench.told.len()), (20, 0));
}

/// A packet for a closed list or ring is dropped, as waiting may take for ever. So is the event
/// of one whose ring is closed meanwhile.
#[test]
fn packets_for_closed_queue_pairs_are_dropped() {
    for closes_list in [true, false] {
        let mut bench = Bench::new(128);
        if closes_list {
            bench.slots = None;
        } else {
            bench.room = None;
        }
        bench.send(&packet(Primitive::Nap, 0, &numbered(20), &[]));
        bench.send(&packet(Primitive::Put, HOME, &numbered(4), &[]));
        bench.run();
        assert_eq!((bench.told.clone(), bench.memory.len()), (vec![Told::Closed], 4));
        assert!(bench.events.is_empty());
    }
    let mut bench = Bench::new(128);
    bench.send(&packet(Primitive::Nap, 0, &numbered(20), &[]));
    let begins = (0..100).any(|_| {
        bench.cycle();
        !bench.memory.is_empty()
    });
    assert!(begins, "it writes");
    bench.room = None;
    bench.run();
    assert_eq!((bench.told, bench.events.len()), (vec![Told::Closed], 0));
}

/// Packets with a wrong key, for another processor, of an unknown type or form, and with a
/// target outside of the window change no memory and have no event. The one behind them passes.
// shows: C-09, C-37, C-39
#[test]
fn wrong_packets_are_dropped() {
    let right = packet(Primitive::Put, HOME, &numbered(40), &[1; 16]);
    let with = |at: usize, bits: u8| {
        let mut bytes = right.clone();
        bytes[at] ^= bits;
        bytes
    };
    let last = HOME + (1 << 20);
    let put = |address| packet(Primitive::Put, address, &numbered(40), &[1]);
    for (wrong, told) in [
        (with(6, 0x01), Told::Refused),
        // The processor's number lies in byte 9.
        (with(9, 0x40), Told::Refused),
        (with(9, 0x08), Told::Refused),
        (with(0, 0x20), Told::Unknown),
        // An unknown type; bits that must be zero; byte enables with a hole; no last one.
        (with(2, 0x20), Told::Unknown),
        (with(10, 0x02), Told::Unknown),
        (with(7, 0x02), Told::Unknown),
        (with(7, 0xf0), Told::Unknown),
        (packet(Primitive::Get, 0, &numbered(40), &[]), Told::Unknown),
        (right[..16].to_vec(), Told::Unknown),
        (right[..9].to_vec(), Told::Unknown),
        (put(HOME - 1), Told::Outside),
        (put(last - 39), Told::Outside),
        (put(0), Told::Outside),
    ] {
        let mut bench = Bench::new(128);
        bench.send(&wrong);
        bench.run();
        assert_eq!((bench.told.clone(), bench.beats.len()), (vec![told], 0), "{wrong:x?}");
        assert!(bench.memory.is_empty() && bench.events.is_empty());
        bench.send(&packet(Primitive::Put, last - 40, &numbered(40), &[1]));
        bench.run();
        assert_eq!((bench.told.len(), bench.memory.len(), bench.events.len()), (1, 40, 1));
    }
}

/// A slot outside of the window is passed over, and the NAP takes the next one.
// shows: C-39
#[test]
fn slots_outside_of_the_window_are_passed_over() {
    let mut bench = Bench::new(128);
    let end = HOME + (1 << 20);
    bench.slots = Some([0, HOME - 2048, end, end - 2048].into());
    bench.send(&packet(Primitive::Nap, 0, &numbered(9), &[]));
    bench.run();
    assert_eq!(bench.told, [Told::PassedOver; 3]);
    assert_eq!(bench.read(end - 2048, 9), numbered(9));
    assert_eq!((bench.memory.len(), bench.events[0].1.address), (9, end - 2048));
}

/// A packet that is shorter or longer than its header says has no event, and is told. What it
/// lacks is written as zeros. The next packet is whole.
#[test]
fn packets_of_another_length_have_no_event() {
    let whole = packet(Primitive::Put, HOME + 8, &numbered(40), &[1; 16]);
    assert_eq!(whole.len(), 72);
    let lengths = (17..56).chain(73..130);
    for length in lengths {
        let mut wrong = whole.clone();
        wrong.resize(length, 9);
        let mut bench = Bench::new(128);
        bench.send(&wrong);
        bench.send(&whole);
        bench.run();
        assert_eq!((bench.told, bench.events.len()), (vec![Told::Mismatched], 1), "{length}");
        assert_eq!((bench.memory.len(), bench.writes.len()), (40, 2));
    }
    // Any length of tail is right.
    for length in 56..=72 {
        let mut bench = Bench::new(128);
        bench.send(&whole[..length]);
        bench.run();
        assert_eq!((bench.told.len(), bench.events[0].1.tail.len()), (0, length - 56));
    }
    // Of one that is cut off, the rest is zeros.
    let mut bench = Bench::new(128);
    bench.send(&whole[..32]);
    bench.run();
    let expected = [&numbered(40)[..16], &[0; 24]].concat();
    assert_eq!(bench.read(HOME + 8, 40), expected);
}
