//! The packer of GETs by itself: moves, descriptors, and a crossbar that takes beats or does not.

use bellwire_wire::descriptor::MAX_DESCRIPTOR_BYTES;
use bellwire_wire::packet::PacketRepr;

use super::*;
use crate::cycle::line::bytes_of;
use crate::cycle::packer::{self, Packer};

const PAPERS: Shape = Shape { gets: 2, get_beats: 256 };

/// A packer whose moves and beats come as fast as it takes them.
struct Bench {
    packer: GetPacker,
    moves: VecDeque<In>,
    beats: VecDeque<In>,
    cycle: u64,
    out_ready: bool,
    sent_ready: bool,
    coming: Vec<u8>,
    began: u64,
    /// Of each packet that has left, the cycles of its first and last beat, its route and bytes.
    left: Vec<(u64, u64, u8, Vec<u8>)>,
    sent: Vec<(u64, u8)>,
    credits: Vec<u64>,
    /// The cycles in which the last move and the last beat were taken.
    moved: u64,
    taken: u64,
}

impl Bench {
    fn new(shape: Shape) -> Bench {
        Bench {
            packer: GetPacker::new(shape),
            moves: VecDeque::new(),
            beats: VecDeque::new(),
            cycle: 0,
            out_ready: true,
            sent_ready: true,
            coming: Vec::new(),
            began: 0,
            left: Vec::new(),
            sent: Vec::new(),
            credits: Vec::new(),
            moved: 0,
            taken: 0,
        }
    }

    fn get(&mut self, operation: u8, descriptor: &[u8]) {
        self.moves.push_back(say(operation, descriptor.len() as u16));
        self.beats(descriptor);
    }

    fn beats(&mut self, descriptor: &[u8]) {
        let (beats, _) = descriptor.as_chunks::<LANES>();
        for (at, &bytes) in beats.iter().enumerate() {
            let in_ends = at + 1 == beats.len();
            let in_data = Beat { bytes, k: 0 }.words();
            self.beats.push_back(In { in_ends, in_data, ..In::default() });
        }
    }

    fn run(&mut self, cycles: u64) -> Out {
        let mut last = Out::default();
        for _ in 0..cycles {
            let mut input = self.moves.front().copied().unwrap_or_default();
            let beat = self.beats.front().copied().unwrap_or_default();
            input.move_valid = !self.moves.is_empty();
            input.in_valid = !self.beats.is_empty();
            (input.in_ends, input.in_data) = (beat.in_ends, beat.in_data);
            (input.out_ready, input.sent_ready) = (self.out_ready, self.sent_ready);
            let out = self.packer.cycle(input);
            if input.move_valid && out.move_ready {
                self.moves.pop_front();
                self.moved = self.cycle;
            }
            if input.in_valid && out.in_ready {
                self.beats.pop_front();
                self.taken = self.cycle;
            }
            if out.credit {
                self.credits.push(self.cycle);
            }
            if out.out_valid && self.out_ready {
                if self.coming.is_empty() {
                    self.began = self.cycle;
                }
                self.coming.extend_from_slice(&bytes_of(out.out_data));
                if out.out_last {
                    let bytes = std::mem::take(&mut self.coming);
                    self.left.push((self.began, self.cycle, out.out_route, bytes));
                }
            }
            if out.sent_valid && self.sent_ready {
                self.sent.push((self.cycle, out.sent_operation));
            }
            self.cycle += 1;
            last = out;
        }
        last
    }

    /// The payloads of packets that have left.
    fn payloads(&self) -> Vec<Vec<u8>> {
        let read = |(.., bytes): &(u64, u64, u8, Vec<u8>)| {
            PacketRepr::parse(bytes).unwrap().payload.to_vec()
        };
        self.left.iter().map(read).collect()
    }
}

/// The move of a GET from 2.3.1 to 15.7.3.
fn say(operation: u8, bytes: u16) -> In {
    In {
        move_traffic_class: 5,
        move_magic: 0xa9,
        move_source: 0x4d,
        move_destination: 0x1ff,
        move_bytes: bytes,
        move_route: 7 + operation,
        move_operation: operation,
        ..In::default()
    }
}

fn numbered(beats: usize) -> Vec<u8> {
    (0..beats * LANES).map(|at| (at * 7 + 1) as u8).collect()
}

/// The first configuration in gates has descriptors as long as the format allows.
#[test]
fn the_papers_shape_is_the_formats() {
    assert_eq!(PAPERS.get_beats * LANES, MAX_DESCRIPTOR_BYTES);
}

/// Sizes that gates cannot have are refused, and the least and greatest ones are not.
#[test]
fn sizes_are_bounded() {
    let builds = |gets, get_beats| {
        std::panic::catch_unwind(|| GetPacker::new(Shape { gets, get_beats })).is_ok()
    };
    assert!(builds(1, 1) && builds(3, 256));
    assert!(!builds(0, 1) && !builds(1, 0) && !builds(1, 257));
}

/// All fields of a header are those of the move, and the payload is the descriptor.
#[test]
fn a_packet_is_a_header_and_the_descriptor() {
    for beats in [1, 4, 255, 256] {
        let mut bench = Bench::new(PAPERS);
        bench.get(2, &numbered(beats));
        bench.run(600);
        let (_, _, route, bytes) = &bench.left[0];
        let header = HeaderRepr {
            primitive: Primitive::Get,
            traffic_class: 5,
            requester_id: 0x0203,
            magic: 0xa9,
            source: Endpoint::new(2, 3, 1).unwrap(),
            destination: Endpoint::new(15, 7, 3).unwrap(),
            wants_event: false,
            span: ByteSpan::new(0, beats * LANES).unwrap(),
        };
        let packet = PacketRepr::parse(bytes).unwrap();
        assert_eq!((packet.header, *route, bench.left.len()), (header, 9, 1));
        assert_eq!((packet.payload, packet.tail.is_empty()), (&numbered(beats)[..], true));
    }
}

/// The packets are those that the packer of PUTs and NAPs would make of the same moves.
#[test]
fn packets_are_those_of_the_other_packer() {
    let shape = packer::Shape { beats: 512, packets: 2, payload: 128, longest: 4096 };
    for beats in [1, 9, 256] {
        let descriptor = numbered(beats);
        let mut bench = Bench::new(PAPERS);
        bench.get(0, &descriptor);
        bench.run(600);
        let mut other = Packer::new(shape);
        let mut bytes = Vec::new();
        let say = say(0, descriptor.len() as u16);
        let mut data = descriptor.as_chunks::<LANES>().0.iter().peekable();
        for cycle in 0..600 {
            let beat = data.peek().map_or([0; LANES], |beat| **beat);
            let out = other.cycle(packer::In {
                move_valid: cycle == 0,
                move_last: true,
                move_primitive: Primitive::Get.code(),
                move_traffic_class: say.move_traffic_class,
                move_magic: say.move_magic,
                move_source: say.move_source,
                move_destination: say.move_destination,
                move_bytes: say.move_bytes.into(),
                in_valid: data.peek().is_some(),
                in_ends: data.len() == 1,
                in_to: LANES as u8 - 1,
                in_data: Beat { bytes: beat, k: 0 }.words(),
                out_ready: true,
                ..packer::In::default()
            });
            if out.in_ready {
                data.next();
            }
            if out.out_valid {
                bytes.extend_from_slice(&bytes_of(out.out_data));
            }
        }
        assert_eq!(bench.left[0].3, bytes);
    }
}

/// The header is offered in the cycle after the descriptor's last beat has come, or two cycles
/// after its move. A beat follows in every cycle. Report and credit follow the last one.
#[test]
fn a_packet_leaves_when_it_is_whole() {
    let mut bench = Bench::new(PAPERS);
    bench.get(1, &numbered(5));
    bench.run(20);
    assert_eq!((bench.moved, bench.taken), (0, 4));
    assert_eq!((bench.left[0].0, bench.left[0].1), (5, 10));
    assert_eq!((bench.sent.as_slice(), bench.credits.as_slice()), (&[(11, 1)][..], &[11][..]));

    // Without its last beat it stays here, and its move is not enough.
    let descriptor = numbered(3);
    bench.get(2, &descriptor);
    let last = bench.beats.pop_back();
    bench.run(20);
    assert_eq!((bench.left.len(), bench.moves.len()), (1, 0));
    bench.beats.extend(last);
    bench.run(20);
    assert_eq!((bench.taken, bench.left[1].0, bench.left[1].1), (40, 41, 44));

    // The move comes behind the descriptor.
    bench.beats(&descriptor);
    bench.run(20);
    assert_eq!((bench.left.len(), bench.beats.len()), (2, 0));
    bench.moves.push_back(say(3, 48));
    bench.run(20);
    assert_eq!((bench.moved, bench.left[2].0, bench.left[2].1), (80, 82, 85));
    assert_eq!(bench.payloads()[1..], [descriptor.clone(), descriptor]);
}

/// A beat at the output stays until it is taken, and so does the header.
#[test]
fn a_beat_stays_until_it_is_taken() {
    let mut bench = Bench::new(PAPERS);
    bench.out_ready = false;
    bench.get(1, &numbered(2));
    let header = bench.run(20);
    assert_eq!((header.out_valid, header.out_last, header.out_route), (true, false, 8));
    assert_eq!(bench.run(1), header);
    bench.out_ready = true;
    bench.run(1);
    bench.out_ready = false;
    let beat = bench.run(1);
    assert_eq!((bench.run(5), beat.out_valid, beat.out_last), (beat, true, false));
    bench.out_ready = true;
    bench.run(1);
    bench.out_ready = false;
    let last = bench.run(5);
    // Its place is not free before.
    assert_eq!((last.out_valid, last.out_last, bench.credits.len()), (true, true, 0));
    bench.out_ready = true;
    bench.run(5);
    assert_eq!((bench.payloads(), bench.sent.len()), (vec![numbered(2)], 1));
    assert_eq!(bench.credits.len(), 1);
}

/// Between two packets there is a cycle for the report. One that waits holds the next packet.
#[test]
fn a_report_that_waits_holds_the_next_packet() {
    let mut bench = Bench::new(Shape { gets: 3, get_beats: 4 });
    for operation in 1..=3 {
        bench.get(operation, &numbered(2));
    }
    bench.run(7);
    bench.sent_ready = false;
    let out = bench.run(20);
    assert_eq!((bench.left.len(), out.out_valid), (2, false));
    assert_eq!((out.sent_valid, out.sent_operation), (true, 2));
    bench.sent_ready = true;
    bench.run(20);
    let cycles: Vec<_> = bench.left.iter().map(|it| (it.0, it.1, it.2)).collect();
    assert_eq!(cycles, [(2, 4, 8), (6, 8, 9), (28, 30, 10)]);
    assert_eq!(bench.sent, [(5, 1), (27, 2), (31, 3)]);
    assert_eq!(bench.credits, [5, 9, 31]);
}

/// As many GETs of the greatest length find room as there are places, also while nothing leaves. No
/// more do, and a credit tells of a place.
#[test]
fn gets_with_a_place_never_wait() {
    for (gets, get_beats) in [(1, 1), (2, 3), (3, 4)] {
        let mut bench = Bench::new(Shape { gets, get_beats });
        bench.out_ready = false;
        for operation in 0..gets as u8 {
            bench.get(operation, &numbered(get_beats));
        }
        let out = bench.run(30);
        assert_eq!((bench.moves.len(), bench.beats.len()), (0, 0));
        assert_eq!((out.move_ready, out.in_ready, out.credit), (false, false, false));
        bench.get(9, &numbered(get_beats));
        bench.run(5);
        assert_eq!((bench.moves.len(), bench.beats.len()), (1, get_beats));
        bench.out_ready = true;
        bench.run(60);
        assert_eq!(bench.payloads(), vec![numbered(get_beats); gets + 1]);
        let operations: Vec<u8> = bench.sent.iter().map(|it| it.1).collect();
        let expected: Vec<u8> = (0..gets as u8).chain([9]).collect();
        assert_eq!((operations, bench.credits.len()), (expected, gets + 1));
        let out = bench.run(1);
        assert!(out.move_ready && out.in_ready && !out.credit && !out.out_valid);
    }
}
