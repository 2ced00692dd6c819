//! The cycle blocks of cHPP's send engine with each other: re-order memory, packer and crossbar,
//! against a completer some of whose reads fail.

use std::collections::VecDeque;

use bellwire_model::cycle::data_reorder::{self, DataReorder, LANES};
use bellwire_model::cycle::packer::{self, Packer, Shape};
use bellwire_model::cycle::xbar::{self, PORTS, Xbar};
use bellwire_model::engine::Random;
use bellwire_wire::packet::PacketRepr;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::Tail;

const OPERATIONS: usize = 600;
const TAGS: usize = 8;
const SHAPE: Shape = Shape { beats: 32, packets: 4, payload: 128, longest: 256 };
/// Beats of the re-order memory.
const BEATS: usize = 64;

/// A read of an operation: its bytes, the lane of the first, and whether it fails.
#[derive(Clone, Debug)]
struct Read {
    lane: usize,
    bytes: Vec<u8>,
    fails: bool,
    /// It is the last one of its operation.
    ends: bool,
}

/// A packet that must leave: the address, the bytes, and the tail of an operation's last one.
type Expected = (u64, Vec<u8>, Tail);

/// The blocks, connected as in gates, and what they must do.
struct Path {
    reorder: DataReorder,
    packer: Packer,
    xbar: Xbar,
    random: Random,
    moves: VecDeque<packer::In>,
    /// Reads that were not requested; those that have not left, with their tags; those that wait
    /// for their completion.
    reads: VecDeque<Read>,
    ends: VecDeque<bool>,
    open: Vec<(u8, Read)>,
    /// The completion that comes, and the beats that have.
    piece: Option<(u8, Read, usize)>,
    /// The register between re-order memory and packer.
    held: Option<packer::In>,
    /// A packet goes into the crossbar.
    mid: bool,
    /// Beats that are in the crossbar, by the number that stands for each.
    beats: Vec<Vec<u8>>,
    credit: [bool; 2],
    coming: [Vec<u8>; 2],
    expected: [VecDeque<Expected>; 2],
    /// Operations to be reported, and whether they must have failed.
    reports: VecDeque<(u8, bool)>,
    failed: usize,
    packets: usize,
}

impl Path {
    fn new(seed: u64) -> Path {
        let shape = xbar::Shape { ports: 2, channels: 1, classes: 1, depth: 2, credits: 1 };
        let mut path = Path {
            reorder: DataReorder::new(BEATS, TAGS, TAGS),
            packer: Packer::new(SHAPE),
            xbar: Xbar::new(shape),
            random: Random::new(seed),
            moves: VecDeque::new(),
            reads: VecDeque::new(),
            ends: VecDeque::new(),
            open: Vec::new(),
            piece: None,
            held: None,
            mid: false,
            beats: Vec::new(),
            credit: [false; 2],
            coming: Default::default(),
            expected: Default::default(),
            reports: VecDeque::new(),
            failed: 0,
            packets: 0,
        };
        for operation in 0..OPERATIONS {
            path.operate(operation as u8);
        }
        path
    }

    /// A PUT of some moves. Its reads are cut without regard to them.
    fn operate(&mut self, operation: u8) {
        let random = &mut self.random;
        let output = random.below(2) as u8;
        let tail = Tail::new(&vec![operation; random.below(17) as usize]).expect("it is short");
        let mut tail_bytes = [0; LANES];
        tail_bytes[..tail.len()].copy_from_slice(tail.as_bytes());
        let count = 1 + random.below(3);
        let mut moves = Vec::new();
        for _ in 0..count {
            moves.push((random.below(1 << 32), 1 + random.below(300)));
        }
        let total = moves.iter().map(|it| it.1).sum::<u64>() as usize;
        let bytes: Vec<u8> = (0..total).map(|_| random.word() as u8).collect();
        let fails = random.below(8) == 0;
        let mut came = total;
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let lane = random.below(LANES as u64) as usize;
            let (read, behind) = rest.split_at(rest.len().min(1 + random.below(128) as usize));
            let is_failed = fails && (behind.is_empty() || random.below(4) == 0);
            if is_failed {
                came = came.min(total - rest.len());
            }
            let (bytes, ends) = (read.to_vec(), behind.is_empty());
            self.reads.push_back(Read { lane, bytes, fails: is_failed, ends });
            rest = behind;
        }
        let mut at = 0;
        for (number, &(address, length)) in moves.iter().enumerate() {
            let is_last = number + 1 == moves.len();
            let [low, high] = [0, 8].map(|from: usize| {
                u64::from_le_bytes(tail_bytes[from..from + 8].try_into().expect("8 bytes"))
            });
            self.moves.push_back(packer::In {
                move_valid: true,
                move_last: is_last,
                move_primitive: Primitive::Put.code(),
                move_tail_bytes: tail.len() as u8,
                move_tail: [low, high],
                move_route: output,
                move_operation: operation,
                move_address: address,
                move_bytes: length,
                ..packer::In::default()
            });
            // What has come before the first read that fails leaves.
            let data = &bytes[at..at + length as usize];
            for (part, piece) in data.chunks(SHAPE.payload).enumerate() {
                let from = part * SHAPE.payload;
                let ends = is_last && from + piece.len() == data.len();
                if at + from + piece.len() <= came {
                    let tail = if ends { tail } else { Tail::EMPTY };
                    let packet = (address + from as u64, piece.to_vec(), tail);
                    self.expected[usize::from(output)].push_back(packet);
                }
            }
            at += length as usize;
        }
        self.reports.push_back((operation, fails));
        self.failed += usize::from(fails);
    }

    /// Reads are requested and completed; a beat goes into the register behind the memory.
    fn read(&mut self) -> Option<packer::In> {
        let next = self.reads.front().filter(|_| self.random.below(4) > 0);
        let tag = (0..TAGS as u8).find(|tag| self.open.iter().all(|(open, _)| open != tag));
        let is_free = tag.is_some_and(|tag| self.piece.as_ref().is_none_or(|it| it.0 != tag));
        let mut input =
            data_reorder::In { out_ready: self.held.is_none(), ..data_reorder::In::default() };
        if let (Some(read), Some(tag), true) = (next, tag, is_free) {
            input.read_valid = true;
            (input.read_tag, input.read_lane) = (tag, read.lane as u8);
            input.read_bytes = read.bytes.len() as u16;
        }
        if self.piece.is_none() && !self.open.is_empty() && self.random.below(3) > 0 {
            let at = self.random.below(self.open.len() as u64) as usize;
            let (tag, read) = self.open.swap_remove(at);
            self.piece = Some((tag, read, 0));
        }
        if let Some((tag, read, beat)) = &mut self.piece {
            let lanes = [vec![0; read.lane], read.bytes.clone(), vec![0; LANES]].concat();
            let beats = (read.lane + read.bytes.len()).div_ceil(LANES);
            let words = &lanes[*beat * LANES..][..LANES];
            input.in_valid = true;
            input.in_tag = *tag;
            input.in_failed = read.fails;
            input.in_bytes = read.bytes.len() as u16;
            input.in_remaining = input.in_bytes;
            input.in_data = [0, 8].map(|from: usize| {
                u64::from_le_bytes(words[from..from + 8].try_into().expect("8 bytes"))
            });
            *beat += 1;
            input.in_last = read.fails || *beat == beats;
        }
        if input.in_last {
            self.piece = None;
        }
        let out = self.reorder.cycle(input);
        assert!(!out.unexpected && !out.mismatched);
        if input.read_valid && out.read_ready {
            let read = self.reads.pop_front().expect("it is requested");
            self.ends.push_back(read.ends);
            self.open.push((input.read_tag, read));
        }
        if !(out.out_valid && input.out_ready) {
            return None;
        }
        let ends = out.out_last && self.ends.pop_front().expect("a beat is of a read");
        Some(packer::In {
            in_valid: true,
            in_ends: ends,
            in_failed: out.out_failed,
            in_from: out.out_from,
            in_to: out.out_to,
            in_data: out.out_data,
            ..packer::In::default()
        })
    }

    fn cycle(&mut self) {
        let came = self.read();
        let mut input = self.held.unwrap_or_default();
        if let Some(next) = self.moves.front() {
            let packer::In { in_valid, in_ends, in_failed, in_from, in_to, in_data, .. } = input;
            let beat = packer::In { in_valid, in_ends, in_failed, ..*next };
            input = packer::In { in_from, in_to, in_data, ..beat };
        }
        let in_ready = self.xbar.out().in_ready[0][0];
        // A crossbar that has taken a header takes the rest.
        assert!(in_ready || !self.mid);
        (input.out_ready, input.sent_ready) = (in_ready, self.random.below(4) == 0);
        let out = self.packer.cycle(input);
        if input.move_valid && out.move_ready {
            self.moves.pop_front();
        }
        if input.in_valid && out.in_ready {
            self.held = None;
        }
        self.held = self.held.or(came);
        if out.sent_valid && input.sent_ready {
            let report = (out.sent_operation, out.sent_failed);
            assert_eq!(Some(report), self.reports.pop_front());
        }

        // A packet goes into the crossbar without a pause.
        assert!(out.out_valid || !self.mid);
        let mut input = xbar::In { out_ready: [true; PORTS], ..xbar::In::default() };
        for (output, credit) in self.credit.iter_mut().enumerate() {
            input.credit[output][0] = std::mem::take(credit);
        }
        input.in_valid[0] = out.out_valid;
        input.in_output[0] = out.out_route;
        input.in_last[0] = out.out_last;
        input.in_data[0] = self.beats.len() as u64;
        if out.out_valid && in_ready {
            let words = out.out_data.iter().flat_map(|word| word.to_le_bytes());
            self.beats.push(words.take(usize::from(out.out_to) + 1).collect());
            self.mid = !out.out_last;
        }
        let out = self.xbar.cycle(input);
        for output in 0..2 {
            if !out.out_valid[output] {
                continue;
            }
            self.coming[output].extend_from_slice(&self.beats[out.out_data[output] as usize]);
            if out.out_last[output] {
                self.credit[output] = true;
                let bytes = std::mem::take(&mut self.coming[output]);
                let packet = PacketRepr::parse(&bytes).expect("it is a packet");
                let (address, data, tail) = self.expected[output].pop_front().expect("none more");
                assert_eq!(packet.header.span.address(), address);
                assert_eq!((packet.payload, packet.tail), (&data[..], tail));
                self.packets += 1;
            }
        }
    }
}

/// Reads whose completions overtake each other become packets behind the crossbar, byte for byte.
/// No packet pauses on its way into it. Of an operation one of whose reads failed, what came before
/// leaves and nothing else, and it is reported so, in its turn. No room is lost in the end.
#[test]
fn reads_become_packets_behind_the_crossbar() {
    for seed in 1..=3 {
        let mut path = Path::new(seed);
        for _ in 0..200_000 {
            path.cycle();
        }
        assert!(path.reports.is_empty(), "{} operations are open", path.reports.len());
        assert!(path.expected.iter().all(VecDeque::is_empty));
        let out = path.reorder.cycle(data_reorder::In::default());
        assert_eq!((usize::from(out.room), out.reads), (BEATS, 0));
        let out = path.packer.cycle(packer::In::default());
        assert_eq!((usize::from(out.room), out.packets, out.move_ready), (SHAPE.beats, 0, true));
        let (failed, packets) = (path.failed, path.packets);
        assert!(failed > 40 && packets > 1500, "{failed} failed, {packets} packets");
    }
}
