//! The host: a processor that writes descriptors and doorbells, and the rings that it polls (C-13,
//! C-14, C-33; cHPP sections 3.3 and 4). It follows the rules that the paper leaves to software. At
//! most 32 operations (`nic.doorbell_depth`) of a function are outstanding. Software lists slots
//! again once they are read, and reports consumed events.
//!
//! Ports: programs post descriptors and receive [`Notice`]s. Stores go to the port's window. Events
//! are read in place, in memory.

use std::collections::VecDeque;

use bellwire_wire::doorbell::DoorbellRepr;
use bellwire_wire::event::{EVENT_BYTES, Event, EventRepr};
use bellwire_wire::primitive::Primitive;

use super::Context;
use super::config::{Config, Start};
use super::doorbell::Doorbell;
use super::function::{DESCRIPTOR_PLACE, Layout, SLOT_BYTES};
use super::journal::{Cause, Stage};
use super::node::Step;
use super::pcie::{COMPLETION_BYTES, REQUEST_BYTES};
use super::port::{Port, WindowWrite};
use super::ring::{Place, Position};
use super::submission::{Submission, Way, words};
use crate::engine::{Server, Service};
use crate::stats::{Queue, Watched};
use crate::units::{Span, Time};

/// The two event rings of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingKind {
    /// Send completions (C-13).
    Send,
    /// Receive completions (C-14).
    Receive,
}

/// An event for a program.
#[derive(Clone, Copy, Debug)]
pub struct Notice {
    /// When the event was visible.
    pub time: Time,
    /// Node.
    pub node: usize,
    /// Function.
    pub function: usize,
    /// Queue pair.
    pub queue_pair: usize,
    /// The event's ring.
    pub ring: RingKind,
    /// The event's operation, known to the model but not to software.
    pub operation: u32,
    /// The event as it was in memory.
    pub event: EventRepr,
}

/// What software knows of one function.
struct FunctionState {
    outstanding: usize,
    places: Vec<u64>,
    waiting: Queue<(u32, Vec<u8>)>,
}

/// What software knows of one queue pair.
struct QueuePairState {
    /// Places of the next events of the send ring and the receive ring.
    next: [Position; 2],
    /// Events consumed from the two rings.
    consumed: [u64; 2],
    /// Consumed events that were reported to the interface.
    reported: [u64; 2],
    /// First address of the list of slots.
    slot_list: u64,
    slots_posted: u64,
    slots_reported: u64,
    /// Whether the program polls its rings.
    consumes: bool,
    /// Operations of the events in the two rings, in order; known to the model, not to software.
    about: [VecDeque<u32>; 2],
}

/// One processor. With doorbells its work is planned ahead; with descriptor start it handles one
/// operation after the other.
#[derive(Default)]
struct Processor {
    /// Busy with the fixed work of operations, and with waits for credits or for the lock.
    server: Server,
    /// Operations that it prepares now or next.
    ringing: VecDeque<AboutToRing>,
    /// Whether it prepares the first of them (descriptor start).
    is_at_work: bool,
    /// When the answer to its credit request arrives (`damq-pd`).
    asks_until: Option<Time>,
}

/// A doorbell or a descriptor that a processor is about to store.
struct AboutToRing {
    function: usize,
    operation: u32,
    place: u64,
    descriptor: Vec<u8>,
}

impl Processor {
    /// Occupies the processor from `begins` on with the fixed work of an operation.
    fn prepare(
        &mut self,
        cx: &mut Context,
        (node, number): (usize, usize),
        operation: u32,
        begins: Time,
    ) {
        let Service { begins, ends } = self.server.reserve(begins, cx.config.host.cpu_start);
        cx.operations[operation].started = begins;
        cx.journal.mark(operation, None, Stage::Processor, Some(Cause::Processor), begins);
        cx.journal.mark(operation, None, Stage::Processor, None, ends);
        let (node, processor) = (node as u8, number as u8);
        cx.schedule.at(ends, Step::Rings.about(node, processor));
    }
}

impl AboutToRing {
    fn doorbell(&self) -> Doorbell {
        let doorbell = DoorbellRepr { address: self.place, length: self.descriptor.len() as u16 };
        let word = doorbell.emit().expect("places are aligned and below the limit of addresses");
        Doorbell { function: self.function, word, operation: self.operation, stored: None }
    }
}

/// Processors and software of one node.
pub struct Host {
    node: usize,
    processors: Vec<Processor>,
    /// The lock of the engine, for which processors wait (B-01).
    pub lock: Server,
    /// The processor that had it last.
    lock_holder: usize,
    functions: Vec<FunctionState>,
    /// Credits for descriptors that processors store into the interface.
    pub submission: Submission,
    queue_pairs: Vec<QueuePairState>,
    per_function: usize,
    /// Consumed events after which software reports to the interface.
    events_at_once: u64,
    slots: u64,
    /// The most outstanding operations of any function.
    pub most_outstanding: usize,
    /// Operations held back because the limit of outstanding operations was reached.
    pub held_back: u64,
    /// Events that could not be parsed: an error of the interface.
    pub unreadable: u64,
}

impl Host {
    /// Idle software; `layouts` are the memory layouts of the functions.
    pub fn new(config: &Config, node: usize, layouts: &[Layout]) -> Host {
        let functions = layouts.iter().map(|layout| FunctionState {
            outstanding: 0,
            places: (0..config.nic.doorbell_depth as u64)
                .rev()
                .map(|at| layout.base + at * DESCRIPTOR_PLACE)
                .collect(),
            waiting: Queue::default(),
        });
        let pairs = config.nic.functions * config.nic.queue_pairs;
        let slots = config.host.slots as u64;
        let entries = config.host.ring_entries;
        let places = layouts.iter().flat_map(|layout| &layout.queue_pairs).take(pairs);
        let queue_pairs = places.map(|places| QueuePairState {
            next: [places.send_ring, places.receive_ring].map(|base| Position::new(base, entries)),
            consumed: [0; 2],
            reported: [0; 2],
            slot_list: places.slot_list,
            slots_posted: slots,
            slots_reported: slots,
            consumes: true,
            about: Default::default(),
        });
        Host {
            node,
            processors: (0..config.host.processors).map(|_| Processor::default()).collect(),
            lock: Server::default(),
            lock_holder: 0,
            functions: functions.collect(),
            submission: Submission::new(&config.nic),
            queue_pairs: queue_pairs.collect(),
            per_function: config.nic.queue_pairs,
            events_at_once: (entries / 4).max(1),
            slots,
            most_outstanding: 0,
            held_back: 0,
            unreadable: 0,
        }
    }

    /// How long the processors were busy starting operations.
    pub fn busy(&self) -> Span {
        self.processors.iter().map(|processor| processor.server.busy()).sum()
    }

    /// A program posts a descriptor. It starts as soon as the function has fewer than 32
    /// outstanding (C-33).
    pub fn post(&mut self, cx: &mut Context, function: usize, operation: u32, descriptor: Vec<u8>) {
        let state = &mut self.functions[function];
        self.held_back += u64::from(state.places.is_empty());
        state.waiting.push(cx.now(), (operation, descriptor));
        self.start(cx, function);
    }

    fn start(&mut self, cx: &mut Context, function: usize) {
        let now = cx.now();
        let number = match self.processors.len() {
            1 => 0,
            processors => function % processors,
        };
        let state = &mut self.functions[function];
        while let Some(place) = state.places.pop() {
            let Some((operation, descriptor)) = state.waiting.pop(now) else {
                state.places.push(place);
                return;
            };
            state.outstanding += 1;
            self.most_outstanding = self.most_outstanding.max(state.outstanding);
            let processor = &mut self.processors[number];
            processor.ringing.push_back(AboutToRing { function, operation, place, descriptor });
            let begins = match cx.config.nic.submission {
                Start::Doorbell | Start::DamqPd | Start::Ring => {
                    now.max(processor.server.free_at())
                }
                Start::Descriptor if processor.is_at_work => continue,
                Start::Descriptor => {
                    processor.is_at_work = true;
                    now
                }
            };
            processor.prepare(cx, (self.node, number), operation, begins);
        }
    }

    /// A processor has written a descriptor. It stores the doorbell (C-31), or with credits the
    /// descriptor itself. Returns when the interface has it. Returns nothing with descriptor start,
    /// which needs the lock, or while the processor waits for credits.
    pub fn rings(
        &mut self,
        cx: &mut Context,
        port: &mut Port,
        number: usize,
    ) -> Option<(Doorbell, Time)> {
        if cx.config.nic.submission == Start::Descriptor {
            self.lock(cx, number);
            return None;
        }
        if self.asks(cx, port, number) {
            return None;
        }
        let about = self.processors[number].ringing.pop_front()?;
        let target = port.memory.slice_mut(about.place, about.descriptor.len())?;
        target.copy_from_slice(&about.descriptor);
        let doorbell = about.doorbell();
        let AboutToRing { function, operation, place, descriptor } = about;
        if matches!(cx.config.nic.submission, Start::DamqPd | Start::Ring) {
            let words = words(descriptor.len());
            if self.submission.way(function, words) == Way::Store {
                self.submission.store(function, words, place);
                let taken = port.burst(cx, operation, function, &descriptor);
                return Some((Doorbell { stored: Some(descriptor), ..doorbell }, taken));
            }
            self.submission.counts[1] += 1;
        }
        let taken = port.doorbell(cx, operation, (function, 0, doorbell.word));
        cx.recycle(descriptor);
        Some((doorbell, taken))
    }

    /// Whether a processor waits for credits before its first operation. It asks for them by a read
    /// of the interface (D-15).
    fn asks(&mut self, cx: &mut Context, port: &mut Port, number: usize) -> bool {
        if cx.config.nic.submission != Start::DamqPd {
            return false;
        }
        let now = cx.now();
        let Some(first) = self.processors[number].ringing.front() else { return false };
        let (function, operation) = (first.function, first.operation);
        let needed = words(first.descriptor.len());
        let processor = &mut self.processors[number];
        let until = match processor.asks_until {
            Some(until) if until > now => until,
            Some(_) => {
                processor.asks_until = None;
                self.submission.ask(function);
                return false;
            }
            None if self.submission.way(function, needed) == Way::Ask => {
                let request = port.down.transmit(now, REQUEST_BYTES);
                let answer = port.up.time(COMPLETION_BYTES + 8) + cx.config.pcie.latency;
                let until = request.arrives + answer;
                cx.journal.mark(operation, None, Stage::Processor, Some(Cause::Credit), until);
                processor.asks_until = Some(until);
                processor.server.hold(now, until);
                until
            }
            None => return false,
        };
        let (node, processor) = (self.node as u8, number as u8);
        cx.schedule.at(until, Step::Rings.about(node, processor));
        true
    }

    /// A processor waits for the lock of the engine, in order of request, and stores its descriptor
    /// word by word (B-01).
    fn lock(&mut self, cx: &mut Context, number: usize) {
        let now = cx.now();
        let Some(about) = self.processors[number].ringing.front() else { return };
        let host = &cx.config.host;
        let taken = if self.lock_holder == number { host.lock } else { host.lock_passed_on };
        let words = (about.descriptor.len() as u64).div_ceil(8);
        let Service { begins, ends } = self.lock.reserve(now, taken + host.store * words);
        self.lock_holder = number;
        let operation = about.operation;
        self.processors[number].server.hold(now, ends);
        cx.journal.mark(operation, None, Stage::Processor, Some(Cause::Lock), begins);
        cx.journal.mark(operation, None, Stage::Processor, None, ends);
        let node = self.node as u8;
        cx.schedule.at(ends, Step::Stored.about(node, number as u8));
    }

    /// A processor has stored a descriptor, and continues with the next operation. Returns the
    /// descriptor, and when the interface has it.
    pub fn stored(
        &mut self,
        cx: &mut Context,
        port: &mut Port,
        number: usize,
    ) -> Option<(Doorbell, Time)> {
        let processor = &mut self.processors[number];
        let about = processor.ringing.pop_front()?;
        let now = cx.now();
        processor.is_at_work = !processor.ringing.is_empty();
        if let Some(next) = processor.ringing.front() {
            let operation = next.operation;
            processor.prepare(cx, (self.node, number), operation, now);
        }
        let (mut taken, doorbell) = (now, about.doorbell());
        for (at, chunk) in about.descriptor.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let place = 0x400 + 8 * (at as u64 % 256);
            let store = (about.function, place, u64::from_le_bytes(word));
            taken = port.doorbell(cx, about.operation, store);
        }
        Some((Doorbell { stored: Some(about.descriptor), ..doorbell }, taken))
    }

    /// An event has become visible in a ring.
    pub fn event(
        &mut self,
        cx: &mut Context,
        port: &mut Port,
        (function, queue_pair, ring): (usize, usize, RingKind),
        operation: u32,
    ) {
        let state = &mut self.queue_pairs[function * self.per_function + queue_pair];
        state.about[ring as usize].push_back(operation);
        if state.consumes {
            self.consume(cx, port, (function, queue_pair), ring);
        }
    }

    /// Makes the program of a queue pair poll its rings, or stop polling. Events then stay in the
    /// rings.
    pub fn consumes(
        &mut self,
        cx: &mut Context,
        port: &mut Port,
        (function, queue_pair): (usize, usize),
        yes: bool,
    ) {
        self.queue_pairs[function * self.per_function + queue_pair].consumes = yes;
        if yes {
            for ring in [RingKind::Send, RingKind::Receive] {
                self.consume(cx, port, (function, queue_pair), ring);
            }
        }
    }

    /// Takes all new events, found by their phase bits.
    fn consume(
        &mut self,
        cx: &mut Context,
        port: &mut Port,
        (function, queue_pair): (usize, usize),
        ring: RingKind,
    ) {
        loop {
            let state = &mut self.queue_pairs[function * self.per_function + queue_pair];
            let next = &mut state.next[ring as usize];
            let Place { address, phase } = next.place();
            let Some(record) = port.memory.slice(address, EVENT_BYTES) else { return };
            if !Event::new(record).is_ok_and(|event| event.phase() == phase) {
                return;
            }
            next.advance();
            state.consumed[ring as usize] += 1;
            let operation = state.about[ring as usize].pop_front().unwrap_or(u32::MAX);
            let Ok(event) = EventRepr::parse(record) else {
                self.unreadable += 1;
                continue;
            };
            let (time, node) = (cx.now(), self.node);
            let notice = Notice { time, node, function, queue_pair, ring, operation, event };
            cx.notices.push_back(notice);
            match ring {
                RingKind::Send => self.sent(cx, function, event.address),
                RingKind::Receive if event.primitive == Primitive::Nap => {
                    self.list_slot(cx, port, (function, queue_pair), event.address);
                }
                RingKind::Receive => {}
            }
            self.report(cx, port, (function, queue_pair), ring);
        }
    }

    /// An operation is sent: frees the place of its descriptor.
    fn sent(&mut self, cx: &mut Context, function: usize, place: u64) {
        self.submission.sent(function, place);
        let state = &mut self.functions[function];
        state.outstanding -= 1;
        state.places.push(place);
        self.start(cx, function);
    }

    /// With its notice, the program is done with a slot: its address returns to the list.
    fn list_slot(
        &mut self,
        cx: &mut Context,
        port: &mut Port,
        (function, queue_pair): (usize, usize),
        slot: u64,
    ) {
        debug_assert!(slot.is_multiple_of(SLOT_BYTES));
        let state = &mut self.queue_pairs[function * self.per_function + queue_pair];
        let place = state.slot_list + 8 * (state.slots_posted % self.slots);
        if let Some(entry) = port.memory.slice_mut(place, 8) {
            entry.copy_from_slice(&slot.to_le_bytes());
        }
        state.slots_posted += 1;
        if state.slots_posted - state.slots_reported >= (self.slots / 4).max(1) {
            state.slots_reported = state.slots_posted;
            let count = state.slots_posted;
            port.window_write(cx, WindowWrite::SlotsPosted { function, queue_pair, count });
        }
    }

    /// Reports consumed events to the interface, a quarter of the ring at a time.
    fn report(
        &mut self,
        cx: &mut Context,
        port: &mut Port,
        (function, queue_pair): (usize, usize),
        ring: RingKind,
    ) {
        let state = &mut self.queue_pairs[function * self.per_function + queue_pair];
        let count = state.consumed[ring as usize];
        if count - state.reported[ring as usize] >= self.events_at_once {
            state.reported[ring as usize] = count;
            port.window_write(cx, WindowWrite::Consumed { function, queue_pair, ring, count });
        }
    }

    /// Visible events of a ring that software has not read because it [does not
    /// poll](Host::consumes).
    pub fn unread(&self, function: usize, queue_pair: usize, ring: RingKind) -> usize {
        self.queue_pairs[function * self.per_function + queue_pair].about[ring as usize].len()
    }

    /// Whether the next operation of this function would start at once.
    pub fn has_place(&self, function: usize) -> bool {
        let state = &self.functions[function];
        !state.places.is_empty() && state.waiting.is_empty()
    }

    /// Operations of a function that are started but not sent.
    pub fn outstanding(&self, function: usize) -> usize {
        self.functions[function].outstanding
    }

    /// Operations of each function that wait for software to start them.
    pub fn queues(&self) -> Vec<&dyn Watched> {
        self.functions.iter().map(|state| &state.waiting as &dyn Watched).collect()
    }

    /// Operations that wait for software to start them.
    pub fn waiting(&self) -> usize {
        self.functions.iter().map(|state| state.waiting.len()).sum()
    }
}
