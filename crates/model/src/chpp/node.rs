//! One node: a host and its interface, and the wires between their blocks.

use std::collections::VecDeque;

use bellwire_protocol::canary::planted;
use bellwire_wire::doorbell::DoorbellRepr;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::event::Status;

use super::config::{Config, Start};
use super::data::DataUnit;
use super::descriptor::{
    Command, DescriptorUnit, Extract, Extracting, Job, Transfer, extract_local, extract_remote,
};
use super::doorbell::{Doorbell, Doorbells};
use super::function::Layout;
use super::host::{Host, RingKind};
use super::journal::{Cause, SEND_EVENT, Stage};
use super::packer::Packer;
use super::pcie::first_request;
use super::port::{Incoming, Note, Port, Purpose, WindowWrite, Written};
use super::ring::EventRing;
use super::slots::SlotCache;
use super::submission::words;
use super::tags::Tag;
use super::upload::{QueuePair, ReceiveContext, Receiver, write_event};
use super::{Context, NicEvent};
use crate::engine::Random;
use crate::stats::{Queue, Watched};

/// The steps of a node. The numbers are those in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Step {
    /// A processor has prepared an operation.
    Rings = 1,
    /// The internal bus has taken a packet from the host.
    Incoming = 2,
    /// A doorbell is in its FIFO.
    Rung = 3,
    /// A descriptor read may be sent.
    DescriptorReads = 4,
    /// The memory has the data of a read.
    ReadReady = 5,
    /// A descriptor has been extracted.
    Extracted = 6,
    /// The next turn of the data read module.
    DataReads = 7,
    /// The last packet of an operation has left the packer.
    Sent = 8,
    /// A packet has passed the receive dispatch.
    Arrived = 11,
    /// The next turn of the upload module.
    Uploads = 12,
    /// A write is visible in host memory.
    Visible = 13,
    /// A processor has stored a descriptor into the engine.
    Stored = 16,
}

impl Step {
    /// This step in `node`.
    #[inline]
    pub fn of(self, node: u8) -> NicEvent {
        self.about(node, 0)
    }

    /// This step in `node`, for a processor or a tag.
    #[inline]
    pub fn about(self, node: u8, index: u8) -> NicEvent {
        NicEvent::Node { node, step: self, index }
    }
}

/// A host with its interface.
pub struct Node {
    number: usize,
    /// The memory layout of each function.
    pub layouts: Vec<Layout>,
    /// Processor and software.
    pub host: Host,
    /// The bus and the memory.
    pub port: Port,
    /// Doorbell window, FIFOs, arbiter.
    pub doorbells: Doorbells,
    /// Descriptor read and extract.
    pub descriptors: DescriptorUnit,
    /// Data read, extract, reorder.
    pub data: DataUnit,
    /// Packer.
    pub packer: Packer,
    /// Dispatch and upload.
    pub receiver: Receiver,
    /// Keys, rings and slots of all queue pairs, by function.
    pub queue_pairs: Vec<QueuePair>,
    /// Doorbells in flight to their FIFOs.
    ringing: VecDeque<Doorbell>,
    /// Send events that wait for room in their ring.
    pending_sent: Queue<(Transfer, Status)>,
    /// Whether a refill of slots got no tag.
    refills_wait: bool,
    get_goes_first: bool,
}

impl Node {
    /// A node after initialisation: rings empty, slots listed, keys set.
    pub fn new(config: &Config, number: usize, random: &mut Random) -> Node {
        let layouts: Vec<Layout> = (0..config.nic.functions)
            .map(|function| Layout::new(config, number, function))
            .collect();
        let mut port = Port::new(config, number, random);
        let mut queue_pairs = Vec::new();
        let slots = config.host.slots;
        for layout in &layouts {
            for places in &layout.queue_pairs {
                let address = |at: usize| places.slots + at as u64 * super::function::SLOT_BYTES;
                for at in 0..slots {
                    if let Some(entry) = port.memory.slice_mut(places.slot_list + 8 * at as u64, 8)
                    {
                        entry.copy_from_slice(&address(at).to_le_bytes());
                    }
                }
                let (cache, batch) = (config.nic.slot_cache, config.nic.slot_batch);
                let (list, first) = (places.slot_list, (0..slots).map(address));
                queue_pairs.push(QueuePair {
                    magic: random.word() as u8,
                    send_ring: EventRing::new(places.send_ring, config.host.ring_entries),
                    receive_ring: EventRing::new(places.receive_ring, config.host.ring_entries),
                    slots: SlotCache::new(list, slots as u64, cache, batch, first),
                });
            }
        }
        Node {
            number,
            host: Host::new(config, number, &layouts),
            layouts,
            port,
            doorbells: Doorbells::new(&config.nic, random),
            descriptors: DescriptorUnit::default(),
            data: DataUnit::new(config),
            packer: Packer::default(),
            receiver: Receiver::default(),
            queue_pairs,
            ringing: VecDeque::new(),
            pending_sent: Queue::default(),
            refills_wait: false,
            get_goes_first: false,
        }
    }

    /// Runs a step, now; `index` is its processor or tag, if it has one.
    pub fn step(&mut self, cx: &mut Context, step: Step, index: u8) {
        match step {
            Step::Rings | Step::Stored => self.rings(cx, step, index.into()),
            Step::Incoming => self.incoming(cx),
            Step::Rung => self.rung(cx),
            Step::DescriptorReads => self.descriptor_reads(cx),
            Step::ReadReady => self.port.ready(cx, Tag::of(index.into())),
            Step::Extracted => self.extracted(cx),
            Step::DataReads => self.data.turn(cx, &mut self.port),
            Step::Sent => self.sent(cx),
            Step::Arrived => self.arrived(cx),
            Step::Uploads => self.receive(cx, Receiver::upload),
            Step::Visible => self.visible(cx),
        }
    }

    /// The internal bus hands over a packet from the host.
    fn incoming(&mut self, cx: &mut Context) {
        let now = cx.now();
        match self.port.incoming.pop(now) {
            Some(Incoming::Window(WindowWrite::Consumed { function, queue_pair, ring, count })) => {
                let pair = &mut self.queue_pairs[function * cx.config.nic.queue_pairs + queue_pair];
                match ring {
                    RingKind::Send => pair.send_ring.consumed(count, now),
                    RingKind::Receive => pair.receive_ring.consumed(count, now),
                }
                self.flush_sent(cx);
                self.dispatch(cx);
            }
            Some(Incoming::Window(WindowWrite::SlotsPosted { function, queue_pair, count })) => {
                let at = function * cx.config.nic.queue_pairs + queue_pair;
                self.queue_pairs[at].slots.posted(count);
                self.refill(cx, at);
                self.dispatch(cx);
            }
            Some(Incoming::Completion { tag, length }) => self.completion(cx, tag, length),
            None => {}
        }
    }

    /// A doorbell is in its FIFO.
    fn rung(&mut self, cx: &mut Context) {
        let Some(doorbell) = self.ringing.pop_front() else { return };
        let now = cx.now();
        cx.journal.mark(doorbell.operation, None, Stage::Doorbell, None, now);
        self.doorbells.push(doorbell, now);
        self.arbitrate(cx);
    }

    /// Takes doorbells from the arbiter as long as descriptors can be read.
    fn arbitrate(&mut self, cx: &mut Context) {
        let (now, module) = (cx.now(), cx.config.nic.module());
        while self.descriptors.jobs.len() < cx.config.nic.descriptors_in_flight {
            let Some(doorbell) = self.doorbells.pop(now) else { return };
            let Doorbell { function, word, operation, stored } = doorbell;
            self.descriptors.counters.doorbells += 1;
            let read = now + module + module;
            cx.journal.mark(operation, None, Stage::Arbiter, Some(Cause::Arbiter), now);
            cx.journal.mark(operation, None, Stage::Arbiter, None, now + module);
            cx.journal.mark(operation, None, Stage::DescriptorRead, None, read);
            let place = DoorbellRepr::parse(word).ok();
            let place =
                place.filter(|at| self.layouts[function].holds(at.address, at.length.into()));
            let Some(DoorbellRepr { address, length }) = place else {
                // A function must not make the interface read a descriptor outside its window
                // (C-39).
                let address = word & ((1 << 40) - 1);
                let transfer = Transfer::new(operation, self.own(function), address);
                self.refuse(cx, transfer, Status::BadDescriptor);
                continue;
            };
            // A stored descriptor is already here: it is not read.
            let here = if stored.is_some() { length.into() } else { 0 };
            let job = Job {
                operation,
                function,
                address,
                bytes: stored.unwrap_or_else(|| cx.buffer(length.into())),
                asked: here,
                received: here,
                stored_words: if here > 0 { words(length.into()) } else { 0 },
            };
            self.descriptors.jobs.push(now, job);
            cx.schedule.at(read, Step::DescriptorReads.of(self.number as u8));
        }
    }

    /// The read module has reached one more descriptor.
    fn descriptor_reads(&mut self, cx: &mut Context) {
        self.descriptors.reached += 1;
        self.read_descriptors(cx);
        if cx.config.nic.submission != Start::Doorbell {
            self.extract(cx);
        }
    }

    /// Requests descriptors as long as tags are free.
    fn read_descriptors(&mut self, cx: &mut Context) {
        let now = cx.now();
        while let Some((number, job)) = self.descriptors.next_to_ask() {
            let length = job.bytes.len() as u64;
            let most = cx.config.pcie.read_request.count();
            let run = first_request(job.address + job.asked, length - job.asked, most);
            let completes = job.asked + run.length == length;
            let note = completes.then_some(Note {
                operation: job.operation,
                part: None,
                module: Stage::DescriptorRead,
                memory: Stage::DescriptorMemory,
            });
            let cause = Some(Cause::Tag);
            cx.journal.mark(job.operation, None, Stage::DescriptorRead, cause, now);
            if !self.port.read(cx, run, Purpose::Descriptor { job: number }, note) {
                return;
            }
            job.asked += run.length;
        }
    }

    fn completion(&mut self, cx: &mut Context, tag: Tag, length: usize) {
        let now = cx.now();
        let module = cx.config.nic.module();
        if let Some((Purpose::Data { read }, bytes)) = self.port.partial(tag, length) {
            self.data.completion(read, bytes, now, module + module);
        }
        let Some(answer) = self.port.completed(now, tag, length) else {
            self.packer.turn(cx, &mut self.data);
            return;
        };
        match answer.purpose {
            Purpose::Descriptor { job } => {
                if self.descriptors.received(job, answer.address, &answer.bytes) {
                    self.extract(cx);
                }
            }
            Purpose::Data { .. } => {}
            Purpose::Slots { function, queue_pair } => {
                let at = function * cx.config.nic.queue_pairs + queue_pair;
                self.queue_pairs[at].slots.refilled(&answer.bytes, now);
                self.refill(cx, at);
                self.dispatch(cx);
            }
        }
        self.port.recycle(answer.bytes);
        // A tag is free. Descriptors and slot addresses go first: they are few, and much work waits
        // for them.
        self.read_descriptors(cx);
        if std::mem::take(&mut self.refills_wait) {
            for at in 0..self.queue_pairs.len() {
                self.refill(cx, at);
            }
        }
        self.packer_turn(cx);
    }

    /// Starts the extract module if it is idle and a descriptor waits.
    fn extract(&mut self, cx: &mut Context) {
        if self.descriptors.extracting.is_some() {
            return;
        }
        let now = cx.now();
        let Some((operation, bytes)) = self.descriptors.begin(now) else { return };
        let nic = &cx.config.nic;
        // The module's delay covers the hardware header; every further word takes a cycle of the
        // descriptor path (5.2).
        let words = (bytes as u64).saturating_sub(16).div_ceil(nic.descriptor_path.count());
        let taken = nic.module() + nic.cycle() * words;
        cx.journal.mark(operation, None, Stage::DescriptorExtract, Some(Cause::Arbiter), now);
        cx.journal.mark(operation, None, Stage::DescriptorExtract, None, now + taken);
        cx.schedule.after(taken, Step::Extracted.of(self.number as u8));
        self.arbitrate(cx);
    }

    /// The extract module has finished a descriptor.
    fn extracted(&mut self, cx: &mut Context) {
        let ports = cx.controllers.nodes();
        match self.descriptors.extracting.take() {
            Some(Extracting::Local(job)) => {
                self.descriptors.counters.extracted += 1;
                self.host.submission.extracted(job.function, job.stored_words);
                let place = (self.own(job.function), ports);
                let recycled = self.data.spare_commands.pop();
                let mut extract = extract_local(&job, place, &self.layouts, recycled);
                match &mut extract {
                    Extract::Get(get) => get.bytes = job.bytes,
                    _ => cx.recycle(job.bytes),
                }
                self.descriptors.held = Some(extract);
            }
            Some(Extracting::Remote(get)) => {
                let recycled = self.data.spare_commands.pop();
                match extract_remote(&get, ports, &self.layouts, recycled) {
                    Some(command) => {
                        self.descriptors.counters.remote_gets += 1;
                        self.descriptors.held_remote = Some(command);
                    }
                    None => self.descriptors.counters.refused += 1,
                }
                cx.recycle(get.bytes);
            }
            None => {}
        }
        self.pass_extracted(cx);
        // A place for a remote GET may be free now.
        self.dispatch(cx);
        self.extract(cx);
    }

    /// Passes extracted descriptors on, as long as the next block has room.
    fn pass_extracted(&mut self, cx: &mut Context) {
        // Canary: the queue of commands has no end.
        let endless = planted("chpp-depth-ignored");
        let depth = if endless { usize::MAX } else { cx.config.nic.command_depth };
        let module = cx.config.nic.module();
        let node = self.number as u8;
        let (mut accepted, mut reads) = (false, false);
        if self.data.commands.len() < depth
            && let Some(command) = self.descriptors.held_remote.take()
        {
            reads |= !command.sources.is_empty();
            self.accept(cx, command);
            accepted = true;
        }
        self.descriptors.held = match self.descriptors.held.take() {
            Some(Extract::Command(command)) if self.data.commands.len() < depth => {
                reads |= !command.sources.is_empty();
                self.accept(cx, command);
                accepted = true;
                None
            }
            Some(Extract::Get(get)) => {
                let held = self.packer.send_get(cx, get);
                self.descriptors.counters.gets += u64::from(held.is_none());
                held.map(Extract::Get)
            }
            Some(Extract::Refused(transfer, status)) => {
                self.refuse(cx, transfer, status);
                None
            }
            held => held,
        };
        // Immediate data needs no turn of the data read module.
        if reads {
            cx.schedule.after(module, Step::DataReads.of(node));
        }
        if accepted {
            self.packer.turn(cx, &mut self.data);
        }
    }

    fn accept(&mut self, cx: &mut Context, mut command: Box<Command>) {
        let now = cx.now();
        let operation = command.transfer.operation;
        cx.journal.mark(operation, None, Stage::DescriptorExtract, Some(Cause::Room), now);
        command.extracted = now;
        self.data.commands.push(now, command);
    }

    /// The packer may have room, or data.
    pub fn packer_turn(&mut self, cx: &mut Context) {
        // A waiting GET and the packets of PUTs alternate at the crossbar.
        self.get_goes_first = !self.get_goes_first;
        if self.get_goes_first && matches!(self.descriptors.held, Some(Extract::Get(_))) {
            self.pass_extracted(cx);
        }
        self.packer.turn(cx, &mut self.data);
        if self.descriptors.held.is_some() || self.descriptors.held_remote.is_some() {
            self.pass_extracted(cx);
        }
        self.extract(cx);
        self.data.reads(cx, &mut self.port);
    }

    /// The last packet of an operation has left: its send event is due (C-13).
    fn sent(&mut self, cx: &mut Context) {
        if let Some(transfer) = self.packer.leaving.pop(cx.now()) {
            cx.operations[transfer.operation].sent = Some(cx.now());
            self.pending_sent.push(cx.now(), (transfer, Status::Success));
        }
        self.flush_sent(cx);
    }

    fn refuse(&mut self, cx: &mut Context, transfer: Transfer, status: Status) {
        self.descriptors.counters.refused += 1;
        self.pending_sent.push(cx.now(), (transfer, status));
        self.flush_sent(cx);
    }

    /// Queue pair 0 of a function.
    fn own(&self, function: usize) -> Endpoint {
        Endpoint::new(self.number as u8, function as u8, 0)
            .expect("node and function are in range by configuration")
    }

    /// Writes send events as long as their rings have room.
    fn flush_sent(&mut self, cx: &mut Context) {
        let now = cx.now();
        let mut left = self.pending_sent.len();
        while left > 0 {
            left -= 1;
            let Some((transfer, status)) = self.pending_sent.pop(now) else { return };
            let at = usize::from(transfer.source.function()) * cx.config.nic.queue_pairs
                + usize::from(transfer.source.queue_pair());
            let pair = &mut self.queue_pairs[at];
            let Some(place) = pair.send_ring.take(now) else {
                // Events of other rings may overtake. Those of one ring stay in order, as each
                // finds the same ring full.
                self.pending_sent.push(now, (transfer, status));
                continue;
            };
            // No packet has this part number: the send event is on no data path.
            let (place, of) = ((place, RingKind::Send), (status, SEND_EVENT));
            write_event(cx, &mut self.port, place, &transfer, of, Stage::EventWrite);
        }
    }

    /// A packet has passed the receive dispatch.
    fn arrived(&mut self, cx: &mut Context) {
        self.receiver.arrived(cx.now());
        self.dispatch(cx);
    }

    /// Passes received packets on.
    fn dispatch(&mut self, cx: &mut Context) {
        self.receive(cx, Receiver::dispatch);
    }

    /// Runs the dispatch or the upload module. GETs may then have arrived for the extract module,
    /// and slots may be used.
    #[inline]
    fn receive(
        &mut self,
        cx: &mut Context,
        turn: impl FnOnce(&mut Receiver, &mut Context, usize, &mut ReceiveContext),
    ) {
        let Node { number, receiver, port, descriptors, layouts, queue_pairs, .. } = self;
        turn(
            receiver,
            cx,
            *number,
            &mut ReceiveContext { port, descriptors, layouts, queue_pairs },
        );
        if !self.descriptors.remote.is_empty() {
            self.extract(cx);
        }
        if let Some(at) = self.receiver.took_slot.take() {
            self.refill(cx, at);
        }
    }

    /// Reads slot addresses before they run out (C-20).
    fn refill(&mut self, cx: &mut Context, at: usize) {
        let slots = &mut self.queue_pairs[at].slots;
        if let Some(run) = slots.refill() {
            let per_function = cx.config.nic.queue_pairs;
            let purpose =
                Purpose::Slots { function: at / per_function, queue_pair: at % per_function };
            if !self.port.read(cx, run, purpose, None) {
                slots.postpone();
                self.refills_wait = true;
            }
        }
    }

    /// A write is visible in host memory.
    fn visible(&mut self, cx: &mut Context) {
        let now = cx.now();
        match self.port.visible(now) {
            Some(Written::Data { operation, part, length }) => {
                let operation = &mut cx.operations[operation];
                operation.landed_bytes += length;
                operation.landed = Some((now, part));
            }
            Some(Written::Event { function, queue_pair, ring, operation, part }) => {
                if ring == RingKind::Receive {
                    cx.operations[operation].finished = Some((now, part));
                }
                let place = (function, queue_pair, ring);
                self.host.event(cx, &mut self.port, place, operation);
            }
            None => {}
        }
    }

    /// A processor has prepared an operation and stores its doorbell, or it has stored a descriptor
    /// into the engine.
    fn rings(&mut self, cx: &mut Context, step: Step, processor: usize) {
        let rung = match step {
            Step::Stored => self.host.stored(cx, &mut self.port, processor),
            _ => self.host.rings(cx, &mut self.port, processor),
        };
        if let Some((doorbell, taken)) = rung {
            // Doorbells cross the bus in order, so this queue has the order of the wires.
            self.ringing.push_back(doorbell);
            let module = cx.config.nic.module();
            cx.schedule.at(taken + module, Step::Rung.of(self.number as u8));
        }
    }

    /// Every queue of this node, by name. The crossbar's queues are not among them.
    pub fn queues(&self) -> Vec<(String, &dyn Watched)> {
        let node = self.number;
        let mut queues: Vec<(String, &dyn Watched)> = Vec::new();
        for (function, queue) in self.host.queues().into_iter().enumerate() {
            queues
                .push((format!("operations of function {node}.{function} before software"), queue));
        }
        for (function, fifo) in self.doorbells.fifos.iter().enumerate() {
            queues.push((format!("doorbell FIFO of function {node}.{function}"), fifo));
        }
        let Node { descriptors, packer, receiver, port, data, .. } = self;
        let blocks: [(&str, &dyn Watched); 7] = [
            ("descriptors being read", &descriptors.jobs),
            ("GETs from elsewhere", &descriptors.remote),
            ("packer, last packets", &packer.leaving),
            ("send events without a record", &self.pending_sent),
            ("dispatch", &receiver.landing),
            ("receive buffer", &receiver.waiting[super::crossbar::DATA]),
            ("receive buffer for GETs", &receiver.waiting[super::crossbar::GET]),
        ];
        let blocks = blocks.into_iter().chain(port.queues()).chain(data.queues());
        queues.extend(blocks.map(|(name, queue)| (format!("{name} of node {node}"), queue)));
        let per_function = self.queue_pairs.len() / self.layouts.len().max(1);
        for (at, pair) in self.queue_pairs.iter().enumerate() {
            let name = |what| {
                format!("{what} of queue pair {node}.{}.{}", at / per_function, at % per_function)
            };
            queues.push((name("send ring"), &pair.send_ring.full));
            queues.push((name("receive ring"), &pair.receive_ring.full));
            queues.push((name("free NAP slots on the chip"), &pair.slots.cached));
        }
        queues
    }

    /// Whether no operation is in flight in this node.
    pub fn is_idle(&self) -> bool {
        self.host.waiting() == 0
            && (0..self.layouts.len()).all(|function| self.host.outstanding(function) == 0)
            && self.pending_sent.is_empty()
            && self.is_empty()
    }

    /// Whether the interface is empty, except for send events that wait for software.
    pub fn is_empty(&self) -> bool {
        let descriptors = &self.descriptors;
        self.ringing.is_empty()
            && self.doorbells.is_empty()
            && descriptors.jobs.is_empty()
            && descriptors.remote.is_empty()
            && descriptors.extracting.is_none()
            && descriptors.held.is_none()
            && descriptors.held_remote.is_none()
            && self.data.is_idle()
            && self.receiver.landing.is_empty()
            && self.receiver.waiting.iter().all(Queue::is_empty)
            && !self.receiver.is_uploading()
            && self.port.outstanding() == 0
    }
}
