//! Whole interfaces of cHPP's cycle blocks, each with a host memory and software, and a network
//! between two of them. Memories, hosts and network wait at random, and some reads fail or never
//! come. Software also does what must be refused or dropped, and counts it. The lock-step of
//! `hardware/nic_core` has this load, too.

mod node;
mod places;

use std::collections::{BTreeMap, VecDeque};

use bellwire_model::cycle::nic_core::{CLASSES, COUNTS, In, NicCore, Out, Shape, TOLD};
use bellwire_model::cycle::packer;
use bellwire_model::engine::Random;
use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::doorbell::DoorbellRepr;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::{Chain, Entry};
use bellwire_wire::event::Status;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::Tail;

use places::*;

// What is told, of that which software does wrong.
const BAD_STORE: usize = 0;
const FULL_FIFO: usize = 1;
const FAR_GET: usize = 4;
const WRONG_GET: usize = 10;
const WRONG_PACKET: usize = 13;
const OUTSIDE: usize = 14;
const CLOSED: usize = 15;
const PASSED_OVER: usize = 16;
const NO_RING: usize = 18;
const MISPLACED: usize = 21;
const WRONG: [usize; 10] = [
    BAD_STORE,
    FULL_FIFO,
    FAR_GET,
    WRONG_GET,
    WRONG_PACKET,
    OUTSIDE,
    CLOSED,
    PASSED_OVER,
    NO_RING,
    MISPLACED,
];

/// Sizes of an interface with which all is often full and often empty.
pub const SHAPE: Shape = Shape {
    functions: 8,
    bells: 4,
    tags: 8,
    timeout: 1500,
    beats: 64,
    reads: 8,
    request: 8,
    longest: 32,
    fetches: 4,
    places: 2,
    events: 4,
    gets: 2,
    packer: packer::Shape { beats: 32, packets: 4, payload: 128, longest: 256 },
    packets: 2,
    depth: 4,
    room: 128,
    write: 128,
    slots: 4,
    batch: 2,
};

/// What is wrong with an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrong {
    Nothing,
    /// Sources and destinations have not the same bytes.
    Sums,
    /// The descriptor is another function's.
    Descriptor,
    /// A bit of the doorbell is turned that must be zero.
    Bell,
    /// The key of the far queue pair, or of the own one in a GET.
    Key,
    Answer,
    /// Sources or destinations reach out of their window.
    Source,
    Target,
    /// The packet is for a third processor, or one that cannot be.
    Astray,
    Nowhere,
}

/// What is planted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// A bit of a completion is turned.
    Turned,
    /// A beat of a write is lost.
    Lost,
    /// The network does not tell of a free place.
    Silent,
    /// A completion is told to be that of the next tag.
    Mixed,
}

/// A read that waits for completions.
#[derive(Clone, Copy, Debug)]
struct Read {
    tag: u8,
    address: u64,
    bytes: u64,
    fails: bool,
}

/// What must arrive at a receiver and be told there.
#[derive(Clone, Debug)]
struct Due {
    ring: u64,
    primitive: Primitive,
    peer: Endpoint,
    /// Bytes, and for a NAP also which.
    data: Vec<u8>,
}

/// How often something happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    /// Events of operations, and those of them whose reads failed, and whose descriptor was wrong.
    pub sent: u64,
    /// See `sent`.
    pub failed: u64,
    /// See `sent`.
    pub refused: u64,
    /// See `sent`.
    pub bad: u64,
    /// Events of packets that came.
    pub puts: u64,
    /// See `puts`.
    pub naps: u64,
    /// Reads that never came.
    pub forgotten: u64,
}

/// What a node has as its interface.
pub trait Interface {
    /// One cycle.
    fn cycle(&mut self, input: In) -> Out;

    /// Whether all that software has written is there.
    fn is_told(&self) -> bool {
        true
    }
}

impl Interface for NicCore {
    fn cycle(&mut self, input: In) -> Out {
        NicCore::cycle(self, input)
    }
}

/// An interface, its host memory, and software.
struct Node {
    core: Box<dyn Interface>,
    shape: Shape,
    /// Which node it is, its processor, and how many there are.
    number: u8,
    cpu: u8,
    cpus: u8,
    random: Random,
    memory: Vec<u8>,
    /// Registers that the host writes, stores that ring, and how much the core was told.
    host: VecDeque<In>,
    bells: VecDeque<In>,
    reads: Vec<Read>,
    /// The completion that comes: what it says, its address, and the bytes that are left.
    piece: Option<(In, u64, u64)>,
    /// Bytes of the write that leaves that have left.
    written: u64,
    /// Beats from the network, and free places there that are not told yet.
    network: VecDeque<In>,
    credits: [u64; CLASSES],
    /// By ring, records that were read.
    read: Vec<u64>,
    /// By queue pair, slots that were listed, and those of them that no NAP has used yet.
    listed: Vec<u64>,
    slots: Vec<VecDeque<u64>>,
    /// By address of a descriptor, its function and how its operation must end; by tail, what must
    /// arrive.
    due: BTreeMap<u64, (u64, Status)>,
    arrives: BTreeMap<u64, Due>,
    /// By function, the next place for a descriptor and for data.
    next: Vec<(u64, u64)>,
    fault: Fault,
    seen: Seen,
    mood: Mood,
    /// Software itself does what must be refused: nobody between it and the core does.
    errs: bool,
    /// How often something must be told or refused, how often it was, and the last counts.
    must: Told,
    told: Told,
    counts: [u32; COUNTS],
}

/// By what blocks tell, how often; likewise what the host writes and cannot be.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    told: [u64; TOLD],
    refused: [u64; 3],
    /// Packets for another processor, whose key nobody looks at.
    astray: u64,
}

/// Of eight cycles, in how many the host takes a read or a beat of a write, the network takes a
/// beat, a beat comes from there, one of a completion does, and software may look at a ring.
#[derive(Clone, Copy, Debug)]
struct Mood {
    reads: u64,
    writes: u64,
    to: u64,
    from: u64,
    completes: u64,
    polls: u64,
}

/// What is wrong with an operation of this kind, as `begin` counts them: mostly nothing.
fn draw(random: &mut Random, kind: u64) -> Wrong {
    match (random.below(48), kind) {
        (0..4, 2..) => Wrong::Sums,
        (4..7, _) => Wrong::Descriptor,
        (7..9, _) => Wrong::Bell,
        (9..11, _) => Wrong::Key,
        (11..13, 4..) => Wrong::Answer,
        (13..17, 1..) => Wrong::Source,
        (17..19, 2..) => Wrong::Target,
        (19, _) => Wrong::Astray,
        (20, _) => Wrong::Nowhere,
        _ => Wrong::Nothing,
    }
}

/// All nodes, and what memories must hold in the end.
pub struct Path {
    nodes: Vec<Node>,
    random: Random,
    /// All have opened all, so nothing comes too early.
    is_open: bool,
    /// Their processors, and how many there are.
    cpus: Vec<u8>,
    all_cpus: u8,
    /// Bytes that must be at a node.
    expected: Vec<Vec<u8>>,
    /// Places of which nobody knows what they hold, as their operation failed.
    unknown: Vec<Vec<(u64, u64)>>,
    /// By node, and by node from which it comes: packets that must be told there.
    due_from: Vec<Vec<u64>>,
}

impl Path {
    /// Two, with software that opens what it needs.
    pub fn new(shape: Shape, seed: u64, fault: Fault) -> Path {
        let mut path = Path::over(&|_| Box::new(NicCore::new(shape)), shape, seed, fault);
        path.nodes.iter_mut().for_each(|node| node.errs = true);
        path
    }

    /// The same with interfaces that are made by the number of their node.
    pub fn over(
        interface: &dyn Fn(u8) -> Box<dyn Interface>,
        shape: Shape,
        seed: u64,
        fault: Fault,
    ) -> Path {
        let mut cpus = CPUS;
        // A processor has the same number in all of a run.
        cpus.rotate_left(seed as usize % 2);
        Path::among(interface, shape, seed, fault, (&cpus, ALL_CPUS))
    }

    /// The same with so many processors. There is a network between two of them only: what joins
    /// more is within their interfaces.
    pub fn among(
        interface: &dyn Fn(u8) -> Box<dyn Interface>,
        shape: Shape,
        seed: u64,
        fault: Fault,
        (cpus, all_cpus): (&[u8], u8),
    ) -> Path {
        let node = |(at, &cpu): (usize, &u8)| {
            let seed = 10 * seed + at as u64;
            Node::new(interface(at as u8), shape, [at as u8, cpu, all_cpus], seed, fault)
        };
        let nodes: Vec<Node> = cpus.iter().enumerate().map(node).collect();
        Path {
            expected: nodes.iter().map(|node| node.memory.clone()).collect(),
            unknown: vec![Vec::new(); nodes.len()],
            due_from: vec![vec![0; nodes.len()]; nodes.len()],
            nodes,
            random: Random::new(seed),
            is_open: false,
            cpus: cpus.to_vec(),
            all_cpus,
        }
    }

    /// An operation of a function of a node.
    fn begin(&mut self, at: usize, function: u64) {
        let random = &mut self.random;
        let count = self.nodes.len();
        let kind = random.below(6);
        let wrong = match draw(random, kind) {
            // There is no other processor.
            Wrong::Astray if count == usize::from(self.all_cpus) => Wrong::Nowhere,
            wrong => wrong,
        };
        let far = match random.below(8) {
            0 => at,
            _ if count == 2 => 1 - at,
            _ => (at + 1 + random.below(count as u64 - 1) as usize) % count,
        };
        let (pair, far_pair) = (4 * function + random.below(4), random.below(4 * FUNCTIONS));
        // A GET reads there and writes here.
        let is_get = kind >= 4;
        let (from, from_function) = if is_get { (far, far_pair / 4) } else { (at, function) };
        let (to, to_function) = if is_get { (at, function) } else { (far, far_pair / 4) };
        let wants_event = kind < 2 || random.below(2) == 0;
        let is_unheard = wants_event && !is_get && !hears(far_pair, kind < 2);
        // One packet, as each is told that is dropped.
        let is_single = is_unheard
            || matches!(wrong, Wrong::Key | Wrong::Answer | Wrong::Target | Wrong::Astray);
        let is_edge = is_single || wrong == Wrong::Source || random.below(8) == 0;
        let most = match kind {
            _ if is_single => PACKET,
            _ if random.below(16) == 0 => 0,
            0 | 1 => 200,
            _ if random.below(if is_edge { 4 } else { 32 }) == 0 => EDGE,
            _ => 600,
        };
        let least = u64::from(matches!(wrong, Wrong::Source | Wrong::Target));
        let total = random.below(most + 1).max(least);
        let may_break =
            (1..TARGETS - BROKEN).contains(&total) && !is_edge && (kind == 1 || kind == 2);
        let breaks = may_break && random.below(8) == 0;
        let number = random.word();
        let mut tail = number.to_le_bytes().to_vec();
        tail.extend((0..random.below(9)).map(|_| random.word() as u8));
        let data: Vec<u8> = (0..total).map(|_| random.word() as u8).collect();
        let at_edge = |function| Entry { address: edge(function) - total, length: total };
        let (mut sources, mut chain) = if is_edge {
            (vec![at_edge(from_function)], vec![at_edge(to_function)])
        } else {
            let sources = self.nodes[from].sources(from_function, total, breaks);
            (sources, self.nodes[to].targets(to_function, total))
        };
        let random = &mut self.random;
        match wrong {
            Wrong::Source => {
                let (entry, more) = outside(random, from_function, total);
                if kind > 1 || more == 0 {
                    sources = vec![entry];
                    chain = vec![Entry { address: 0, length: total + more }];
                } else {
                    sources[0].address += 1;
                }
            }
            Wrong::Target => {
                let below = window(to_function) - total;
                let behind = edge(to_function) - total + 1 + random.below(PACKET);
                chain[0].address = if random.below(4) == 0 { below } else { behind };
            }
            _ => {}
        }
        if kind < 2 {
            chain.clear();
        }
        let mut turned = |key: u8, is_wrong| {
            if wrong == is_wrong { key ^ 1 << random.below(8) } else { key }
        };
        let magic = turned(key(far as u8, far_pair), Wrong::Key);
        let return_magic = turned(key(at as u8, pair), Wrong::Answer);
        let far_cpu = match wrong {
            Wrong::Astray => [0, 3, 5, 10][random.below(4) as usize],
            Wrong::Nowhere => self.all_cpus + random.below(4) as u8,
            _ => self.cpus[far],
        };
        let both = Chain { sources: (&sources[..]).into(), destinations: (&chain[..]).into() };
        let work = match kind {
            0 => Work::NapImmediate(&data),
            1 => Work::NapIndirect((&sources[..]).into()),
            2 | 3 => Work::Put(both),
            _ => Work::Get { chain: both, return_magic },
        };
        let repr = DescriptorRepr {
            destination: end(far_cpu, far_pair),
            queue_pair: (pair % 4) as u8,
            traffic_class: random.below(8) as u8,
            magic,
            wants_event,
            work,
            tail: Tail::new(&tail).expect("it is short"),
        };
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut bytes).expect("it is right");
        if wrong == Wrong::Sums {
            bytes[LANES as usize * (1 + sources.len()) + 8] ^= 1;
        }
        let place = self.nodes[at].next[function as usize].0;
        let is_bad = matches!(wrong, Wrong::Descriptor | Wrong::Bell) || place == PLACES - 1;
        // What becomes of it.
        let fails = breaks && sources.last().is_some_and(|it| it.length > 0);
        let status = match wrong {
            _ if is_bad => Status::BadDescriptor,
            Wrong::Sums => Status::UnequalSums,
            Wrong::Nowhere => Status::Unreachable,
            Wrong::Source if !is_get => Status::SourceFault,
            _ if fails => Status::SourceFault,
            _ => Status::Success,
        };
        let wrong_packet = if is_get { WRONG_GET } else { WRONG_PACKET };
        let dropped = match wrong {
            _ if status != Status::Success => None,
            Wrong::Key => Some((far, wrong_packet)),
            Wrong::Astray => Some((1 - at, wrong_packet)),
            Wrong::Source => Some((far, FAR_GET)),
            Wrong::Answer => Some((at, WRONG_PACKET)),
            Wrong::Target => Some((to, OUTSIDE)),
            _ if is_unheard => Some((far, CLOSED)),
            _ => None,
        };
        if let Some((node, told)) = dropped {
            self.nodes[node].must.told[told] += 1;
            self.nodes[node].must.astray += u64::from(wrong == Wrong::Astray);
        }
        if fails && status == Status::SourceFault {
            self.unknown[to].extend(chain.iter().map(|entry| (entry.address, entry.length)));
        }
        if status == Status::Success && dropped.is_none() {
            let read = |it: &Entry| self.nodes[from].bytes(it.address, it.length);
            let came = if kind == 0 { data } else { sources.iter().flat_map(read).collect() };
            let mut done = 0;
            for entry in &chain {
                let next = done + entry.length as usize;
                let at = index(entry.address);
                let place = at..at + entry.length as usize;
                self.expected[to][place].copy_from_slice(&came[done..next]);
                done = next;
            }
            let (own, peer) = if is_get {
                (pair, end(self.cpus[far], far_pair))
            } else {
                (far_pair, end(self.cpus[at], pair))
            };
            let primitive = if kind < 2 { Primitive::Nap } else { Primitive::Put };
            let due = Due { ring: 2 * own + 1, primitive, peer, data: came };
            if wants_event {
                self.nodes[to].arrives.insert(number, due);
                self.due_from[to][if is_get { far } else { at }] += 1;
            }
        }
        self.ring(at, function, wrong, &bytes, status);
    }

    /// Software writes the descriptor, and rings.
    fn ring(&mut self, at: usize, function: u64, wrong: Wrong, bytes: &[u8], status: Status) {
        let node = &mut self.nodes[at];
        let is_outside = wrong == Wrong::Descriptor;
        let owner = if is_outside { (function + 1) % FUNCTIONS } else { function };
        let place = &mut node.next[function as usize].0;
        let from = if is_outside { PLACES } else { 0 };
        let address = window(owner) + DESCRIPTORS + (from + *place) * DESCRIPTOR_BYTES;
        *place = (*place + 1) % PLACES;
        let at = index(address);
        node.memory[at..at + bytes.len()].copy_from_slice(bytes);
        let length = bytes.len() as u16;
        let mut word = DoorbellRepr { address, length }.emit().expect("it is right");
        if wrong == Wrong::Bell {
            // In address and length, and between them.
            word ^= 1 << [0, 1, 2, 3, 40, 43, 47, 48, 51, 62][self.random.below(10) as usize];
        }
        let before = node.due.insert(word % (1 << ADDRESS_BITS), (function, status));
        assert_eq!(before, None, "the operation that had the place is over");
        node.bells.push_back(In {
            store_address: (function << 12) as u16,
            store_bytes: 8,
            store_data: [word, 0],
            ..In::default()
        });
    }

    /// One cycle, in which operations may begin; what enters and leaves the first interface.
    pub fn cycle(&mut self, begins: bool) -> (In, Out) {
        let is_open = |node: &Node| node.host.is_empty() && node.core.is_told();
        self.is_open |= self.nodes.iter().all(is_open);
        for at in 0..self.nodes.len() {
            // A function has as many operations as its FIFO has doorbells. A place is free again
            // when its operation is over: a GET may overtake a PUT whose reads take long.
            let function = self.random.below(HEARING);
            let place = self.nodes[at].next[function as usize].0;
            let own = self.nodes[at].due.iter().filter(|(_, due)| due.0 == function);
            let is_free = own.clone().all(|(&address, _)| place_of(address) != place);
            if begins
                && self.is_open
                && is_free
                && own.count() < self.nodes[at].shape.bells.min(8)
                && self.random.below(8) == 0
            {
                self.begin(at, function);
            }
            let ring = self.random.below(8 * FUNCTIONS);
            if self.random.below(8) < self.nodes[at].mood.polls {
                self.nodes[at].poll(ring);
            }
        }
        let moves = |node: &mut Node| {
            let input = node.input();
            (input, node.core.cycle(input))
        };
        let moved: Vec<(In, Out)> = self.nodes.iter_mut().map(moves).collect();
        for (at, (input, out)) in moved.iter().enumerate() {
            let beat = self.nodes[at].note(input, out);
            if self.nodes.len() > 2 {
                continue;
            }
            self.nodes[1 - at].network.extend(beat);
            if input.from_valid && out.from_ready[usize::from(input.from_class)] {
                self.nodes[at].network.pop_front();
            }
            for class in 0..CLASSES {
                let is_silent = self.nodes[at].fault == Fault::Silent && self.random.below(8) == 0;
                let is_told = out.from_credit[class] && !is_silent;
                self.nodes[1 - at].credits[class] += u64::from(is_told);
            }
        }
        moved[0]
    }

    /// What has happened at each.
    pub fn seen(&self) -> Vec<Seen> {
        self.nodes.iter().map(|node| node.seen).collect()
    }

    /// Packets that had to be told went from each node to each.
    pub fn reached_all(&self) -> bool {
        self.due_from.iter().flatten().all(|&count| count > 0)
    }

    /// Each kind of what software does wrong was told by one of both.
    pub fn told_each(&self) -> bool {
        let told = |at| self.nodes.iter().any(|node| node.told.told[at] > 0);
        let refused = |at| self.nodes.iter().any(|node| node.told.refused[at] > 0);
        WRONG.into_iter().all(told) && (0..3).all(refused)
    }

    /// Runs it, lets all that was begun come to its end, and looks at the memories.
    pub fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle(true);
        }
        // What is wrong in the last cycles would not be told in time.
        let err = self.nodes.iter().any(|node| node.errs);
        self.nodes.iter_mut().for_each(|node| node.errs = false);
        for _ in 0..15 * self.nodes[0].shape.timeout {
            self.cycle(false);
        }
        for (at, node) in self.nodes.iter().enumerate() {
            let is_done = node.due.is_empty() && node.arrives.is_empty();
            assert!(is_done, "all comes to its end: {:x?}, {:x?}", node.due, node.arrives.keys());
            let [mut found, mut expected] = [&node.memory, &self.expected[at]].map(Vec::clone);
            for &(address, length) in &self.unknown[at] {
                let at = index(address);
                let place = at..at + length as usize;
                found[place.clone()].fill(0);
                expected[place].fill(0);
            }
            for function in 0..FUNCTIONS {
                let base = index(window(function)) as u64;
                let behind = base + PAGES[function as usize] * 4096;
                for place in [base + SOURCES..base + SLOTS, behind - EDGE..behind] {
                    let place = place.start as usize..place.end as usize;
                    assert!(found[place.clone()] == expected[place], "memory holds what was sent");
                }
            }
            if err {
                node.compare_told();
            }
        }
    }
}
