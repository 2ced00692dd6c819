//! The whole machine: all nodes, the controllers that join them, and programs in virtual time.

use std::collections::VecDeque;

use bellwire_wire::WireError;
use bellwire_wire::descriptor::DescriptorRepr;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::header::HeaderRepr;
use bellwire_wire::primitive::Primitive;

use super::config::Config;
use super::controllers::Controllers;
use super::crossbar::{Crossbar, Grant};
use super::descriptor::Extract;
use super::host::Notice;
use super::io::{self, Access, Io};
use super::journal::{Cause, Explanation, Journal, Stage};
use super::node::{Node, Step};
pub use super::operations::Operation;
use super::operations::Operations;
use super::record::frames::Wire;
use super::record::signals::Signals;
use super::upload::Blocked;
use super::{Context, NicEvent, Packet};
use crate::engine::{Cycle, Ended, Model, Pool, Random, Schedule, Simulation, Standstill, Waits};
use crate::stats::{Imbalance, QueueUse};
use crate::units::{Span, Time};

/// A resource, and its utilisation.
#[derive(Clone, Debug)]
pub struct Busy {
    /// Its name.
    pub resource: String,
    /// From 0 to 1.
    pub share: f64,
}

/// A program on the modelled nodes. It takes no time itself; the processor's work for it does.
pub trait Program {
    /// Software has read an event of a ring.
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>);

    /// An access to an I/O device has ended.
    fn accessed(&mut self, access: u32, api: &mut HostApi<'_>) {
        let _ = (access, api);
    }

    /// A requested wake-up is due.
    fn woken(&mut self, token: u32, api: &mut HostApi<'_>) {
        let _ = (token, api);
    }
}

/// A program that does nothing.
impl Program for () {
    fn notified(&mut self, _: &Notice, _: &mut HostApi<'_>) {}
}

/// A program that only collects notices.
impl Program for Vec<Notice> {
    fn notified(&mut self, notice: &Notice, _: &mut HostApi<'_>) {
        self.push(*notice);
    }
}

/// Nodes, controllers, and the schedule of their events.
pub type Machine = Simulation<Hardware>;

/// Everything but time.
pub struct Hardware {
    config: Config,
    nodes: Vec<Node>,
    controllers: Controllers,
    io: Io,
    packets: Pool<Packet>,
    spare: Vec<Vec<u8>>,
    journal: Journal,
    signals: Option<Signals>,
    operations: Operations,
    notices: VecDeque<Notice>,
    /// The token of a wake-up that is due.
    woken: Option<u32>,
    grants: Vec<Grant>,
    /// The moment whose events run now.
    looked: Time,
}

/// The interface of programs: posts operations and accesses memory.
pub struct HostApi<'a> {
    hardware: &'a mut Hardware,
    schedule: &'a mut Schedule<NicEvent>,
}

impl Machine {
    /// An idle machine. The same configuration, seed and programs give the same run.
    ///
    /// # Errors
    /// [`super::ConfigError`] for a configuration out of range.
    pub fn new(config: &Config, seed: u64) -> Result<Machine, super::ConfigError> {
        config.check()?;
        let mut random = Random::new(seed);
        let nodes = (0..config.nodes()).map(|node| Node::new(config, node, &mut random)).collect();
        let controllers = Controllers::new(config, &mut random)?;
        let io = Io::new(config, controllers.crossbars.len(), &mut Random::new(!seed));
        let mut hardware = Hardware {
            config: config.clone(),
            nodes,
            controllers,
            io,
            packets: Pool::default(),
            spare: Vec::new(),
            journal: Journal::default(),
            signals: None,
            operations: Operations::default(),
            notices: VecDeque::new(),
            woken: None,
            grants: Vec::new(),
            looked: Time::ZERO,
        };
        let mut schedule = Schedule::new(random.word(), config.nic.cycle() * 4);
        if config.link == super::config::LinkKind::Smp {
            hardware.controllers.lay_smp_links(&mut schedule);
        }
        Ok(Machine { model: hardware, schedule })
    }

    /// The interface of programs, at the present time.
    pub fn api(&mut self) -> HostApi<'_> {
        HostApi { hardware: &mut self.model, schedule: &mut self.schedule }
    }

    /// Runs events up to `until`, or until none is left, and tells the program.
    ///
    /// # Errors
    /// [`Standstill`] if no event is left though operations are in flight.
    pub fn run_program(
        &mut self,
        program: &mut impl Program,
        until: Time,
    ) -> Result<Ended, Standstill> {
        self.model.looked = self.now();
        let ended = self.run_with(until, |hardware, schedule| hardware.tell(schedule, program));
        self.model.look(self.schedule.now());
        self.standstill().map_or(Ok(ended), Err)
    }

    /// Runs one event at or before `until`, and tells the program. Without one, moves the time to
    /// `until` and returns `false`.
    pub fn step_program(&mut self, program: &mut impl Program, until: Time) -> bool {
        self.model.looked = self.now();
        let stepped = self.step(until);
        if stepped {
            self.tell(program);
        }
        stepped
    }

    /// Passes the notices that calls of [`HostApi`] raised to a program.
    pub fn tell(&mut self, program: &mut impl Program) {
        self.model.tell(&mut self.schedule, program);
    }

    /// The cycle of waits of a permanent deadlock; nothing as long as the machine or software can
    /// still cause an event.
    pub fn deadlock(&self) -> Option<Cycle> {
        if self.pending() > 0 || self.model.nodes.iter().all(Node::is_empty) {
            return None;
        }
        let mut waits = Waits::default();
        self.model.waits(&mut waits);
        waits.cycle()
    }

    /// Runs all events.
    ///
    /// # Errors
    /// [`Standstill`].
    pub fn run_to_end(&mut self, program: &mut impl Program) -> Result<(), Standstill> {
        self.run_program(program, Time::NEVER).map(|_| ())
    }

    /// The nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.model.nodes
    }

    /// The crossbar of the first controller.
    pub fn crossbar(&self) -> &Crossbar {
        &self.model.controllers.crossbars[0]
    }

    /// All controllers, with their crossbars and links.
    pub fn controllers(&self) -> &Controllers {
        &self.model.controllers
    }

    /// PCIe crossbars and I/O devices.
    pub fn io(&self) -> &Io {
        &self.model.io
    }

    /// Starts to record where time goes, for [`Machine::explain`].
    pub fn open_journal(&mut self) {
        self.model.journal.open();
    }

    /// Starts to record the level of each queue and the handshakes, for [`super::record`].
    pub fn watch_signals(&mut self) {
        self.model.signals.get_or_insert_default();
    }

    /// Starts to record the packets on links, for [`super::record::frames`].
    pub fn capture_frames(&mut self) {
        self.model.journal.capture();
    }

    /// The record of queues and handshakes; nothing if it was not started.
    pub fn signals(&self) -> Option<&Signals> {
        self.model.signals.as_ref()
    }

    /// The record of where time went; empty unless it was started.
    pub fn journal(&self) -> &Journal {
        &self.model.journal
    }

    /// Starts to record the channel and destination of each packet that an interface sends (C-42).
    pub fn watch_channels(&mut self) {
        self.model.controllers.seen = Some(Vec::new());
    }

    /// All operations so far, by number, except [forgotten](Machine::forget_operations) ones.
    pub fn operations(&self) -> &[Operation] {
        self.model.operations.all()
    }

    /// The operation with this number; nothing if it is forgotten.
    pub fn operation(&self, number: u32) -> Option<&Operation> {
        self.model.operations.get(number)
    }

    /// From now on forgets operations once programs were notified of both ends, so that a machine
    /// can run without end.
    pub fn forget_operations(&mut self) {
        self.model.operations.forget_told();
    }

    /// Where the time of an ended operation went; nothing before its end. Needs an open journal.
    pub fn explain(&self, operation: u32) -> Option<Explanation> {
        let record = self.model.operations.get(operation)?;
        let (end, part) = record.finished.or(record.landed)?;
        Some(self.model.journal.explain(operation, part, record.started, end))
    }

    /// The utilisation of each resource until now, the highest first: the bottleneck of a run comes
    /// first.
    pub fn busiest(&self) -> Vec<Busy> {
        let now = self.now();
        let all = (now - Time::ZERO).ps().max(1) as f64;
        let share = |span: Span| span.ps() as f64 / all;
        let mut busy = Vec::new();
        for (at, node) in self.model.nodes.iter().enumerate() {
            let port = &node.port;
            let tags = port.tags.occupancy.mean(now) / self.model.config.nic.tags as f64;
            for (resource, share) in [
                ("internal bus", share(port.bus.busy())),
                ("wires to the host", share(port.up.server.busy())),
                ("wires from the host", share(port.down.server.busy())),
                ("tags", tags),
                ("processors", share(node.host.busy()) / self.model.config.host.processors as f64),
            ] {
                busy.push(Busy { resource: format!("{resource} of node {at}"), share });
            }
        }
        self.model
            .controllers
            .busy(|resource, span| busy.push(Busy { resource, share: share(span) }));
        busy.sort_by(|a, b| b.share.total_cmp(&a.share));
        busy
    }

    /// The use of each queue until now, except unused ones; the highest mean comes first. Little's
    /// law holds on each if the [audit](Machine::audit) passes.
    pub fn queues(&self) -> Vec<QueueUse> {
        let now = self.now();
        let mut all = Vec::new();
        for (at, node) in self.model.nodes.iter().enumerate() {
            let tags = &node.port.tags.occupancy;
            all.push(QueueUse::of(format!("tags of node {at}"), tags, now));
            let queues = node.queues().into_iter();
            all.extend(queues.map(|(name, queue)| QueueUse::of(name, queue.occupancy(), now)));
        }
        let channels = self.model.controllers.crossbars.iter().flat_map(Crossbar::occupancies);
        all.extend(channels.map(|(name, occupancy)| QueueUse::of(name, occupancy, now)));
        let io = self.model.io.occupancies().into_iter();
        all.extend(io.map(|(name, occupancy)| QueueUse::of(name, occupancy, now)));
        all.retain(|queue| queue.came > 0);
        all.sort_by(|a, b| b.mean.total_cmp(&a.mean).then_with(|| a.queue.cmp(&b.queue)));
        all
    }

    /// Checks Little's law and conservation on all queues, tags and buffers.
    ///
    /// # Errors
    /// The first violation.
    pub fn audit(&self) -> Result<(), Imbalance> {
        let now = self.now();
        self.model.controllers.audit(now)?;
        self.model.io.audit(now)?;
        self.model.nodes.iter().try_for_each(|node| {
            node.port.tags.audit(now)?;
            node.queues().iter().try_for_each(|(name, queue)| queue.audit(name, now))
        })
    }
}

impl HostApi<'_> {
    /// The present time.
    pub fn now(&self) -> Time {
        self.schedule.now()
    }

    /// Posts a descriptor for a function of a node; returns the operation's number.
    ///
    /// # Errors
    /// [`WireError`] if the descriptor cannot be written.
    ///
    /// # Panics
    /// If there is no such node or function.
    pub fn post(
        &mut self,
        node: usize,
        function: usize,
        descriptor: &DescriptorRepr<'_>,
    ) -> Result<u32, WireError> {
        let mut bytes = self.hardware.spare.pop().unwrap_or_default();
        bytes.resize(descriptor.buffer_len(), 0);
        descriptor.emit(&mut bytes)?;
        let length = descriptor.work.total_bytes()?;
        let peer = Some(descriptor.destination.cpu().into());
        let what = (descriptor.work.primitive(), length, peer);
        Ok(self.post_as(node, function, what, bytes))
    }

    /// Posts arbitrary bytes as a descriptor. They are padded with zeros or cut to a length that a
    /// doorbell can announce: a multiple of 16 up to 4096.
    ///
    /// # Panics
    /// If there is no such node or function.
    pub fn post_bytes(
        &mut self,
        node: usize,
        function: usize,
        primitive: Primitive,
        length: u64,
        mut bytes: Vec<u8>,
    ) -> u32 {
        bytes.resize(bytes.len().next_multiple_of(16).clamp(16, 4096), 0);
        let peer = DescriptorRepr::parse(&bytes).ok().map(|repr| repr.destination.cpu().into());
        self.post_as(node, function, (primitive, length, peer), bytes)
    }

    fn post_as(
        &mut self,
        node: usize,
        function: usize,
        (primitive, length, peer): (Primitive, u64, Option<usize>),
        bytes: Vec<u8>,
    ) -> u32 {
        let posted = self.now();
        let operation = self.hardware.operations.add(Operation {
            node,
            function,
            peer,
            primitive,
            bytes: length,
            posted,
            started: posted,
            sent: None,
            landed_bytes: 0,
            landed: None,
            finished: None,
        });
        self.hardware
            .at(self.schedule, node, |node, cx| node.host.post(cx, function, operation, bytes));
        operation
    }

    /// Puts a packet's bytes unchanged into the crossbar's input of a node; false if there is no
    /// room.
    pub fn inject(&mut self, node: usize, output: usize, bytes: &[u8]) -> bool {
        let Hardware { controllers, packets, .. } = &mut *self.hardware;
        let channel = controllers.channel_for(output, false);
        if !controllers.has_room(node, channel) {
            return false;
        }
        let packet =
            packets.put(Packet { bytes: bytes.to_vec(), operation: 0, part: 0, is_get: false });
        let now = self.schedule.now();
        controllers.inject(self.schedule, (node, channel), (packet, output, 2), now);
        true
    }

    /// Global address of the first byte of an I/O device; nothing if it does not exist. Device
    /// numbers run through all controllers, like those of nodes.
    pub fn device(&self, device: usize) -> Option<u64> {
        self.hardware.io.base(device)
    }

    /// The processor of a node loads bytes of an I/O device. Returns the access's number. Returns
    /// nothing if no device of the node's controller has them, or if they exceed one bus packet.
    /// [`Program::accessed`] reports the end.
    pub fn load(&mut self, node: usize, address: u64, length: usize) -> Option<u32> {
        let (io, cx) = self.hardware.io_context(self.schedule);
        io.ask(cx, (node, address, length), None)
    }

    /// The same for a store.
    pub fn store(&mut self, node: usize, address: u64, bytes: &[u8]) -> Option<u32> {
        let (io, cx) = self.hardware.io_context(self.schedule);
        io.ask(cx, (node, address, bytes.len()), Some(bytes))
    }

    /// The state of an access.
    pub fn access(&self, access: u32) -> Option<&Access> {
        self.hardware.io.accesses().get(access as usize)
    }

    /// Makes an I/O device take requests, or leave them queued.
    pub fn device_takes(&mut self, device: usize, yes: bool) {
        self.hardware.io.takes(self.schedule, device, yes);
    }

    /// Schedules a call of [`Program::woken`] with `token` at `time`.
    pub fn wake(&mut self, time: Time, token: u32) {
        self.schedule.at(time, NicEvent::Wake { token });
    }

    /// The key of a queue pair (C-09).
    pub fn key(&self, of: Endpoint) -> u8 {
        let at = usize::from(of.function()) * self.hardware.config.nic.queue_pairs
            + usize::from(of.queue_pair());
        self.hardware.nodes[usize::from(of.cpu())].queue_pairs[at].magic
    }

    /// First address of a function's window.
    pub fn window(&self, node: usize, function: usize) -> u64 {
        self.hardware.nodes[node].layouts[function].base
    }

    /// First address of a function's window that programs may use.
    pub fn free_memory(&self, node: usize, function: usize) -> u64 {
        self.hardware.nodes[node].layouts[function].free
    }

    /// Bytes of memory at a global address (C-05); nothing if they do not exist.
    pub fn memory(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.hardware.nodes.get(node_of(address))?.port.memory.slice(address, length)
    }

    /// The same for writing, as a program of that node would.
    pub fn memory_mut(&mut self, address: u64, length: usize) -> Option<&mut [u8]> {
        self.hardware.nodes.get_mut(node_of(address))?.port.memory.slice_mut(address, length)
    }

    /// Makes the program of a queue pair poll its rings, or stop polling.
    pub fn consumes(&mut self, node: usize, function: usize, queue_pair: usize, yes: bool) {
        self.hardware.at(self.schedule, node, |node, cx| {
            node.host.consumes(cx, &mut node.port, (function, queue_pair), yes);
        });
    }

    /// All operations so far, by number, except forgotten ones.
    pub fn operations(&self) -> &[Operation] {
        self.hardware.operations.all()
    }

    /// A draw from the model's random numbers, below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.schedule.random.below(limit)
    }
}

fn node_of(address: u64) -> usize {
    (address >> super::memory::NODE_SHIFT) as usize
}

impl Hardware {
    /// Calls a block of `node` with everything that it can reach.
    fn at<R>(
        &mut self,
        schedule: &mut Schedule<NicEvent>,
        node: usize,
        call: impl FnOnce(&mut Node, &mut Context) -> R,
    ) -> R {
        let Hardware {
            config,
            nodes,
            controllers,
            packets,
            spare,
            journal,
            operations,
            notices,
            ..
        } = self;
        let mut cx =
            Context { schedule, config, packets, spare, controllers, journal, operations, notices };
        call(&mut nodes[node], &mut cx)
    }

    /// The I/O block, with everything that it can reach.
    fn io_context<'a>(
        &'a mut self,
        schedule: &'a mut Schedule<NicEvent>,
    ) -> (&'a mut Io, io::IoContext<'a>) {
        let Hardware { config, nodes, packets, io, .. } = self;
        (io, io::IoContext { schedule, config, nodes, packets })
    }

    /// Handles an event outside a node.
    fn handle_between(&mut self, event: NicEvent, schedule: &mut Schedule<NicEvent>) {
        match event {
            NicEvent::Node { .. } => {}
            NicEvent::Wake { token } => self.woken = Some(token),
            NicEvent::Io { step, at } => {
                let (io, cx) = self.io_context(schedule);
                io.step(cx, step, at.into());
            }
            NicEvent::CrossbarMatches { controller } if self.io.is_crossbar(controller.into()) => {
                let (io, cx) = self.io_context(schedule);
                io.matches(cx, controller.into());
            }
            NicEvent::Crossed { controller, input, output }
                if self.io.is_crossbar(controller.into()) =>
            {
                let (io, cx) = self.io_context(schedule);
                io.crossed(cx, controller.into(), input.into(), output.into());
            }
            NicEvent::CrossbarMatches { controller } => self.matches(schedule, controller.into()),
            NicEvent::Crossed { controller, input, output } => {
                let (controller, input) = (controller.into(), input.into());
                let node = self.controllers.crossed(schedule, controller, input, output.into());
                if let Some(node) = node {
                    self.at(schedule, node, Node::packer_turn);
                }
            }
            NicEvent::Credited { controller, output, channel } => {
                let (controller, output) = (controller.into(), output.into());
                self.controllers.credited(schedule, controller, output, channel.into());
            }
            NicEvent::Link { link, event } => {
                let link = link.into();
                let delivery = self.controllers.on_link(schedule, &self.config, link, event);
                if let Some(delivery) = delivery {
                    let arrives = self.config.nic.edge(schedule.now());
                    let between = (delivery.near, delivery.far.0);
                    self.came_by_link(delivery.bound.packet, between, arrives);
                }
            }
        }
    }

    /// Records the state at the end of the moment `time`, if signals are recorded.
    fn look(&mut self, time: Time) {
        if let Some(signals) = &mut self.signals {
            signals.look(time, &self.config.nic, &self.nodes, &self.controllers.crossbars);
        }
    }

    fn matches(&mut self, schedule: &mut Schedule<NicEvent>, controller: usize) {
        let mut grants = std::mem::take(&mut self.grants);
        self.controllers.crossbars[controller].matches(schedule, &mut grants);
        let (now, module) = (schedule.now(), self.config.nic.module());
        for grant in grants.drain(..) {
            let packet = grant.bound.packet;
            let Packet { operation, part, is_get, ref bytes } = self.packets[packet];
            let (stage, part) =
                if is_get { (Stage::GetTrip, None) } else { (Stage::Crossbar, Some(part)) };
            self.journal.mark(operation, part, stage, Some(Cause::VirtualChannel), now);
            self.journal.mark(operation, part, stage, None, now + module);
            if let Some(node) = self.controllers.node_behind(controller, &grant) {
                let mut arrives = grant.tail + module;
                if self.config.nic.conversion {
                    let nic = &self.config.nic;
                    arrives = self.nodes[node].receiver.convert(nic, arrives, grant.bound.beats);
                }
                if !is_get {
                    self.journal.mark(operation, part, Stage::Dispatch, None, arrives);
                }
                let class = grant.bound.credit_class.into();
                self.journal.frame(arrives, Wire::OutOf(node as u8), || bytes.clone());
                self.nodes[node].receiver.landing.push(now, (class, packet));
                schedule.at(arrives, Step::Arrived.of(node as u8));
            } else {
                // The bytes have a header of 16 B; on the wires its length is that of the
                // configuration.
                let longer = (self.config.nic.packet_header.count() - 16) as usize;
                let parcel = (&grant, bytes.as_slice(), longer);
                let left = self.controllers.depart(schedule, &self.config, controller, parcel);
                if let Some((far, arrives)) = left {
                    self.came_by_link(packet, (controller, far), arrives);
                }
            }
        }
        self.grants = grants;
    }

    /// Records that a packet arrives at the next controller at `arrives`.
    fn came_by_link(
        &mut self,
        packet: super::PacketHandle,
        (near, far): (usize, usize),
        arrives: Time,
    ) {
        let Packet { operation, part, is_get, ref bytes } = self.packets[packet];
        let (stage, part) =
            if is_get { (Stage::GetTrip, None) } else { (Stage::ControllerLink, Some(part)) };
        let wire = Wire::Between(near as u8, far as u8);
        self.journal.frame(arrives, wire, || bytes.clone());
        self.journal.mark(operation, part, stage, None, arrives);
    }

    /// Tells a program what has happened since the last call.
    #[inline]
    fn tell(&mut self, schedule: &mut Schedule<NicEvent>, program: &mut impl Program) {
        // Usually there is nothing to tell.
        if self.woken.is_some() || !self.notices.is_empty() || !self.io.ended.is_empty() {
            self.tell_all(schedule, program);
        }
    }

    #[inline(never)]
    fn tell_all(&mut self, schedule: &mut Schedule<NicEvent>, program: &mut impl Program) {
        loop {
            if let Some(token) = self.woken.take() {
                program.woken(token, &mut HostApi { hardware: self, schedule });
            } else if let Some(notice) = self.notices.pop_front() {
                program.notified(&notice, &mut HostApi { hardware: self, schedule });
                self.operations.told(notice.operation);
            } else if let Some(access) = self.io.ended.pop_front() {
                program.accessed(access, &mut HostApi { hardware: self, schedule });
            } else {
                return;
            }
        }
    }
}

impl Model for Hardware {
    type Event = NicEvent;

    fn handle(&mut self, event: NicEvent, schedule: &mut Schedule<NicEvent>) {
        if self.signals.is_some() && schedule.now() > self.looked {
            // The previous moment is over, and its state holds until now.
            self.look(self.looked);
            self.looked = schedule.now();
        }
        if let NicEvent::Node { node, step, index } = event {
            self.at(schedule, node.into(), |node, cx| node.step(cx, step, index));
        } else {
            self.handle_between(event, schedule);
        }
    }

    fn is_idle(&self) -> bool {
        self.nodes.iter().all(Node::is_idle) && self.io.is_idle()
    }

    fn waits(&self, waits: &mut Waits) {
        for (at, node) in self.nodes.iter().enumerate() {
            let packer = format!("packer of node {at}");
            let gets = format!("GETs for node {at}");
            let commands = format!("commands of node {at}");
            let channel_name = |channel| self.controllers.channel_name(at, channel);
            if let Some(channel) = node.packer.waits_for {
                waits.add(&packer, channel_name(channel), "room for a packet");
            }
            if let Some(Extract::Get(get)) = &node.descriptors.held {
                let to = get.transfer.destination.cpu();
                let channel = self.controllers.channel_for(to.into(), true);
                waits.add(format!("GET of node {at}"), channel_name(channel), "room for a packet");
            }
            if node.descriptors.held_remote.is_some() {
                waits.add(&gets, &commands, "a place for a command");
            }
            if !node.data.commands.is_empty() {
                waits.add(&commands, &packer, "the packer");
            }
            let buffer = format!("receive buffer of node {at}");
            match node.receiver.blocked {
                Some(Blocked::RemoteGets) => {
                    waits.add(&buffer, &gets, "a place for a GET");
                }
                Some(Blocked::Software { function, queue_pair, lacks }) => {
                    let software = format!("software of queue pair {at}.{function}.{queue_pair}");
                    waits.add(&buffer, software, lacks);
                }
                None => {}
            }
        }
        self.controllers.waits(waits, |packet| {
            HeaderRepr::parse(&self.packets[packet].bytes).map_or("packet", |header| {
                match header.primitive {
                    Primitive::Get => "GET",
                    Primitive::Put => "PUT",
                    Primitive::Nap => "NAP",
                }
            })
        });
        self.io.waits(waits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Canary: a descriptor that vanishes from its queue is noticed.
    #[test]
    fn a_vanished_descriptor_is_noticed() {
        let mut machine = Machine::new(&Config::prototype(), 1).unwrap();
        assert!(machine.audit().is_ok());
        let (from, to) = (Endpoint::new(0, 0, 0).unwrap(), Endpoint::new(1, 0, 0).unwrap());
        let get = super::super::descriptor::RemoteGet { operation: 0, bytes: Vec::new(), from, to };
        machine.model.nodes[1].descriptors.remote.push(Time::ZERO, get);
        assert!(machine.audit().is_ok());
        machine.model.nodes[1].descriptors.remote.lose();
        assert!(machine.audit().is_err());
    }
}
