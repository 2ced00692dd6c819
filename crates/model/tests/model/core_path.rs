//! Two whole interfaces of cHPP's cycle blocks, each with a host memory and software, and a network
//! between them. Memories, hosts and network wait at random, and some reads fail or never come.
//! The lock-step of `hardware/nic_core` has this load, too.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;

use bellwire_model::cycle::nic_core::{CLASSES, In, NicCore, Out, REFILL_FAILED, Shape, TOLD};
use bellwire_model::cycle::packer;
use bellwire_model::engine::Random;
use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::doorbell::DoorbellRepr;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::{Chain, Entry};
use bellwire_wire::event::{EVENT_BYTES, EventRepr, Status, phase};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::Tail;

/// Functions that software uses: all but the last one, which stays closed.
const FUNCTIONS: u64 = 7;
const PAIRS: u64 = 4 * FUNCTIONS;
const LANES: u64 = 16;
// A function's window of host memory: descriptors, sources, destinations, slots of each of its
// queue pairs, the pages of their lists, and its rings.
const WINDOW: u64 = 1 << 19;
const DESCRIPTORS: u64 = 0;
const SOURCES: u64 = 0x1_0000;
const SOURCE_BYTES: u64 = 0x1_0000;
const TARGETS: u64 = 0x2_0000;
const SLOTS: u64 = 0x4_0000;
const LISTS: u64 = 0x6_0000;
const RINGS: u64 = 0x7_0000;
const DESCRIPTOR_BYTES: u64 = 512;
/// Places for descriptors; reads of the last one fail. As many follow for doorbells that name
/// what another function has.
const PLACES: u64 = 16;
const SLOT_BYTES: u64 = 2048;
/// Entries of a list of slots, and of a ring.
const ENTRIES: u64 = 6;
/// Reads of sources from here on fail.
const BROKEN: u64 = SOURCES + SOURCE_BYTES - 0x1000;

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
    cpu: u8,
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
    /// By queue pair, slots that were listed.
    listed: Vec<u64>,
    /// By address of a descriptor, its function and how its operation must end; by tail, what must
    /// arrive.
    due: BTreeMap<u64, (u64, Status)>,
    arrives: BTreeMap<u64, Due>,
    /// By function, the next place for a descriptor and for data.
    next: Vec<(u64, u64)>,
    fault: Fault,
    seen: Seen,
    mood: Mood,
}

/// Of eight cycles, in how many the host takes a read or a beat of a write, the network takes a
/// beat, a beat comes from there, and one of a completion does.
#[derive(Clone, Copy, Debug)]
struct Mood {
    reads: u64,
    writes: u64,
    to: u64,
    from: u64,
    completes: u64,
}

/// The first address of a function's window.
fn window(function: u64) -> u64 {
    // Windows lie all over host memory: each bit of their addresses is 1 in one, and 0 in another.
    (function + 1) * 0x5_2a95 % (1 << (ADDRESS_BITS - WINDOW.ilog2())) * WINDOW
}

/// The function in whose window an address is.
fn owner(address: u64) -> u64 {
    let holds = |function: &u64| window(*function) == address / WINDOW * WINDOW;
    (0..FUNCTIONS).find(holds).expect("it is in a window")
}

/// Where an address is in a node's memory, which holds the windows only.
fn index(address: u64) -> usize {
    (owner(address) * WINDOW + address % WINDOW) as usize
}

impl Node {
    fn new(core: Box<dyn Interface>, shape: Shape, cpu: u8, seed: u64, fault: Fault) -> Node {
        let mut random = Random::new(seed);
        let mut memory = vec![0; (FUNCTIONS * WINDOW) as usize];
        for function in 0..FUNCTIONS {
            let at = index(window(function) + SOURCES);
            memory[at..at + SOURCE_BYTES as usize].fill_with(|| random.word() as u8);
        }
        let mut node = Node {
            core,
            shape,
            cpu,
            random,
            memory,
            host: VecDeque::new(),
            bells: VecDeque::new(),
            reads: Vec::new(),
            piece: None,
            written: 0,
            network: VecDeque::new(),
            credits: [0; CLASSES],
            read: vec![0; 2 * PAIRS as usize],
            listed: vec![0; PAIRS as usize],
            due: BTreeMap::new(),
            arrives: BTreeMap::new(),
            next: vec![(0, 0); FUNCTIONS as usize],
            fault,
            seen: Seen::default(),
            mood: Mood { reads: 6, writes: 6, to: 6, from: 6, completes: 6 },
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
                keys_pages: (WINDOW >> 12) as u32,
                ..In::default()
            });
        }
        for pair in 0..PAIRS {
            let base = window(pair / 4);
            self.host.push_back(In {
                keys_valid: true,
                keys_opens: true,
                keys_pair: pair as u8,
                keys_key: key(self.cpu, pair),
                ..In::default()
            });
            self.host.push_back(In {
                slots_valid: true,
                slots_opens: true,
                slots_pair: pair as u8,
                slots_page: ((base + LISTS) >> 12) as u32 + pair as u32 % 4,
                slots_count: ENTRIES as u16,
                ..In::default()
            });
            for ring in [2 * pair, 2 * pair + 1] {
                self.host.push_back(In {
                    rings_valid: true,
                    rings_opens: true,
                    rings_ring: ring as u8,
                    rings_base: ring_address(ring) / EVENT_BYTES as u64,
                    rings_count: ENTRIES as u16,
                    ..In::default()
                });
            }
            for slot in 0..ENTRIES {
                self.list(pair, base + SLOTS + (pair % 4 * ENTRIES + slot) * SLOT_BYTES);
            }
        }
    }

    /// Software lists a free slot of a queue pair.
    fn list(&mut self, pair: u64, slot: u64) {
        let entry = window(pair / 4) + LISTS + pair % 4 * 4096;
        let listed = &mut self.listed[pair as usize];
        let at = index(entry + *listed % ENTRIES * 8);
        *listed += 1;
        self.memory[at..at + 8].copy_from_slice(&slot.to_le_bytes());
        self.host.push_back(In {
            slots_valid: true,
            slots_pair: pair as u8,
            slots_count: (*listed % 512) as u16,
            ..In::default()
        });
    }

    fn bytes(&self, address: u64, length: u64) -> Vec<u8> {
        self.memory[index(address)..][..length as usize].to_vec()
    }

    /// Entries of a list in a function's sources with this sum, and their bytes.
    fn sources(&mut self, function: u64, sum: u64, breaks: bool) -> Vec<Entry> {
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
    fn targets(&mut self, function: u64, sum: u64) -> Vec<Entry> {
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
        let [reads, writes, to, from, completes] = [(); 5].map(|()| rate());
        self.mood = Mood { reads, writes, to, from, completes };
    }

    /// The host's registers, doorbells, completions, and what the network brings.
    fn input(&mut self) -> In {
        if self.random.below(256) == 0 {
            self.change_mood();
        }
        let mut input = In { cpu: self.cpu, cpus: 2, ..In::default() };
        if self.random.below(4) == 0
            && let Some(host) = self.host.pop_front()
        {
            input = In { cpu: self.cpu, cpus: 2, ..host };
        }
        if self.host.is_empty()
            && self.random.below(4) == 0
            && let Some(bell) = self.bells.pop_front()
        {
            input.store_valid = true;
            input.store_last = true;
            input.store_address = bell.store_address;
            input.store_bytes = 8;
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
    fn note(&mut self, input: &In, out: &Out) -> Option<In> {
        assert_eq!(out.refused, [false; 3], "what software writes can be");
        let told = (0..TOLD).filter(|&at| out.told[at] && at != REFILL_FAILED).count();
        assert_eq!(told, 0, "nothing is dropped: {:?}", out.told);
        if out.read_valid && input.read_ready {
            let (address, bytes) = (out.read_address, u64::from(out.read_bytes));
            let at = address % WINDOW;
            assert_eq!(u64::from(out.read_function), owner(address), "whose read it is");
            assert!(at + bytes <= WINDOW && bytes > 0);
            let is_list = (LISTS..RINGS).contains(&at);
            let lacks = DESCRIPTOR_BYTES * (PLACES - 1)..DESCRIPTOR_BYTES * PLACES;
            let is_broken = (BROKEN..TARGETS).contains(&at) || lacks.contains(&at);
            let fails = is_broken || (is_list && self.random.below(8) == 0);
            let is_forgotten = fails && self.random.below(4) == 0;
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
    fn poll(&mut self, ring: u64) {
        let count = self.read[ring as usize];
        let place = ring_address(ring) + count % ENTRIES * EVENT_BYTES as u64;
        let record = self.bytes(place, EVENT_BYTES as u64);
        let is_new = phase(count, NonZeroU64::new(ENTRIES).expect("six"));
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
            self.seen.refused += u64::from(due == Status::UnequalSums);
            self.seen.bad += u64::from(due == Status::BadDescriptor);
            return;
        }
        let tail = event.tail.as_bytes()[..8].try_into().expect("it has a number");
        let due = self.arrives.remove(&u64::from_le_bytes(tail)).expect("it is told once");
        assert_eq!((event.primitive, event.peer, ring), (due.primitive, due.peer, due.ring));
        if due.primitive == Primitive::Nap {
            assert_eq!(event.length, due.data.len() as u64);
            assert_eq!(self.bytes(event.address, event.length), due.data, "of a NAP");
            self.list(ring / 2, event.address);
            self.seen.naps += 1;
        } else {
            self.seen.puts += 1;
        }
    }
}

/// The key of a queue pair.
fn key(cpu: u8, pair: u64) -> u8 {
    0x40 + 0x20 * cpu + pair as u8
}

/// Where a ring lies.
fn ring_address(ring: u64) -> u64 {
    window(ring / 8) + RINGS + ring % 8 * ENTRIES * EVENT_BYTES as u64
}

/// A queue pair among those of all processors.
fn end(cpu: usize, pair: u64) -> Endpoint {
    Endpoint::new(cpu as u8, (pair / 4) as u8, (pair % 4) as u8).expect("it exists")
}

/// Both nodes, and what memories must hold in the end.
pub struct Path {
    nodes: [Node; 2],
    random: Random,
    begun: u64,
    /// Bytes that must be at a node.
    expected: [Vec<u8>; 2],
    /// Places of which nobody knows what they hold, as their operation failed.
    unknown: [Vec<(u64, u64)>; 2],
}

impl Path {
    /// Both, with software that opens what it needs.
    pub fn new(shape: Shape, seed: u64, fault: Fault) -> Path {
        Path::over(&|_| Box::new(NicCore::new(shape)), shape, seed, fault)
    }

    /// The same with interfaces that are made by the number of their node.
    pub fn over(
        interface: &dyn Fn(u8) -> Box<dyn Interface>,
        shape: Shape,
        seed: u64,
        fault: Fault,
    ) -> Path {
        let node = |cpu| Node::new(interface(cpu), shape, cpu, 10 * seed + u64::from(cpu), fault);
        let nodes = [0, 1].map(node);
        let expected = [0, 1].map(|at: usize| nodes[at].memory.clone());
        let unknown = Default::default();
        Path { nodes, random: Random::new(seed), begun: 0, expected, unknown }
    }

    /// An operation of a function of a node.
    fn begin(&mut self, at: usize, function: u64) {
        let random = &mut self.random;
        let kind = random.below(6);
        let far = if random.below(8) == 0 { at } else { 1 - at };
        let (pair, far_pair) = (4 * function + random.below(4), random.below(PAIRS));
        let most = if kind < 2 { 200 } else { 500 };
        let total = random.below(most + 1);
        let breaks = random.below(8) == 0 && total > 0 && (kind == 1 || kind == 2);
        let wants_event = random.below(2) == 0;
        let number = self.begun;
        let mut tail = number.to_le_bytes().to_vec();
        tail.extend((0..random.below(9)).map(|_| random.word() as u8));
        let data: Vec<u8> = (0..total).map(|_| random.word() as u8).collect();
        self.begun += 1;
        // A GET reads there and writes here.
        let is_get = kind >= 4;
        let (from, from_function) = if is_get { (far, far_pair / 4) } else { (at, function) };
        let (to, to_function) = if is_get { (at, function) } else { (far, far_pair / 4) };
        let sources = self.nodes[from].sources(from_function, total, breaks);
        let chain = if kind < 2 { vec![] } else { self.nodes[to].targets(to_function, total) };
        let both = Chain { sources: (&sources[..]).into(), destinations: (&chain[..]).into() };
        let work = match kind {
            0 => Work::NapImmediate(&data),
            1 => Work::NapIndirect((&sources[..]).into()),
            2 | 3 => Work::Put(both),
            _ => Work::Get { chain: both, return_magic: key(at as u8, pair) },
        };
        let repr = DescriptorRepr {
            destination: end(far, far_pair),
            queue_pair: (pair % 4) as u8,
            traffic_class: 0,
            magic: key(far as u8, far_pair),
            wants_event: wants_event || kind < 2,
            work,
            tail: Tail::new(&tail).expect("it is short"),
        };
        let mut bytes = vec![0; repr.buffer_len()];
        repr.emit(&mut bytes).expect("it is right");
        let differs = kind == 3 && self.random.below(8) == 0;
        if differs {
            bytes[LANES as usize * (1 + sources.len()) + 8] ^= 1;
        }
        let is_outside = self.random.below(16) == 0;
        let is_bad = is_outside || self.nodes[at].next[function as usize].0 == PLACES - 1;
        let is_wrong = differs || is_bad;
        // What becomes of it.
        let came: Vec<u8> = match kind {
            0 => data.clone(),
            _ => sources
                .iter()
                .flat_map(|it| self.nodes[from].bytes(it.address, it.length))
                .collect(),
        };
        let fails = breaks && sources.last().is_some_and(|it| it.length > 0);
        let status = match (is_bad, differs, fails) {
            (true, _, _) => Status::BadDescriptor,
            (_, true, _) => Status::UnequalSums,
            (_, _, true) => Status::SourceFault,
            _ => Status::Success,
        };
        let mut done = 0;
        for entry in &chain {
            let at = index(entry.address);
            let place = at..at + entry.length as usize;
            if fails && !is_wrong {
                self.unknown[to].push((entry.address, entry.length));
            } else if !is_wrong {
                let data = &came[done..done + entry.length as usize];
                self.expected[to][place].copy_from_slice(data);
            }
            done += entry.length as usize;
        }
        let is_told = status == Status::Success && repr.wants_event;
        if is_told {
            let (own, peer) =
                if is_get { (pair, end(far, far_pair)) } else { (far_pair, end(at, pair)) };
            let primitive = if kind < 2 { Primitive::Nap } else { Primitive::Put };
            let due = Due { ring: 2 * own + 1, primitive, peer, data: came };
            self.nodes[to].arrives.insert(number, due);
        }
        let owner = if is_outside { (function + 1) % FUNCTIONS } else { function };
        let node = &mut self.nodes[at];
        let place = &mut node.next[function as usize].0;
        let from = if is_outside { PLACES } else { 0 };
        let address = window(owner) + DESCRIPTORS + (from + *place) * DESCRIPTOR_BYTES;
        *place = (*place + 1) % PLACES;
        let at = index(address);
        node.memory[at..at + bytes.len()].copy_from_slice(&bytes);
        let length = bytes.len() as u16;
        let word = DoorbellRepr { address, length }.emit().expect("it is right");
        node.due.insert(address, (function, status));
        node.bells.push_back(In {
            store_address: (function << 12) as u16,
            store_data: [word, 0],
            ..In::default()
        });
    }

    /// One cycle, in which operations may begin; what enters and leaves the first interface.
    pub fn cycle(&mut self, begins: bool) -> (In, Out) {
        for at in [0, 1] {
            // A function has as many operations as its FIFO has doorbells.
            let function = self.random.below(FUNCTIONS);
            let own = self.nodes[at].due.values().filter(|due| due.0 == function);
            if begins
                && own.count() < self.nodes[at].shape.bells.min(8)
                && self.random.below(8) == 0
            {
                self.begin(at, function);
            }
            let ring = self.random.below(4 * PAIRS);
            if ring < 2 * PAIRS {
                self.nodes[at].poll(ring);
            }
        }
        let inputs = [0, 1].map(|at: usize| self.nodes[at].input());
        let outs = [0, 1].map(|at: usize| self.nodes[at].core.cycle(inputs[at]));
        for at in [0, 1] {
            let beat = self.nodes[at].note(&inputs[at], &outs[at]);
            self.nodes[1 - at].network.extend(beat);
            if inputs[at].from_valid && outs[at].from_ready[usize::from(inputs[at].from_class)] {
                self.nodes[at].network.pop_front();
            }
            for class in 0..CLASSES {
                let is_silent = self.nodes[at].fault == Fault::Silent && self.random.below(8) == 0;
                let is_told = outs[at].from_credit[class] && !is_silent;
                self.nodes[1 - at].credits[class] += u64::from(is_told);
            }
        }
        (inputs[0], outs[0])
    }

    /// What has happened at each.
    pub fn seen(&self) -> [Seen; 2] {
        [0, 1].map(|at: usize| self.nodes[at].seen)
    }

    /// Runs it, lets all that was begun come to its end, and looks at the memories.
    pub fn run(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.cycle(true);
        }
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
                let places = [SOURCES, SLOTS].map(|part| index(window(function) + part));
                let place = places[0]..places[1];
                assert!(found[place.clone()] == expected[place], "memory holds what was sent");
            }
        }
    }
}
