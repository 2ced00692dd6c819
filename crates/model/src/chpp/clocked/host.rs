//! Software of a host whose interface goes cycle by cycle: descriptors, doorbells, rings and slots
//! (C-13 to C-20, C-31, C-33; cHPP sections 3.3, 3.4 and 4). It follows the rules of
//! [`host`](super::super::host), and reaches the interface by stores and memory only.

use std::collections::{HashMap, VecDeque};

use bellwire_wire::doorbell::DoorbellRepr;
use bellwire_wire::event::{EVENT_BYTES, Event, EventRepr};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::registers::{PAGE_SHIFT, RegisterRepr};

use super::Told;
use super::root::Root;
use crate::chpp::config::Config;
use crate::chpp::function::{DESCRIPTOR_PLACE, Layout, SLOT_BYTES};
use crate::chpp::host::RingKind;
use crate::chpp::ring::{Place, Position};
use crate::engine::{Random, Server, Service};
use crate::units::{Span, Time};

/// Where the window of the interface lies: above all memory.
pub const WINDOW: u64 = 1 << 48;

/// Reports of rings count modulo this, and those of lists modulo the other one.
const RING_COUNTS: u64 = 1 << 13;
const LIST_COUNTS: u64 = 1 << 9;

/// What software knows of one queue pair.
struct QueuePair {
    /// Places of the next events of the send ring and the receive ring.
    next: [Position; 2],
    /// Events that lie there.
    unread: [usize; 2],
    /// Events that were read.
    read: [u64; 2],
    /// Those of them that were reported.
    reported: [u64; 2],
    slot_list: u64,
    listed: u64,
    lists_reported: u64,
    /// Whether the program reads its rings.
    consumes: bool,
}

/// What has become visible in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lands {
    /// Nothing.
    Nothing,
    /// Bytes, but no event.
    Data,
    /// An event.
    Event,
}

/// Processor, memory and software of a node.
pub struct Host {
    node: usize,
    /// The way to the interface, and memory.
    pub root: Root,
    /// Memory layouts, by function.
    pub layouts: Vec<Layout>,
    /// Keys, by queue pair of the node.
    pub keys: Vec<u8>,
    processor: Server,
    /// How long the processor needs to start an operation.
    pub cpu_start: Span,
    /// By function, places of descriptors that are free.
    places: Vec<Vec<u64>>,
    queue_pairs: Vec<QueuePair>,
    per_function: usize,
    /// By page, the queue pair and the ring that lies there.
    rings: HashMap<u64, (usize, RingKind)>,
    /// Read records after which software reports, and slots.
    reports_at: u64,
    lists_at: u64,
    slots: u64,
    /// The first event that was not as the format says.
    unreadable: Option<String>,
    lands: Vec<u64>,
}

impl Host {
    /// Software that has opened all windows, rings and lists: its stores leave at the beginning.
    pub fn new(config: &Config, node: usize, random: &mut Random) -> Host {
        let functions = config.nic.functions;
        let layouts: Vec<Layout> =
            (0..functions).map(|function| Layout::new(config, node, function)).collect();
        let slots = config.host.slots as u64;
        let entries = config.host.ring_entries;
        let mut host = Host {
            node,
            root: Root::new(config, node, random.fork(node as u64)),
            keys: (0..functions * config.nic.queue_pairs).map(|_| random.word() as u8).collect(),
            processor: Server::default(),
            cpu_start: config.host.cpu_start,
            places: layouts
                .iter()
                .map(|layout| {
                    let places = 0..config.nic.doorbell_depth as u64;
                    places.rev().map(|at| layout.base + at * DESCRIPTOR_PLACE).collect()
                })
                .collect(),
            queue_pairs: Vec::new(),
            per_function: config.nic.queue_pairs,
            rings: HashMap::new(),
            reports_at: (entries / 4).max(1),
            lists_at: (slots / 4).max(1),
            slots,
            unreadable: None,
            lands: Vec::new(),
            layouts,
        };
        host.open(config);
        host
    }

    /// Opens windows, then rings and lists, and sets keys last.
    fn open(&mut self, config: &Config) {
        let entries = config.host.ring_entries;
        for (function, layout) in self.layouts.clone().iter().enumerate() {
            let (base, pages) = (layout.base >> PAGE_SHIFT, layout.length >> PAGE_SHIFT);
            self.set(RegisterRepr::Window {
                function: function as u8,
                base: base as u32,
                pages: pages as u32,
            });
            for (at, places) in layout.queue_pairs.iter().enumerate() {
                let pair = function * self.per_function + at;
                let rings = [places.send_ring, places.receive_ring];
                for (kind, base) in [RingKind::Send, RingKind::Receive].into_iter().zip(rings) {
                    let base_unit = base / EVENT_BYTES as u64;
                    let ring = ring_number(pair, kind);
                    self.set(RegisterRepr::Ring { ring, base: base_unit, entries: entries as u16 });
                    let bytes = entries * EVENT_BYTES as u64;
                    for page in base >> PAGE_SHIFT..(base + bytes).div_ceil(1 << PAGE_SHIFT) {
                        self.rings.insert(page, (pair, kind));
                    }
                }
                self.set(RegisterRepr::List {
                    pair: pair as u8,
                    page: (places.slot_list >> PAGE_SHIFT) as u32,
                    entries: self.slots as u16,
                });
                self.queue_pairs.push(QueuePair {
                    next: rings.map(|base| Position::new(base, entries)),
                    unread: [0; 2],
                    read: [0; 2],
                    reported: [0; 2],
                    slot_list: places.slot_list,
                    listed: 0,
                    lists_reported: 0,
                    consumes: false,
                });
                for slot in 0..self.slots {
                    self.list(Time::ZERO, pair, places.slots + slot * SLOT_BYTES);
                }
                self.set(RegisterRepr::Key { pair: pair as u8, key: Some(self.keys[pair]) });
            }
        }
    }

    /// Stores into a register at the beginning.
    fn set(&mut self, register: RegisterRepr) {
        self.store(Time::ZERO, register);
    }

    fn store(&mut self, time: Time, register: RegisterRepr) {
        let (place, word) = register.emit().expect("the configuration has been checked");
        self.root.store(time, WINDOW + u64::from(place), word);
    }

    /// Writes a descriptor and rings, as soon as the processor has time. Returns when it starts.
    ///
    /// # Panics
    /// If the function [has no place](Host::has_place).
    pub fn post(&mut self, now: Time, function: usize, descriptor: &[u8]) -> Time {
        let place = self.places[function].pop().expect("the caller has looked");
        let memory = self.root.memory.slice_mut(place, descriptor.len());
        memory.expect("places lie in the window").copy_from_slice(descriptor);
        let Service { begins, ends } = self.processor.reserve(now, self.cpu_start);
        let doorbell = DoorbellRepr { address: place, length: descriptor.len() as u16 };
        let word = doorbell.emit().expect("places are aligned and below the limit of addresses");
        self.root.store(ends, WINDOW + ((function as u64) << PAGE_SHIFT), word);
        begins
    }

    /// Whether the function can post one more descriptor (C-33).
    pub fn has_place(&self, function: usize) -> bool {
        !self.places[function].is_empty()
    }

    /// Events of a ring that software has not read.
    pub fn unread(&self, pair: usize, ring: RingKind) -> usize {
        self.queue_pairs[pair].unread[ring as usize]
    }

    /// What is wrong with the interface, if this host has found something.
    pub fn fault(&self) -> Option<String> {
        let (node, refused) = (self.node, self.root.refused);
        let says = || format!("node {node} has refused {refused} TLPs of its interface");
        self.unreadable.clone().or_else(|| (refused > 0).then(says))
    }

    /// Carries out what is due up to `now`.
    pub fn advance(&mut self, now: Time, told: &mut VecDeque<Told>) -> Lands {
        let mut lands = std::mem::take(&mut self.lands);
        self.root.advance(now, &mut lands);
        let mut all = if lands.is_empty() { Lands::Nothing } else { Lands::Data };
        for address in lands.drain(..) {
            let Some(&(pair, kind)) = self.rings.get(&(address >> PAGE_SHIFT)) else { continue };
            all = Lands::Event;
            self.queue_pairs[pair].unread[kind as usize] += 1;
            if self.queue_pairs[pair].consumes {
                self.consume(now, pair, kind, told);
            }
        }
        self.lands = lands;
        all
    }

    /// Makes the program of a queue pair read its rings from now on, or stop that.
    pub fn consumes(&mut self, now: Time, pair: usize, yes: bool, told: &mut VecDeque<Told>) {
        self.queue_pairs[pair].consumes = yes;
        if yes {
            self.consume(now, pair, RingKind::Send, told);
            self.consume(now, pair, RingKind::Receive, told);
        }
    }

    /// Reads all events of a ring that are there, by their phase.
    fn consume(&mut self, now: Time, pair: usize, kind: RingKind, told: &mut VecDeque<Told>) {
        loop {
            let state = &mut self.queue_pairs[pair];
            let Place { address, phase } = state.next[kind as usize].place();
            let Some(record) = self.root.memory.slice(address, EVENT_BYTES) else { return };
            if !Event::new(record).is_ok_and(|event| event.phase() == phase) {
                return;
            }
            let event = EventRepr::parse(record);
            state.next[kind as usize].advance();
            state.unread[kind as usize] = state.unread[kind as usize].saturating_sub(1);
            state.read[kind as usize] += 1;
            let (function, queue_pair) = (pair / self.per_function, pair % self.per_function);
            match event {
                Ok(event) => {
                    let node = self.node;
                    told.push_back(Told { node, function, queue_pair, ring: kind, event });
                    match kind {
                        RingKind::Send => self.places[function].push(event.address),
                        RingKind::Receive if event.primitive == Primitive::Nap => {
                            self.list(now, pair, event.address);
                        }
                        RingKind::Receive => {}
                    }
                }
                Err(error) => {
                    let node = self.node;
                    self.unreadable.get_or_insert_with(|| {
                        format!("node {node} has got an event that cannot be read: {error}")
                    });
                }
            }
            self.report(now, pair, kind);
        }
    }

    /// Reports events that were read, a quarter of the ring at a time.
    fn report(&mut self, now: Time, pair: usize, kind: RingKind) {
        let state = &mut self.queue_pairs[pair];
        let read = state.read[kind as usize];
        if read - state.reported[kind as usize] >= self.reports_at {
            state.reported[kind as usize] = read;
            let count = (read % RING_COUNTS) as u16;
            self.store(now, RegisterRepr::RingReport { ring: ring_number(pair, kind), count });
        }
    }

    /// Lists a free slot, and reports a quarter of the list at a time.
    fn list(&mut self, now: Time, pair: usize, slot: u64) {
        let state = &mut self.queue_pairs[pair];
        let entry = state.slot_list + 8 * (state.listed % self.slots);
        if let Some(entry) = self.root.memory.slice_mut(entry, 8) {
            entry.copy_from_slice(&slot.to_le_bytes());
        }
        state.listed += 1;
        if state.listed - state.lists_reported >= self.lists_at {
            state.lists_reported = state.listed;
            let count = (state.listed % LIST_COUNTS) as u16;
            self.store(now, RegisterRepr::ListReport { pair: pair as u8, count });
        }
    }
}

/// The number of a ring at the interface.
fn ring_number(pair: usize, kind: RingKind) -> u8 {
    2 * pair as u8 + kind as u8
}
