//! The dispatch module by itself: a crossbar that keeps to its places, and two takers.

use bellwire_wire::packet::PacketRepr;
use bellwire_wire::span::ByteSpan;
use bellwire_wire::tail::Tail;

use super::*;
use crate::chpp::Config;

const SMALL: Shape = Shape { packets: 2, gets: 1, data_beats: 5, get_beats: 2 };

/// The dispatch module of processor 1.
struct Bench {
    dispatch: RxDispatch,
    /// Beats that are still to come.
    beats: VecDeque<In>,
    out_ready: bool,
    get_ready: bool,
    key: u8,
    packet_fits: bool,
    cycle: u64,
    /// The cycle of each beat that was taken.
    taken: Vec<u64>,
    /// Packets that left, and the cycle of their first beats.
    packets: Vec<(u64, Vec<u8>)>,
    /// Descriptors that left: cycle of the first word, source, target, words.
    gets: Vec<(u64, u16, u8, Vec<u64>)>,
    /// What has left of a packet and of a descriptor.
    part: (u64, Vec<u8>),
    words: (u64, Vec<u64>),
    /// Places that came back, by class.
    credits: [usize; 2],
    told: Vec<Told>,
}

impl Bench {
    fn new(shape: Shape) -> Bench {
        Bench {
            dispatch: RxDispatch::new(shape),
            beats: VecDeque::new(),
            out_ready: true,
            get_ready: true,
            key: 0x5a,
            packet_fits: false,
            cycle: 0,
            taken: Vec::new(),
            packets: Vec::new(),
            gets: Vec::new(),
            part: (0, Vec::new()),
            words: (0, Vec::new()),
            credits: [0; 2],
            told: Vec::new(),
        }
    }

    /// A packet of a class is to come.
    fn send(&mut self, class: usize, bytes: &[u8]) {
        let beats = bytes.len().div_ceil(LANES);
        for (at, lanes) in bytes.chunks(LANES).enumerate() {
            let mut all = [0xee; LANES];
            all[..lanes.len()].copy_from_slice(lanes);
            let (words, _) = all.as_chunks();
            self.beats.push_back(In {
                in_class: class as u8,
                in_last: at + 1 == beats,
                in_to: lanes.len() as u8 - 1,
                in_data: [0, 1].map(|word: usize| u64::from_le_bytes(words[word])),
                ..In::default()
            });
        }
    }

    fn cycle(&mut self) -> Out {
        let beat = self.beats.front().copied();
        let input = In {
            cpu: 1,
            in_valid: beat.is_some(),
            packet_fits: self.packet_fits,
            out_ready: self.out_ready,
            get_ready: self.get_ready,
            ..beat.unwrap_or_default()
        };
        let out = self.dispatch.cycle(input);
        self.packet_fits = out.packet_valid && out.packet_key == self.key;
        if input.in_valid && out.in_ready {
            self.beats.pop_front();
            self.taken.push(self.cycle);
        }
        if out.out_valid && self.out_ready {
            if self.part.1.is_empty() {
                self.part.0 = self.cycle;
            }
            let count = if out.out_last { usize::from(out.out_to) + 1 } else { LANES };
            self.part.1.extend_from_slice(&bytes_of(out.out_data)[..count]);
            if out.out_last {
                self.packets.push(std::mem::take(&mut self.part));
            }
        }
        if out.get_valid && self.get_ready {
            if self.words.1.is_empty() {
                self.words.0 = self.cycle;
            }
            self.words.1.push(out.get_word);
            if out.get_last {
                let (cycle, words) = std::mem::take(&mut self.words);
                self.gets.push((cycle, out.get_source, out.get_pair, words));
            }
        }
        for (count, credit) in self.credits.iter_mut().zip(out.credit) {
            *count += usize::from(credit);
        }
        for (is_told, told) in [
            (out.unknown, Told::Unknown),
            (out.misrouted, Told::Misrouted),
            (out.oversized, Told::Oversized),
            (out.refused, Told::Refused),
            (out.mismatched, Told::Mismatched),
        ] {
            self.told.extend(is_told.then_some(told));
        }
        self.cycle += 1;
        out
    }

    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle();
        }
    }
}

/// Bytes that differ.
fn numbered(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + 3) as u8).collect()
}

/// A packet from queue pair 2.6.1 to queue pair 2 of function 3 of processor 1.
fn packet(primitive: Primitive, payload: &[u8], tail: &[u8]) -> Vec<u8> {
    let address = if primitive == Primitive::Put { 0x1000 } else { 0 };
    let header = HeaderRepr {
        primitive,
        traffic_class: 0,
        requester_id: 0,
        magic: 0x5a,
        source: Endpoint::new(2, 6, 1).unwrap(),
        destination: Endpoint::new(1, 3, 2).unwrap(),
        wants_event: false,
        span: ByteSpan::new(address, payload.len()).unwrap(),
    };
    let packet = PacketRepr { header, payload, tail: Tail::new(tail).unwrap() };
    let mut bytes = vec![0; packet.buffer_len()];
    packet.emit(&mut bytes).unwrap();
    bytes
}

/// The descriptor of a GET as it leaves: the words of its payload.
fn words(payload: &[u8]) -> Vec<u64> {
    payload.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
}

/// PUTs and NAPs of any length leave as they came, with their tails. GETs leave as the words of
/// their payload, with the queue pairs of both ends, and without tails.
// shows: C-37
#[test]
fn packets_go_where_their_type_says() {
    let shape = Shape { packets: 4, gets: 4, data_beats: 258, get_beats: 256 };
    let mut bench = Bench::new(shape);
    let (mut sent, mut asked) = (Vec::new(), Vec::new());
    for length in [0, 1, 4, 15, 16, 17, 127, 128, 2048] {
        for tail in [0, 1, 5, 12, 13, 16] {
            for primitive in [Primitive::Nap, Primitive::Put] {
                sent.push(packet(primitive, &numbered(length), &numbered(tail)));
                bench.send(DATA, sent.last().unwrap());
            }
            let descriptor = numbered(16 * (length % 10 + 1));
            bench.send(GET, &packet(Primitive::Get, &descriptor, &numbered(tail)));
            asked.push(words(&descriptor));
        }
    }
    for primitive in [Primitive::Put, Primitive::Get] {
        bench.send(usize::from(primitive == Primitive::Get), &packet(primitive, &[7; 4096], &[1]));
    }
    sent.push(packet(Primitive::Put, &[7; 4096], &[1]));
    asked.push(words(&[7; 4096]));
    bench.run(20_000);
    assert!(bench.beats.is_empty() && bench.told.is_empty());
    assert_eq!(bench.packets.iter().map(|it| it.1.clone()).collect::<Vec<_>>(), sent);
    let ends = (2 << 5 | 6 << 2 | 1, 3 << 2 | 2);
    assert!(bench.gets.iter().all(|it| (it.1, it.2) == ends));
    assert_eq!(bench.gets.iter().map(|it| it.3.clone()).collect::<Vec<_>>(), asked);
    assert_eq!(bench.credits, [sent.len(), asked.len()]);
}

/// The first beat of a packet stands at the output two cycles after its last one has come; one
/// leaves in every cycle, also from one packet to the next. A GET gives two words a beat.
#[test]
fn a_cycle_is_a_cycle() {
    let mut bench = Bench::new(Shape { packets: 4, gets: 4, data_beats: 5, get_beats: 2 });
    // Three beats each.
    bench.send(DATA, &packet(Primitive::Put, &numbered(32), &[]));
    bench.send(DATA, &packet(Primitive::Put, &numbered(16), &[1]));
    bench.send(GET, &packet(Primitive::Get, &numbered(32), &[]));
    bench.send(GET, &packet(Primitive::Get, &numbered(16), &[]));
    for cycle in 0..12 {
        let out = bench.cycle();
        assert_eq!(out.out_valid, (4..10).contains(&cycle), "{cycle}");
        assert_eq!(out.out_last, cycle == 6 || cycle == 9, "{cycle}");
        assert_eq!(out.credit[DATA], cycle == 7 || cycle == 10, "{cycle}");
        assert_eq!(out.packet_valid, cycle == 6 || cycle == 9, "{cycle}");
        assert_eq!(out.get_valid, cycle > 9, "{cycle}");
        // It has come whole, and the engine has a place for it.
        assert_eq!(out.credit[GET], cycle == 9 || cycle == 11, "{cycle}");
    }
    bench.run(10);
    assert_eq!(bench.taken, Vec::from_iter(0..11));
    let first: Vec<u64> = bench.packets.iter().map(|it| it.0).collect();
    assert_eq!(first, [4, 7]);
    let first: Vec<u64> = bench.gets.iter().map(|it| it.0).collect();
    assert_eq!(first, [10, 14]);
}

/// While nobody takes GETs, as many stay as there are places behind the crossbar's, and those hold
/// no place of the crossbar. PUTs go on, and the other way round.
#[test]
fn no_class_waits_for_the_other() {
    let mut bench = Bench::new(SMALL);
    (bench.get_ready, bench.out_ready) = (false, true);
    for _ in 0..3 {
        bench.send(GET, &packet(Primitive::Get, &numbered(32), &[]));
        bench.send(DATA, &packet(Primitive::Put, &numbered(20), &[]));
    }
    bench.run(100);
    assert_eq!((bench.packets.len(), bench.gets.len()), (3, 0));
    assert_eq!(bench.credits, [3, 1]);
    // The crossbar has no place more for a GET.
    let input = |class| In { in_class: class as u8, ..In::default() };
    assert!(!bench.dispatch.clone().cycle(input(GET)).in_ready);
    assert!(bench.dispatch.clone().cycle(input(DATA)).in_ready);
    (bench.get_ready, bench.out_ready) = (true, false);
    for _ in 0..2 {
        bench.send(DATA, &packet(Primitive::Put, &numbered(20), &[]));
        bench.send(GET, &packet(Primitive::Get, &numbered(32), &[]));
    }
    bench.run(100);
    assert_eq!((bench.packets.len(), bench.gets.len()), (3, 5));
    assert_eq!(bench.credits, [3, 5]);
    assert!(!bench.dispatch.clone().cycle(input(DATA)).in_ready);
    bench.out_ready = true;
    bench.run(100);
    assert_eq!((bench.packets.len(), bench.credits), (5, [5, 5]));
}

/// Packets of an unknown type or form, of the other class, longer than a place, with a wrong key or
/// for another processor are dropped whole, each with its reason. Their place comes back, and the
/// next packet passes.
// shows: C-37
#[test]
fn wrong_packets_are_dropped() {
    let put = packet(Primitive::Put, &numbered(40), &[1]);
    let get = packet(Primitive::Get, &numbered(32), &[1]);
    let with = |bytes: &[u8], at: usize, bits: u8| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= bits;
        bytes
    };
    for (class, wrong, told) in [
        // Another format; an unknown type; bits that must be zero; byte enables with a hole.
        (DATA, with(&put, 0, 0x20), Told::Unknown),
        (DATA, with(&put, 2, 0x20), Told::Unknown),
        (GET, with(&get, 10, 0x02), Told::Unknown),
        (GET, with(&get, 7, 0x02), Told::Unknown),
        // A GET with an address, and some that are no descriptor.
        (GET, with(&get, 14, 0x10), Told::Unknown),
        (GET, packet(Primitive::Get, &numbered(20), &[]), Told::Unknown),
        (GET, packet(Primitive::Get, &[], &[]), Told::Unknown),
        (GET, packet(Primitive::Get, &numbered(31), &[]), Told::Unknown),
        (GET, put.clone(), Told::Misrouted),
        (GET, packet(Primitive::Nap, &numbered(16), &[]), Told::Misrouted),
        (DATA, get.clone(), Told::Misrouted),
        (DATA, packet(Primitive::Put, &numbered(49), &[]), Told::Oversized),
        (GET, packet(Primitive::Get, &numbered(48), &[]), Told::Oversized),
        (GET, with(&get, 6, 0x01), Told::Refused),
        // The processor's number lies in byte 9.
        (GET, with(&get, 9, 0x40), Told::Refused),
        (GET, with(&get, 9, 0x08), Told::Refused),
    ] {
        let mut bench = Bench::new(SMALL);
        bench.send(class, &wrong);
        bench.run(40);
        assert_eq!(bench.told, [told], "{wrong:x?}");
        assert!(bench.packets.is_empty() && bench.gets.is_empty());
        assert_eq!(bench.credits[class], 1);
        bench.send(DATA, &put);
        bench.send(GET, &get);
        bench.run(40);
        assert_eq!((bench.packets.len(), bench.gets.len(), bench.told.len()), (1, 1, 1));
        assert_eq!(bench.credits.iter().sum::<usize>(), 3);
    }
    // The upload module looks at the key and the processor of the others.
    let mut bench = Bench::new(SMALL);
    bench.send(DATA, &with(&put, 6, 0x01));
    bench.send(DATA, &with(&put, 9, 0x40));
    bench.run(40);
    assert_eq!((bench.packets.len(), bench.told.len()), (2, 0));
}

/// A packet that is longer or shorter than its header says is dropped whole, whatever was stored of
/// it. Those before it and behind it pass.
#[test]
fn packets_of_another_length_are_dropped() {
    for (class, primitive, whole, sizes) in [
        (DATA, Primitive::Put, 22, 40..=56),
        (DATA, Primitive::Nap, 32, 48..=64),
        (GET, Primitive::Get, 32, 48..=64),
    ] {
        let right = packet(primitive, &numbered(whole), &[]);
        for length in 1..100 {
            let mut bench = Bench::new(SMALL);
            let mut bytes = right.clone();
            bytes.resize(length, 9);
            bench.send(class, &right);
            bench.send(class, &bytes);
            bench.send(class, &right);
            bench.run(100);
            let is_right = sizes.contains(&length);
            let expected = if is_right { vec![] } else { vec![Told::Mismatched] };
            assert_eq!(bench.told, expected, "{primitive} of {length}");
            let passed = bench.packets.len() + bench.gets.len();
            assert_eq!((passed, bench.credits[class]), (if is_right { 3 } else { 2 }, 3));
            let mut others = bench.packets.iter().filter(|it| it.1 != bytes);
            assert!(others.all(|it| it.1 == right));
            assert!(bench.gets.iter().all(|it| it.3 == words(&numbered(32))));
        }
    }
}

/// A key that does not fit is noticed also when the next beat comes late, and the rest of the
/// packet is dropped.
#[test]
fn an_answer_waits_for_no_beat() {
    let mut bench = Bench::new(SMALL);
    bench.key = 0;
    bench.send(GET, &packet(Primitive::Get, &numbered(32), &[]));
    let rest = bench.beats.split_off(1);
    bench.run(5);
    assert_eq!((bench.told.clone(), bench.credits), (vec![Told::Refused], [0, 1]));
    bench.beats = rest;
    bench.run(5);
    assert_eq!((bench.taken.len(), bench.told.len(), bench.gets.len()), (3, 1, 0));
}

/// A sender that keeps to the places of the model is never held up, whatever it sends.
#[test]
fn places_are_enough() {
    let crossbar = Config::prototype().crossbar;
    assert_eq!(crossbar.receive_packets, 4);
    let mut bench = Bench::new(Shape { packets: 4, gets: 4, data_beats: 130, get_beats: 256 });
    (bench.out_ready, bench.get_ready) = (false, false);
    for _ in 0..4 {
        bench.send(DATA, &packet(Primitive::Nap, &numbered(2048), &[1; 16]));
    }
    for _ in 0..8 {
        bench.send(GET, &packet(Primitive::Get, &numbered(4096), &[]));
    }
    let beats = bench.beats.len();
    assert_eq!(beats, 4 * 130 + 8 * 257);
    bench.run(beats as u64);
    assert_eq!(bench.taken.len(), beats);
    bench.run(10);
    assert_eq!(bench.credits, [0, 4]);
    (bench.out_ready, bench.get_ready) = (true, true);
    bench.run(6000);
    assert_eq!((bench.packets.len(), bench.gets.len(), bench.credits), (4, 8, [4, 8]));
}
