//! The block `cycle::rx_dispatch` passes on what the dispatch of the event-driven model passes on,
//! over random packets: to the upload module, and into the queue for GETs.
//!
//! Nothing is uploaded here: a packet that has its turn is taken, and its place comes back.

use std::collections::VecDeque;

use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::span::ByteSpan;

use super::*;
use crate::chpp::controllers::Controllers;
use crate::chpp::crossbar::{DATA, GET};
use crate::chpp::journal::Journal;
use crate::chpp::node::Node;
use crate::chpp::operations::Operations;
use crate::chpp::{Config, NicEvent, Packet};
use crate::cycle::data_reorder::LANES;
use crate::cycle::line::bytes_of;
use crate::cycle::rx_dispatch::{self, In, RxDispatch, Shape};
use crate::engine::{Pool, Random, Schedule};

const _: () = assert!(DATA == rx_dispatch::DATA && GET == rx_dispatch::GET);

/// A GET that was passed on: its sender, its target and its descriptor.
type PassedGet = (Endpoint, Endpoint, Vec<u8>);

/// What a side has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Passed {
    /// Packets that the upload module has taken.
    packets: Vec<Vec<u8>>,
    gets: Vec<PassedGet>,
    /// Packets of a wrong type or form, and GETs with a wrong key.
    unknown: u64,
    refused: u64,
}

/// The event-driven model's dispatch of node 1, and all that it reaches.
struct Events {
    node: Node,
    config: Config,
    schedule: Schedule<NicEvent>,
    packets: Pool<Packet>,
    spare: Vec<Vec<u8>>,
    controllers: Controllers,
    journal: Journal,
    operations: Operations,
    notices: VecDeque<crate::chpp::host::Notice>,
    gets: Vec<PassedGet>,
    taken: Vec<Vec<u8>>,
}

impl Events {
    fn new(random: &mut Random) -> Events {
        let config = Config::prototype();
        let mut node = Node::new(&config, 1, random);
        for pair in &mut node.queue_pairs {
            // No packet waits for a record.
            pair.receive_ring = EventRing::new(0, u64::MAX);
        }
        Events {
            node,
            schedule: Schedule::new(1, config.nic.cycle()),
            packets: Pool::default(),
            spare: Vec::new(),
            controllers: Controllers::new(&config, random).unwrap(),
            journal: Journal::default(),
            operations: Operations::default(),
            notices: VecDeque::new(),
            config,
            gets: Vec::new(),
            taken: Vec::new(),
        }
    }

    /// Does something with the receiver, and dispatches what it then can.
    fn turn(&mut self, does: impl FnOnce(&mut Receiver, &mut Context)) {
        let Node { receiver, port, descriptors, layouts, queue_pairs, .. } = &mut self.node;
        let mut cx = Context {
            schedule: &mut self.schedule,
            config: &self.config,
            packets: &mut self.packets,
            spare: &mut self.spare,
            controllers: &mut self.controllers,
            journal: &mut self.journal,
            operations: &mut self.operations,
            notices: &mut self.notices,
        };
        does(receiver, &mut cx);
        let mut neighbours = ReceiveContext { port, descriptors, layouts, queue_pairs };
        receiver.dispatch(&mut cx, 1, &mut neighbours);
    }

    fn arrives(&mut self, class: usize, bytes: &[u8]) {
        let packet = Packet { bytes: bytes.to_vec(), operation: 0, part: 0, is_get: false };
        self.turn(|receiver, cx| {
            let packet = cx.packets.put(packet);
            receiver.landing.push(cx.now(), (class, packet));
            receiver.arrived(cx.now());
        });
    }

    /// The upload module is through with its packet; false if it has none.
    fn uploads(&mut self) -> bool {
        let Some(uploading) = self.node.receiver.uploading.take() else { return false };
        let Uploading { packet, class, header, address, .. } = uploading;
        self.taken.push(self.packets[packet].bytes.clone());
        if header.primitive == Primitive::Nap {
            // Its slot is free again.
            let (function, pair) = (header.destination.function(), header.destination.queue_pair());
            let at = usize::from(function) * self.config.nic.queue_pairs + usize::from(pair);
            self.node.queue_pairs[at].slots.cached.push(self.schedule.now(), address);
        }
        self.turn(|_, cx| Receiver::discard(cx, 1, class, packet));
        true
    }

    /// The engine takes a GET; false if there is none.
    fn takes_get(&mut self) -> bool {
        let Some(get) = self.node.descriptors.remote.pop(self.schedule.now()) else { return false };
        self.gets.push((get.from, get.to, get.bytes));
        self.turn(|_, _| ());
        true
    }

    /// Places that came back, by class.
    fn credits(&self) -> [usize; 2] {
        let behind = self.controllers.crossbars[0].credits_behind(1);
        [DATA, GET].map(|class| behind[class] - self.config.crossbar.receive_packets)
    }

    fn key(&self, of: Endpoint) -> u8 {
        let at = usize::from(of.function()) * self.config.nic.queue_pairs;
        self.node.queue_pairs[at + usize::from(of.queue_pair())].magic
    }

    /// Whether a packet is one that is dropped.
    fn is_wrong(&self, bytes: &[u8]) -> bool {
        HeaderRepr::parse(bytes).map_or(true, |header| self.key(header.destination) != header.magic)
    }

    /// Packets of a class that wait, and are dropped when they have their turn.
    fn wrong_waiting(&self, class: usize) -> usize {
        let waiting = self.node.receiver.waiting[class].iter();
        waiting.filter(|packet| self.is_wrong(&self.packets[**packet].bytes)).count()
    }

    fn passed(&self) -> Passed {
        let counters = self.node.receiver.counters;
        Passed {
            packets: self.taken.clone(),
            gets: self.gets.clone(),
            unknown: counters.unknown,
            refused: counters.refused,
        }
    }
}

/// The block.
struct Gates {
    dispatch: RxDispatch,
    packet_fits: bool,
    passed: Passed,
    /// What has left of a packet and of a descriptor.
    part: Vec<u8>,
    words: Vec<u8>,
    credits: [usize; 2],
}

impl Gates {
    fn new(gets: usize) -> Gates {
        let shape = Shape { packets: 4, gets, data_beats: 130, get_beats: 256 };
        Gates {
            dispatch: RxDispatch::new(shape),
            packet_fits: false,
            passed: Passed::default(),
            part: Vec::new(),
            words: Vec::new(),
            credits: [0; 2],
        }
    }

    /// One cycle, in which this beat is offered; true if it is taken.
    fn cycle(&mut self, beat: Option<In>, ready: (bool, bool), events: &Events) -> bool {
        let input = In {
            cpu: 1,
            in_valid: beat.is_some(),
            packet_fits: self.packet_fits,
            out_ready: ready.0,
            get_ready: ready.1,
            ..beat.unwrap_or_default()
        };
        let out = self.dispatch.cycle(input);
        let own = |pair: u8| Endpoint::new(1, pair >> 2, pair & 3).unwrap();
        self.packet_fits = out.packet_valid && events.key(own(out.packet_pair)) == out.packet_key;
        if out.out_valid && ready.0 {
            let count = if out.out_last { usize::from(out.out_to) + 1 } else { LANES };
            self.part.extend_from_slice(&bytes_of(out.out_data)[..count]);
            if out.out_last {
                self.passed.packets.push(std::mem::take(&mut self.part));
            }
        }
        if out.get_valid && ready.1 {
            self.words.extend_from_slice(&out.get_word.to_le_bytes());
            if out.get_last {
                let bits = out.get_source;
                let [cpu, function, pair] = [bits >> 5, bits >> 2 & 7, bits & 3];
                let from = Endpoint::new(cpu as u8, function as u8, pair as u8).unwrap();
                let get = (from, own(out.get_pair), std::mem::take(&mut self.words));
                self.passed.gets.push(get);
            }
        }
        for (count, credit) in self.credits.iter_mut().zip(out.credit) {
            *count += usize::from(credit);
        }
        self.passed.unknown += u64::from(out.unknown);
        self.passed.refused += u64::from(out.refused);
        assert!(!out.misrouted && !out.oversized && !out.mismatched);
        beat.is_some() && out.in_ready
    }

    /// A packet comes, with pauses.
    fn arrives(&mut self, class: usize, bytes: &[u8], random: &mut Random, events: &Events) {
        let beats = bytes.len().div_ceil(LANES);
        for (at, lanes) in bytes.chunks(LANES).enumerate() {
            let mut all = [0xee; LANES];
            all[..lanes.len()].copy_from_slice(lanes);
            let (words, _) = all.as_chunks();
            let beat = In {
                in_class: class as u8,
                in_last: at + 1 == beats,
                in_to: lanes.len() as u8 - 1,
                in_data: [0, 1].map(|word: usize| u64::from_le_bytes(words[word])),
                ..In::default()
            };
            while random.below(8) == 0 {
                self.cycle(None, (false, false), events);
            }
            assert!(self.cycle(Some(beat), (false, false), events), "a place is enough");
        }
    }

    /// A packet, or a descriptor, leaves.
    fn takes(&mut self, class: usize, random: &mut Random, events: &Events) {
        let passed = |gates: &Gates| [gates.passed.packets.len(), gates.passed.gets.len()][class];
        let before = passed(self);
        let leaves = (0..10_000).any(|_| {
            let ready = random.below(4) > 0;
            self.cycle(None, (ready && class == DATA, ready && class == GET), events);
            passed(self) > before
        });
        assert!(leaves, "it stands still");
    }
}

/// A packet, which may be wrong, and its class.
fn packet(events: &Events, random: &mut Random) -> (usize, Vec<u8>) {
    let (function, queue_pair) = (random.below(8) as u8, random.below(4) as u8);
    let destination = Endpoint::new(1, function, queue_pair).unwrap();
    let primitive = [Primitive::Nap, Primitive::Put, Primitive::Get][random.below(3) as usize];
    let is_get = primitive == Primitive::Get;
    let size = random.below(3) as usize;
    let length = if is_get {
        16 * (1 + random.below([2, 8, 256][size]) as usize)
    } else {
        random.below([20, 150, 2049][size]) as usize
    };
    let layout = &events.node.layouts[usize::from(function)];
    let address = if primitive == Primitive::Put { layout.free + random.below(64) } else { 0 };
    let wrong = random.below(12);
    let header = HeaderRepr {
        primitive,
        traffic_class: random.below(8) as u8,
        requester_id: random.word() as u16,
        // The upload module looks at the keys of the others.
        magic: events.key(destination) ^ u8::from(is_get && wrong == 0),
        source: Endpoint::new(random.below(4) as u8, random.below(8) as u8, random.below(4) as u8)
            .unwrap(),
        destination,
        wants_event: random.below(2) == 0,
        span: ByteSpan::new(address, length).unwrap(),
    };
    let payload: Vec<u8> = (0..length).map(|_| random.word() as u8).collect();
    let tail: Vec<u8> = (0..random.below(17)).map(|_| random.word() as u8).collect();
    let packet = PacketRepr { header, payload: &payload, tail: Tail::new(&tail).unwrap() };
    let mut bytes = vec![0; packet.buffer_len()];
    packet.emit(&mut bytes).unwrap();
    if wrong == 1 {
        // Bits that are zero in every packet.
        bytes[1] |= 1;
    }
    (usize::from(is_get), bytes)
}

/// How often GETs waited for a place.
#[derive(Debug, Default)]
struct Seen {
    full: usize,
    passed: Passed,
}

/// Both get the same work, a thing at a time; the gates have places for `gets` GETs. An error says
/// what differs.
fn side_by_side(seed: u64, gets: usize) -> Result<Seen, String> {
    let mut random = Random::new(seed);
    let mut events = Events::new(&mut random);
    let mut gates = Gates::new(gets);
    let mut sent = [0; 2];
    let mut seen = Seen::default();
    // Of eight things, how many are a packet, and how many of the rest are an upload.
    let mut mood = [4, 4];
    for step in 0..6000 {
        if step % 100 == 0 {
            mood = [1 + random.below(7), random.below(9)];
        }
        if random.below(8) < mood[0] {
            let (class, bytes) = packet(&events, &mut random);
            if sent[class] - events.credits()[class] < events.config.crossbar.receive_packets {
                sent[class] += 1;
                gates.arrives(class, &bytes, &mut random, &events);
                events.arrives(class, &bytes);
            }
        } else if random.below(8) < mood[1] {
            if events.uploads() {
                gates.takes(DATA, &mut random, &events);
            }
        } else if events.takes_get() {
            gates.takes(GET, &mut random, &events);
        }
        for _ in 0..6 {
            gates.cycle(None, (false, false), &events);
        }
        seen.full += usize::from(events.node.receiver.blocked == Some(Blocked::RemoteGets));
        let mut passed = events.passed();
        for class in [DATA, GET] {
            // Gates drop a packet when it comes.
            let early = events.wrong_waiting(class);
            let expected = events.credits()[class] + early;
            if gates.credits[class] != expected {
                let credits = gates.credits[class];
                return Err(format!("step {step}: {credits} places of {class}, not {expected}"));
            }
        }
        let early = |wrong: bool| {
            let waiting = events.node.receiver.waiting.iter().flat_map(|queue| queue.iter());
            let bytes = waiting.map(|packet| &events.packets[*packet].bytes);
            bytes
                .filter(|bytes| events.is_wrong(bytes))
                .filter(|bytes| HeaderRepr::parse(bytes).is_ok() == wrong)
                .count() as u64
        };
        passed.unknown += early(false);
        passed.refused += early(true);
        if gates.passed != passed {
            return Err(format!("step {step}: not the same has passed"));
        }
    }
    seen.passed = gates.passed;
    Ok(seen)
}

/// Random PUTs, NAPs and GETs, of which some are wrong: the same packets go to the upload module,
/// and the same GETs into their queue, in the same order. Each place comes back when it does in the
/// model, also while the queue for GETs is full.
// shows: C-37
#[test]
fn gates_dispatch_the_same() {
    for seed in 1..=3 {
        let seen = side_by_side(seed, 4).unwrap();
        let Passed { packets, gets, unknown, refused } = seen.passed;
        let all = [packets.len(), gets.len(), unknown as usize, refused as usize, seen.full];
        assert!(all.iter().all(|&count| count > 50), "{all:?}");
    }
}

/// Canary: a queue for GETs with another depth is noticed.
#[test]
fn another_depth_is_noticed() {
    for gets in [3, 5] {
        assert!(side_by_side(1, gets).unwrap_err().contains("places of 1"));
    }
}
