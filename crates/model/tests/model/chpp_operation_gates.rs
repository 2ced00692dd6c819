//! The cycle blocks of cHPP between descriptors and packets with each other: the gate of those from
//! here, two blocks that take descriptors apart, the arbiter of their operations, the joiner of
//! their data, both packers and the sender of events, against a memory some of whose reads fail.

use std::collections::{BTreeMap, VecDeque};

use bellwire_model::cycle::data_join::{self, DataJoin};
use bellwire_model::cycle::data_reorder::LANES;
use bellwire_model::cycle::desc_extract::{self, DescExtract};
use bellwire_model::cycle::desc_gate::{self, DescGate};
use bellwire_model::cycle::get_packer::{self, GetPacker};
use bellwire_model::cycle::op_arb::{self, EXTRACTS, MARK, OpArb, REMOTE};
use bellwire_model::cycle::packer::{self, Packer};
use bellwire_model::cycle::send_event::{self, SendEvent};
use bellwire_model::engine::Random;
use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::{Chain, Entry};
use bellwire_wire::event::Status;
use bellwire_wire::packet::PacketRepr;
use bellwire_wire::tail::Tail;

const EXTRACT: desc_extract::Shape = desc_extract::Shape { places: 2, beats: 16, request: 8 };
const PACKER: packer::Shape = packer::Shape { beats: 32, packets: 4, payload: 128, longest: 256 };
const GETS: get_packer::Shape = get_packer::Shape { gets: 2, get_beats: 16 };
const EVENTS: send_event::Shape = send_event::Shape { functions: 4, depth: 4, dropped_bits: 32 };
/// The key of the far queue pair has this bit in answers to GETs from elsewhere.
const ANSWER: u8 = 0x80;
/// Reads whose data has not left, at most.
const READS: usize = 8;
/// Reads from this address on fail.
const BROKEN: u64 = 1 << 36;

/// A byte of host memory.
fn memory(address: u64) -> u8 {
    (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8
}

/// A packet that must leave: its address, its bytes, its tail, and whether it ends its operation.
type Expected = (u64, Vec<u8>, Tail, bool);

/// The blocks, connected as in gates, and what they must do.
struct Path {
    gate: DescGate,
    extracts: [DescExtract; EXTRACTS],
    arb: OpArb,
    join: DataJoin,
    packer: Packer,
    get_packer: GetPacker,
    events: SendEvent,
    /// An operation that answers a GET is reported as one from here.
    forgets_marks: bool,
    random: Random,
    /// By extract, words that were not taken; of those from here, of doorbells that were.
    words: [VecDeque<desc_extract::In>; EXTRACTS],
    /// The descriptor from here whose doorbell waits.
    next: Option<Vec<desc_extract::In>>,
    begun: u64,
    /// Reads whose data has not left: where, and how much.
    reads: VecDeque<(u64, u64)>,
    /// By extract, packets to come; descriptors of GETs to come; the extract between whose packets
    /// of an operation no other one may stand.
    expected: [VecDeque<Expected>; EXTRACTS],
    gets: VecDeque<Vec<u8>>,
    mid: Option<usize>,
    coming: Vec<u8>,
    coming_get: Vec<u8>,
    /// By address of a descriptor from here, the status that its event must have.
    due: BTreeMap<u64, Status>,
    seen: Seen,
}

/// How often something happened.
#[derive(Debug, Default)]
struct Seen {
    packets: [u64; EXTRACTS],
    gets: u64,
    events: u64,
    failed: u64,
    refused: u64,
    answers: u64,
}

impl Path {
    fn new(seed: u64) -> Path {
        Path {
            gate: DescGate::new(EVENTS.functions, GETS.gets),
            extracts: [(); EXTRACTS].map(|()| DescExtract::new(EXTRACT)),
            arb: OpArb::default(),
            join: DataJoin::new(READS),
            packer: Packer::new(PACKER),
            get_packer: GetPacker::new(GETS),
            events: SendEvent::new(EVENTS),
            forgets_marks: false,
            random: Random::new(seed),
            words: Default::default(),
            next: None,
            begun: 0,
            reads: VecDeque::new(),
            expected: Default::default(),
            gets: VecDeque::new(),
            mid: None,
            coming: Vec::new(),
            coming_get: Vec::new(),
            due: BTreeMap::new(),
            seen: Seen::default(),
        }
    }

    /// Entries of a list with this sum, and how many bytes come before the first one that fails.
    fn list(&mut self, sum: u64, breaks: bool) -> (Vec<Entry>, u64) {
        let random = &mut self.random;
        let (mut entries, mut left, mut came) = (Vec::new(), sum, sum);
        let count = 1 + random.below(3);
        for at in 1..=count {
            let length = if at == count { left } else { random.below(left + 1) };
            let is_broken = breaks && length > 0 && random.below(8) == 0;
            let address = random.below(1 << 32) | if is_broken { BROKEN } else { 0 };
            if is_broken {
                came = came.min(sum - left);
            }
            entries.push(Entry { address, length });
            left -= length;
        }
        (entries, came)
    }

    /// The words of a descriptor for an extract.
    fn descriptor(&mut self, of: usize) -> Vec<desc_extract::In> {
        let is_remote = of == REMOTE;
        let kind = if is_remote { 4 } else { self.random.below(6) };
        let total = if self.random.below(6) == 0 { 0 } else { 1 + self.random.below(600) };
        let total = if kind < 2 { total.min(200) } else { total };
        let ((sources, came), (destinations, _)) =
            (self.list(total, kind != 3), self.list(total, false));
        let data: Vec<u8> = (0..total).map(|_| self.random.word() as u8).collect();
        let tail_bytes = self.random.below(17) as usize;
        let tail = Tail::new(&vec![self.begun as u8; tail_bytes]).expect("it is short");
        let chain =
            Chain { sources: (&sources[..]).into(), destinations: (&destinations[..]).into() };
        let magic = (self.begun as u8) & !ANSWER;
        let work = match kind {
            0 => Work::NapImmediate(&data),
            1 => Work::NapIndirect((&sources[..]).into()),
            2 | 5 => Work::Put(chain),
            _ => Work::Get { chain, return_magic: magic | ANSWER },
        };
        let is_get = !is_remote && matches!(work, Work::Get { .. });
        let repr = DescriptorRepr {
            destination: Endpoint::new(7, 2, 1).unwrap(),
            queue_pair: 1,
            traffic_class: 0,
            magic,
            wants_event: true,
            work,
            tail,
        };
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut bytes).expect("it is right");
        let is_wrong = kind == 5;
        if is_wrong {
            // Its lists differ.
            bytes[LANES * (1 + sources.len()) + 8] ^= 1;
        }
        let in_function = self.random.below(4) as u8;
        let in_address = 16 * self.begun;
        self.begun += 1;
        let status = match came {
            _ if is_wrong => Status::UnequalSums,
            _ if is_get || kind == 0 || came == total => Status::Success,
            _ => Status::SourceFault,
        };
        if !is_remote {
            self.due.insert(in_address, status);
        }
        if is_get {
            self.gets.push_back(bytes.clone());
        } else if !is_wrong {
            let (bytes, came) = if kind == 0 {
                (data, total)
            } else {
                let byte = |it: &Entry| (it.address..it.address + it.length).map(memory);
                (sources.iter().flat_map(byte).collect(), came)
            };
            let moves =
                if kind < 2 { vec![Entry { address: 0, length: total }] } else { destinations };
            self.expect(of, &moves, &bytes, came as usize, tail);
        }
        let count = bytes.len() / 8;
        let words = bytes.as_chunks().0.iter().enumerate().map(|(at, word)| desc_extract::In {
            in_valid: true,
            in_last: at + 1 == count,
            in_remote: is_remote,
            in_function,
            in_pair: 2,
            in_peer: 3,
            in_address,
            in_word: u64::from_le_bytes(*word),
            ..desc_extract::In::default()
        });
        words.collect()
    }

    /// Packets of an operation that must leave, of whose bytes so many come.
    fn expect(&mut self, of: usize, moves: &[Entry], bytes: &[u8], came: usize, tail: Tail) {
        let is_nap = moves[0].address == 0 && moves.len() == 1;
        let most = if is_nap { PACKER.longest } else { PACKER.payload };
        let mut packets = Vec::new();
        let mut at = 0;
        for entry in moves.iter().filter(|it| it.length > 0 || bytes.is_empty()) {
            let data = &bytes[at..at + entry.length as usize];
            for (part, piece) in data.chunks(most).enumerate() {
                let from = at + part * most;
                packets.push((entry.address + (part * most) as u64, from, piece.to_vec()));
            }
            at += data.len();
        }
        if bytes.is_empty() {
            packets = vec![(0, 0, Vec::new())];
        }
        let count = packets.len();
        for (number, (address, from, piece)) in packets.into_iter().enumerate() {
            let ends = number + 1 == count;
            if from + piece.len() <= came {
                // One that fails behind it ends the operation, too.
                let tail = if ends { tail } else { Tail::EMPTY };
                self.expected[of].push_back((address, piece, tail, ends));
            }
        }
        if came < bytes.len()
            && let Some(last) = self.expected[of].back_mut()
        {
            last.3 = true;
        }
    }

    /// Descriptors come.
    fn come(&mut self) {
        if self.words[REMOTE].is_empty() && self.random.below(8) == 0 {
            let words = self.descriptor(REMOTE);
            self.words[REMOTE].extend(words);
        }
        if self.next.is_none() {
            self.next = Some(self.descriptor(0));
        }
    }

    /// The beat of a read that comes next.
    fn beat(&self) -> Option<data_join::In> {
        let &(address, bytes) = self.reads.front()?;
        let data_from = (address % LANES as u64) as u8;
        let here = bytes.min(LANES as u64 - u64::from(data_from));
        let data_failed = address >= BROKEN;
        let lane = |at: usize| memory(address - u64::from(data_from) + at as u64);
        let lanes: [u8; LANES] = std::array::from_fn(lane);
        Some(data_join::In {
            data_valid: true,
            data_failed,
            data_last: data_failed || here == bytes,
            data_from,
            data_to: data_from + here as u8 - 1,
            data: [0, 8].map(|from: usize| {
                u64::from_le_bytes(lanes[from..from + 8].try_into().expect("8 bytes"))
            }),
            ..data_join::In::default()
        })
    }

    fn cycle(&mut self, comes: bool) {
        if comes {
            self.come();
        }
        let mut inputs = [0, 1].map(|of: usize| {
            let word = self.words[of].front().filter(|_| self.random.below(4) > 0);
            let (cpu, cpus, source_fits) = (1, 16, true);
            let says = word.copied().unwrap_or_default();
            desc_extract::In { cpu, cpus, source_fits, ..says }
        });
        // What blocks offer does not depend on what is taken.
        let mut gate = self.gate_input(&inputs[0], comes);
        let goes = self.gate.clone().cycle(gate);
        gate.take = goes.may_ring[usize::from(gate.take_function)];
        inputs[0].in_valid = goes.to_valid;
        let offers = [0, 1].map(|of: usize| self.extracts[of].clone().cycle(inputs[of]));
        let place = self.events.clone().cycle(send_event::In {
            move_function: (offers[0].move_source >> 2) as u8 & 7,
            ..send_event::In::default()
        });
        let mut asks = op_arb::In {
            move_valid: offers.map(|it| it.move_valid),
            move_last: offers.map(|it| it.move_last),
            move_get: offers[0].move_primitive == bellwire_wire::primitive::Primitive::Get.code(),
            move_total: offers.map(|it| it.move_total),
            move_says: [[0; 4], [1; 4]],
            read_valid: offers.map(|it| it.read_valid),
            read_ends: offers.map(|it| it.read_ends),
            read_address: offers.map(|it| it.read_address),
            read_bytes: offers.map(|it| it.read_bytes),
            data_valid: offers.map(|it| it.data_valid),
            data_ends: offers.map(|it| it.data_ends),
            data_get: offers[0].data_get,
            data_to: offers.map(|it| it.data_to),
            data: offers.map(|it| it.data),
            place_ready: place.move_ready,
            place: place.move_place,
            ask_ready: self.reads.len() < READS && self.random.below(4) > 0,
            ..op_arb::In::default()
        };
        let goes = self.arb.clone().cycle(asks);
        let of = goes.pack_says[0] as usize;

        let data = self.beat().filter(|_| self.random.below(4) > 0).unwrap_or_default();
        let mut joins = data_join::In {
            put_valid: goes.put_valid,
            put_ends: goes.put_ends,
            put_to: goes.put_to,
            put_data: goes.put_data,
            ..data
        };
        let joined = self.join.clone().cycle(joins);
        let said = offers[of];
        let mut beat = packer::In {
            move_valid: goes.pack_valid,
            move_last: goes.pack_last,
            move_primitive: said.move_primitive,
            move_traffic_class: said.move_traffic_class,
            move_magic: said.move_magic,
            move_source: said.move_source,
            move_destination: said.move_destination,
            move_wants_event: said.move_wants_event,
            move_tail_bytes: said.move_tail_bytes,
            move_tail: said.move_tail,
            move_operation: goes.pack_operation,
            move_address: said.move_address,
            move_bytes: said.move_bytes,
            in_valid: joined.out_valid,
            in_ends: joined.out_ends,
            in_failed: joined.out_failed,
            in_from: joined.out_from,
            in_to: joined.out_to,
            in_data: joined.out_data,
            out_ready: self.random.below(4) > 0,
            sent_ready: true,
            ..packer::In::default()
        };
        if beat.move_primitive == 0 {
            beat.move_primitive = bellwire_wire::primitive::Primitive::Put.code();
        }
        let packs = self.packer.cycle(beat);
        asks.pack_ready = packs.move_ready;
        joins.out_ready = packs.in_ready;
        asks.put_ready = self.join.clone().cycle(joins).put_ready;
        let get_input = get_packer::In {
            move_valid: goes.get_valid,
            move_magic: offers[0].move_magic,
            move_source: offers[0].move_source,
            move_destination: offers[0].move_destination,
            move_bytes: offers[0].move_total as u16,
            move_operation: place.move_place,
            in_valid: goes.get_data_valid,
            in_ends: offers[0].data_ends,
            in_data: offers[0].data,
            out_ready: self.random.below(4) == 0,
            sent_ready: true,
            ..get_packer::In::default()
        };
        let gets = self.get_packer.cycle(get_input);
        assert!(!get_input.in_valid || gets.in_ready, "a GET that was let in never waits");
        (asks.get_ready, asks.get_data_ready) = (gets.move_ready, gets.in_ready);

        let done = self.arb.cycle(asks);
        joins.read_valid = done.ask_valid && asks.ask_ready;
        joins.read_ends = done.ask_ends;
        let joined = self.join.cycle(joins);
        if joins.data_valid && joined.data_ready {
            self.take_beat(&joins);
        }
        if joins.read_valid {
            assert!(joined.read_ready, "it has room for as many reads");
            self.reads.push_back((done.ask_address, done.ask_bytes.into()));
        }
        gate.to_ready = offers[0].in_ready;
        gate.move_valid = done.place_valid && place.move_ready;
        gate.move_get = asks.move_get;
        gate.move_function = (offers[0].move_source >> 2) as u8 & 7;
        gate.report_function = offers[0].report_function;
        gate.credit = gets.credit;
        gate.report_valid = self.tell(&offers, &done, &packs, &gets, &inputs);
        let let_in = self.gate.cycle(gate);
        assert_eq!(let_in.word_ready && gate.word_valid, inputs[0].in_valid && gate.to_ready);
        if gate.take
            && let Some(words) = self.next.take()
        {
            self.words[0].extend(words);
        }
        if packs.out_valid && beat.out_ready {
            self.leave(&packs);
        }
        if gets.out_valid && get_input.out_ready {
            self.leave_get(&gets);
        }
    }

    /// The doorbell that waits, the word that is offered, and room for events.
    fn gate_input(&self, word: &desc_extract::In, comes: bool) -> desc_gate::In {
        let mut input = desc_gate::In {
            room: self.events.clone().cycle(send_event::In::default()).room,
            word_valid: word.in_valid,
            word_last: word.in_last,
            word_void: word.in_failed || word.in_refused,
            word_primitive: word.in_word as u8 & 0xf,
            ..desc_gate::In::default()
        };
        if let Some(words) = self.next.as_ref().filter(|_| comes && self.words[0].len() < 64) {
            input.take_function = words[0].in_function;
            input.waits[usize::from(words[0].in_function)] = true;
        }
        input
    }

    /// A beat of the oldest read is taken.
    fn take_beat(&mut self, beat: &data_join::In) {
        let (address, bytes) = self.reads.front_mut().expect("it is of a read");
        let here = u64::from(beat.data_to - beat.data_from) + 1;
        (*address, *bytes) = (*address + here, *bytes - here);
        if beat.data_failed || *bytes == 0 {
            self.reads.pop_front();
        }
    }

    /// The extracts' cycle, and that of the sender of events; whether a report is taken.
    fn tell(
        &mut self,
        offers: &[desc_extract::Out; EXTRACTS],
        done: &op_arb::Out,
        packs: &packer::Out,
        gets: &get_packer::Out,
        inputs: &[desc_extract::In; EXTRACTS],
    ) -> bool {
        let says = offers[0];
        let is_answer = packs.sent_operation & MARK != 0;
        self.seen.answers += u64::from(packs.sent_valid && is_answer);
        let hears = packs.sent_valid && (!is_answer || self.forgets_marks);
        let input = send_event::In {
            move_valid: done.place_valid,
            move_function: (says.move_source >> 2) as u8 & 7,
            move_pair: says.move_source as u8 & 3,
            move_peer: says.move_destination,
            move_primitive: says.move_primitive,
            move_total: says.move_total,
            move_descriptor: says.move_descriptor,
            sent_valid: [hears, gets.sent_valid],
            sent_failed: [packs.sent_failed, false],
            sent_place: [packs.sent_operation, gets.sent_operation].map(|it| it % (4 * 4)),
            report_valid: says.report_valid,
            report_status: says.report_status,
            report_function: says.report_function,
            report_pair: says.report_pair,
            report_peer: says.report_peer,
            report_primitive: says.report_primitive,
            report_address: says.report_address,
            event_ready: self.random.below(4) == 0,
            ..send_event::In::default()
        };
        let out = self.events.cycle(input);
        if out.event_valid && input.event_ready {
            let (address, status) =
                (out.event_record[2] & 0xff_ffff_ffff, out.event_record[3] >> 48);
            let due = self.due.remove(&address).expect("an event of an operation from here, once");
            assert_eq!(due.code(), status as u8 & 7, "{address:x}");
            self.seen.events += 1;
            self.seen.failed += u64::from(due == Status::SourceFault);
            self.seen.refused += u64::from(due == Status::UnequalSums);
        }
        for (of, word) in inputs.iter().enumerate() {
            let out = self.extracts[of].cycle(desc_extract::In {
                read_ready: done.read_ready[of],
                move_ready: done.move_ready[of],
                data_ready: done.data_ready[of],
                report_ready: out.report_ready,
                ..*word
            });
            if word.in_valid && out.in_ready {
                self.words[of].pop_front();
            }
        }
        // An operation that was let in has a place for its event.
        assert!(!says.report_valid || out.report_ready || done.place_valid);
        says.report_valid && out.report_ready
    }

    /// A beat of a packet leaves.
    fn leave(&mut self, out: &packer::Out) {
        let to = if out.out_last { usize::from(out.out_to) } else { LANES - 1 };
        let bytes = out.out_data.iter().flat_map(|word| word.to_le_bytes());
        self.coming.extend(bytes.take(to + 1));
        if !out.out_last {
            return;
        }
        let bytes = std::mem::take(&mut self.coming);
        let packet = PacketRepr::parse(&bytes).expect("it is a packet");
        let of = usize::from(packet.header.magic & ANSWER != 0);
        assert!(self.mid.is_none_or(|mid| mid == of), "operations are whole");
        let (address, data, tail, ends) = self.expected[of].pop_front().expect("none more");
        assert_eq!(packet.header.span.address(), address);
        assert_eq!((packet.payload, packet.tail), (&data[..], tail));
        self.mid = (!ends).then_some(of);
        self.seen.packets[of] += 1;
    }

    /// A beat of a GET leaves.
    fn leave_get(&mut self, out: &get_packer::Out) {
        self.coming_get.extend(out.out_data.iter().flat_map(|word| word.to_le_bytes()));
        if out.out_last {
            let bytes = std::mem::take(&mut self.coming_get);
            let packet = PacketRepr::parse(&bytes).expect("it is a packet");
            assert_eq!(Some(packet.payload.to_vec()), self.gets.pop_front());
            self.seen.gets += 1;
        }
    }

    /// Runs it, and then lets all that was begun come to its end.
    fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle(true);
        }
        // What was not let in yet does not count.
        let last = self.next.take().expect("one always waits");
        self.due.remove(&last[0].in_address);
        for _ in 0..20_000 {
            self.cycle(false);
        }
    }
}

/// Operations from here and answers to GETs from elsewhere leave whole, byte for byte and in their
/// order, also if one of their reads fails. Each operation from here has one event, with its
/// status, and an answer has none.
#[test]
fn operations_from_here_and_elsewhere_share_a_packer() {
    for seed in 1..=2 {
        let mut path = Path::new(seed);
        path.run(30_000);
        let seen = &path.seen;
        assert!(path.due.is_empty(), "{} events lack", path.due.len());
        let room = path.events.cycle(send_event::In::default()).room;
        assert_eq!(room[..EVENTS.functions], [EVENTS.depth as u8; 4]);
        let Seen { packets: [here, elsewhere], gets, events, failed, refused, answers } = *seen;
        let all = [here, elsewhere, gets, events, failed, refused, answers];
        assert!(all.iter().all(|&count| count > 30), "{seen:?}");
    }
}

/// Canary: an answer to a GET that is taken for an operation from here is noticed.
#[test]
#[should_panic]
fn answers_without_a_mark_are_noticed() {
    let mut path = Path::new(1);
    path.forgets_marks = true;
    path.run(30_000);
    assert!(path.due.is_empty());
}
