//! The cycle blocks of cHPP's send engine with each other: re-order memory, both packers, the
//! arbiter of their packets, the crossbar, and the dispatch of two receivers, against a completer
//! some of whose reads fail.

use std::collections::VecDeque;

use bellwire_model::cycle::data_reorder::{self, DataReorder, LANES};
use bellwire_model::cycle::get_packer::{self, GetPacker};
use bellwire_model::cycle::packer::{self, Packer, Shape};
use bellwire_model::cycle::packet_arb::{self, PacketArb};
use bellwire_model::cycle::rx_dispatch::{self, RxDispatch};
use bellwire_model::cycle::xbar::{self, Xbar};
use bellwire_model::engine::Random;
use bellwire_wire::packet::PacketRepr;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::Tail;

const OPERATIONS: usize = 600;
const TAGS: usize = 8;
const SHAPE: Shape = Shape { beats: 32, packets: 4, payload: 128, longest: 256 };
/// Beats of the re-order memory.
const BEATS: usize = 64;
const GETS: get_packer::Shape = get_packer::Shape { gets: 2, get_beats: 8 };
/// Receivers: a place of each class, and one for a GET behind. The longest packet is a NAP of 256
/// bytes with a tail.
const DISPATCH: rx_dispatch::Shape =
    rx_dispatch::Shape { packets: 1, gets: 1, data_beats: 18, get_beats: GETS.get_beats };
/// The processor at output 0.
const FIRST_CPU: u8 = 6;
/// Channels: that of PUTs and NAPs, and that of GETs. Classes of places have the same numbers.
const DATA: u8 = 0;
const GET: u8 = 1;

/// A read of an operation: its bytes, the lane of the first, and whether it fails.
#[derive(Clone, Debug)]
struct Read {
    lane: usize,
    bytes: Vec<u8>,
    fails: bool,
    /// It is the last one of its operation.
    ends: bool,
}

/// A PUT or a NAP that must leave: the address, the bytes, and the tail of an operation's last one.
type Expected = (u64, Vec<u8>, Tail);

/// A GET: what its header says, and its descriptor.
#[derive(Clone, Debug)]
struct Get {
    says: get_packer::In,
    beats: VecDeque<[u64; 2]>,
}

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
    /// GETs that were not let in, and places for them.
    gets: VecDeque<Get>,
    places: usize,
    /// Moves of GETs that were, and their beats.
    get_moves: VecDeque<get_packer::In>,
    get_beats: VecDeque<([u64; 2], bool)>,
    get_packer: GetPacker,
    arb: PacketArb,
    /// A packet goes into the crossbar, and from which packer.
    mid: Option<usize>,
    /// Beats that are in the crossbar, by the number that stands for each, with their last lane.
    beats: Vec<([u64; 2], u8)>,
    dispatch: [RxDispatch; 2],
    /// Receivers take GETs.
    takes_gets: bool,
    coming: [Vec<u8>; 2],
    expected: [VecDeque<Expected>; 2],
    /// Words of GETs that must come, and who sent each.
    words: [VecDeque<(u64, u16)>; 2],
    /// Operations to be reported, and whether they must have failed.
    reports: VecDeque<(u8, bool)>,
    get_reports: VecDeque<u8>,
    failed: usize,
    packets: usize,
}

impl Path {
    fn new(seed: u64) -> Path {
        let shape = xbar::Shape {
            ports: 2,
            channels: 2,
            classes: 2,
            depth: 2,
            room: 300,
            beats: 257,
            credits: 1,
        };
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
            gets: VecDeque::new(),
            places: GETS.gets,
            get_moves: VecDeque::new(),
            get_beats: VecDeque::new(),
            get_packer: GetPacker::new(GETS),
            arb: PacketArb::new(2, 2),
            mid: None,
            beats: Vec::new(),
            dispatch: [(); 2].map(|()| RxDispatch::new(DISPATCH)),
            takes_gets: false,
            coming: Default::default(),
            expected: Default::default(),
            words: Default::default(),
            reports: VecDeque::new(),
            get_reports: VecDeque::new(),
            failed: 0,
            packets: 0,
        };
        for operation in 0..OPERATIONS {
            path.operate(operation as u8);
            path.get(operation as u8);
        }
        path
    }

    /// A GET.
    fn get(&mut self, operation: u8) {
        let random = &mut self.random;
        let output = random.below(2) as u8;
        let count = 1 + random.below(GETS.get_beats as u64);
        let beats: VecDeque<_> = (0..count).map(|_| [random.word(), random.word()]).collect();
        let source = random.below(512) as u16;
        let words = beats.iter().flatten().map(|&word| (word, source));
        self.words[usize::from(output)].extend(words);
        let says = get_packer::In {
            move_valid: true,
            move_magic: operation,
            move_source: source,
            move_destination: destination(output) | random.below(32) as u16,
            move_bytes: (count as usize * LANES) as u16,
            move_route: output,
            move_operation: operation,
            ..get_packer::In::default()
        };
        self.gets.push_back(Get { says, beats });
        self.get_reports.push_back(operation);
    }

    /// A NAP, or a PUT of some moves. Its reads are cut without regard to them.
    fn operate(&mut self, operation: u8) {
        let random = &mut self.random;
        let is_nap = random.below(3) == 0;
        let primitive = if is_nap { Primitive::Nap } else { Primitive::Put };
        let output = random.below(2) as u8;
        let tail = Tail::new(&vec![operation; random.below(17) as usize]).expect("it is short");
        let mut tail_bytes = [0; LANES];
        tail_bytes[..tail.len()].copy_from_slice(tail.as_bytes());
        let mut moves = Vec::new();
        if is_nap {
            moves.push((0, 1 + random.below(SHAPE.longest as u64)));
        } else {
            for _ in 0..1 + random.below(3) {
                moves.push((random.below(1 << 32), 1 + random.below(300)));
            }
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
                move_primitive: primitive.code(),
                move_destination: destination(output),
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
            let most = if is_nap { SHAPE.longest } else { SHAPE.payload };
            for (part, piece) in data.chunks(most).enumerate() {
                let from = part * most;
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

    /// GETs for which there is a place are let in. Their moves and beats come at any time.
    fn let_in(&mut self) -> get_packer::In {
        if self.places > 0 && !self.gets.is_empty() && self.random.below(4) > 0 {
            let Get { says, beats, .. } = self.gets.pop_front().expect("there is one");
            self.places -= 1;
            self.get_moves.push_back(says);
            let count = beats.len();
            let ends = (1..=count).map(|at| at == count);
            self.get_beats.extend(beats.into_iter().zip(ends));
        }
        let mut input = get_packer::In::default();
        if let Some(says) = self.get_moves.front().filter(|_| self.random.below(2) == 0) {
            input = *says;
        }
        if let Some(&(in_data, in_ends)) =
            self.get_beats.front().filter(|_| self.random.below(2) == 0)
        {
            input = get_packer::In { in_valid: true, in_data, in_ends, ..input };
        }
        input.sent_ready = self.random.below(4) == 0;
        input
    }

    fn cycle(&mut self) {
        let came = self.read();
        let mut input = self.held.unwrap_or_default();
        if let Some(next) = self.moves.front() {
            let packer::In { in_valid, in_ends, in_failed, in_from, in_to, in_data, .. } = input;
            let beat = packer::In { in_valid, in_ends, in_failed, ..*next };
            input = packer::In { in_from, in_to, in_data, ..beat };
        }
        input.sent_ready = self.random.below(4) == 0;
        let get_input = self.let_in();

        // What both offer does not depend on whether it is taken.
        let out = self.packer.clone().cycle(input);
        let get_out = self.get_packer.clone().cycle(get_input);
        let mut offers =
            packet_arb::In { out_ready: self.xbar.out().in_ready[0], ..Default::default() };
        offers.in_valid[..2].copy_from_slice(&[out.out_valid, get_out.out_valid]);
        offers.in_last[..2].copy_from_slice(&[out.out_last, get_out.out_last]);
        offers.in_to[..2].copy_from_slice(&[out.out_to, LANES as u8 - 1]);
        offers.in_channel[..2].copy_from_slice(&[DATA, GET]);
        offers.in_route[..2].copy_from_slice(&[out.out_route, get_out.out_route]);
        offers.in_data[..2].copy_from_slice(&[out.out_data, get_out.out_data]);
        let goes = self.arb.cycle(offers);
        self.pack(packer::In { out_ready: goes.in_ready[0], ..input });
        self.held = self.held.or(came);
        self.pack_gets(get_packer::In { out_ready: goes.in_ready[1], ..get_input });

        // A packet goes into the crossbar without a pause, and without beats of the other packer.
        assert!(goes.out_valid || self.mid.is_none());
        let mut input = self.receive();
        input.in_valid[0] = goes.out_valid;
        input.in_channel[0] = goes.out_channel;
        input.in_class[0] = goes.out_channel;
        input.in_output[0] = goes.out_route;
        input.in_last[0] = goes.out_last;
        input.in_data[0] = self.beats.len() as u64;
        if goes.out_valid {
            let from = usize::from(!goes.in_ready[0] || !out.out_valid);
            assert!(self.mid.is_none_or(|mid| mid == from));
            self.mid = (!goes.out_last).then_some(from);
            self.beats.push((goes.out_data, goes.out_to));
        }
        self.xbar.cycle(input);
    }

    /// The packer's cycle.
    fn pack(&mut self, input: packer::In) {
        let out = self.packer.cycle(input);
        if input.move_valid && out.move_ready {
            self.moves.pop_front();
        }
        if input.in_valid && out.in_ready {
            self.held = None;
        }
        if out.sent_valid && input.sent_ready {
            let report = (out.sent_operation, out.sent_failed);
            assert_eq!(Some(report), self.reports.pop_front());
        }
    }

    /// That of the packer of GETs. A GET that has a place never waits.
    fn pack_gets(&mut self, input: get_packer::In) {
        let out = self.get_packer.cycle(input);
        if input.move_valid {
            assert!(out.move_ready);
            self.get_moves.pop_front();
        }
        if input.in_valid {
            assert!(out.in_ready);
            self.get_beats.pop_front();
        }
        self.places += usize::from(out.credit);
        if out.sent_valid && input.sent_ready {
            assert_eq!(Some(out.sent_operation), self.get_reports.pop_front());
        }
    }

    /// Receivers take what stands behind the crossbar. Says what they are ready for.
    fn receive(&mut self) -> xbar::In {
        let came = self.xbar.out();
        let mut input = xbar::In::default();
        for (output, dispatch) in self.dispatch.iter_mut().enumerate() {
            let in_valid = came.out_valid[output];
            let (in_data, in_to) = match in_valid {
                true => self.beats[came.out_data[output] as usize],
                false => Default::default(),
            };
            let (out_ready, get_ready) =
                (self.random.below(8) > 0, self.takes_gets && self.random.below(8) > 0);
            let out = dispatch.cycle(rx_dispatch::In {
                cpu: FIRST_CPU + output as u8,
                in_valid,
                in_class: came.out_class[output],
                in_last: came.out_last[output],
                in_to,
                in_data,
                packet_fits: true,
                out_ready,
                get_ready,
            });
            let drops = [out.unknown, out.misrouted, out.oversized, out.refused, out.mismatched];
            assert_eq!(drops, [false; 5]);
            input.out_ready[output] = out.in_ready;
            input.credit[output][..2].copy_from_slice(&out.credit);
            if out.get_valid && get_ready {
                let word = (out.get_word, out.get_source);
                assert_eq!(Some(word), self.words[output].pop_front());
            }
            if !(out.out_valid && out_ready) {
                continue;
            }
            let to = if out.out_last { out.out_to } else { LANES as u8 - 1 };
            let bytes = out.out_data.iter().flat_map(|word| word.to_le_bytes());
            self.coming[output].extend(bytes.take(usize::from(to) + 1));
            if out.out_last {
                let bytes = std::mem::take(&mut self.coming[output]);
                let packet = PacketRepr::parse(&bytes).expect("it is a packet");
                let (address, data, tail) = self.expected[output].pop_front().expect("none more");
                assert_eq!(packet.header.span.address(), address);
                assert_eq!((packet.payload, packet.tail), (&data[..], tail));
                self.packets += 1;
            }
        }
        input
    }

    /// GETs that have not come.
    fn gets_left(&self) -> usize {
        self.words.iter().map(VecDeque::len).sum()
    }
}

/// Queue pair 0 of the processor at an output.
fn destination(output: u8) -> u16 {
    u16::from(FIRST_CPU + output) << 5
}

/// Reads whose completions overtake each other become packets behind the crossbar, byte for byte,
/// and so do descriptors of GETs. No packet pauses on its way into it. Of an operation one of whose
/// reads failed, what came before leaves and nothing else, and it is reported so, in its turn.
/// While receivers take no GETs, all PUTs and NAPs arrive all the same. No room is lost in the end.
// shows: C-27
#[test]
fn reads_become_packets_behind_the_crossbar() {
    for seed in 1..=3 {
        let mut path = Path::new(seed);
        let all = path.gets_left();
        for _ in 0..100_000 {
            path.cycle();
        }
        assert!(path.reports.is_empty(), "{} operations are open", path.reports.len());
        assert!(path.expected.iter().all(VecDeque::is_empty));
        assert_eq!((path.gets_left(), path.places), (all, 0));
        path.takes_gets = true;
        for _ in 0..60_000 {
            path.cycle();
        }
        assert_eq!((path.gets_left(), path.places, path.get_reports.len()), (0, GETS.gets, 0));
        let out = path.reorder.cycle(data_reorder::In::default());
        assert_eq!((usize::from(out.room), out.reads), (BEATS, 0));
        let out = path.packer.cycle(packer::In::default());
        assert_eq!((usize::from(out.room), out.packets, out.move_ready), (SHAPE.beats, 0, true));
        let (failed, packets) = (path.failed, path.packets);
        assert!(failed > 40 && packets > 1000, "{failed} failed, {packets} packets");
    }
}
