//! The NIC agent: a state machine that starts a step as soon as its resource is free (M-08, M-18;
//! paper 2.3, 3.2).
//!
//! Jobs queue per step. After a change, the machine runs at the end of that moment: it finds the
//! free units and the steps that wait for them. The units serve the steps round-robin. On LANai4
//! the processor locks the host DMA or the send DMA before it starts the engine. A try costs
//! instructions even if it fails. After a failure the step retries when the engine is unlocked.

use std::collections::VecDeque;

use bellwire_protocol::canary::planted;

use super::buffers::Buffers;
use super::bus::{Direction, Master};
use super::config::{Pipeline, Setup, Translation};
use super::descriptor::VI_DESCRIPTOR_BYTES;
use super::host::Action;
use super::journal::Use;
use super::machine::{Local, NicEvent};
use super::memory::{Cache, Registered};
use super::network::soon;
use super::pipeline::{Job, STEPS, Side, Step, UNITS, Unit};
use crate::engine::{Arbiter, Handle, Policy, Pool, Random};
use crate::stats::Occupancy;
use crate::units::Time;

/// Bytes of a status word, and of a completion queue record. Our choice.
const STATUS_BYTES: u32 = 8;
/// Bytes of a descriptor of an Ethernet controller.
const FRAME_DESCRIPTOR_BYTES: u32 = 16;

/// The purpose of a host DMA transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Data,
    Descriptor,
    Status,
    Record,
}

/// One transfer of the host DMA.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    direction: Direction,
    bytes: u32,
    effect: Effect,
    /// Whether the engine starts anew for it; otherwise a chain continues.
    starts: bool,
}

/// The current work of the host DMA.
#[derive(Clone, Debug)]
struct Transfers {
    job: Handle,
    step: Step,
    current: Transfer,
    left: VecDeque<Transfer>,
}

/// Counters of the agent, by resource (M-08).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCounts {
    /// Physical descriptors, or doorbells, taken.
    pub descriptors_taken: u64,
    /// Descriptors read from host memory by DMA (none with MyVIA, M-12).
    pub descriptors_read: u64,
    /// Host DMA transfers of data.
    pub data_transfers: u64,
    /// Starts of the host DMA: one per transfer, or one per chain.
    pub dma_starts: u64,
    /// Status words written (M-25).
    pub status_words: u64,
    /// Records written to completion queues (M-25).
    pub records: u64,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Messages dropped because no receive was posted.
    pub dropped: u64,
    /// Tries to lock an engine.
    pub lock_tries: u64,
    /// Tries that failed.
    pub lock_failures: u64,
    /// The peak number of jobs in the send pipeline.
    pub most_sending: usize,
}

/// The NIC with its firmware.
pub struct Agent {
    /// Its data buffers.
    pub buffers: Buffers,
    /// Its translation cache.
    pub cache: Cache,
    /// Its counters.
    pub counts: AgentCounts,
    pub(super) jobs: Pool<Job>,
    waiting: Vec<VecDeque<Handle>>,
    occupancies: Vec<Occupancy>,
    /// Steps that may not begin: their engine is locked, or serial firmware is busy with another
    /// packet.
    blocked: [bool; STEPS.len()],
    busy: [bool; UNITS],
    locks: [Option<Handle>; UNITS],
    began: [Time; UNITS],
    turns: [Arbiter; 2],
    transfers: Option<Transfers>,
    /// The next packet of a message with packets still to be made.
    cutting: Option<Job>,
    /// Serial firmware has not read the descriptor of its current packet yet.
    reading: bool,
    sending: usize,
    messages: usize,
    send_buffers: usize,
    receive_buffers: usize,
    /// The packet that waits at the NIC's input.
    knocking: Option<Handle>,
    next_vi: usize,
    serial: u64,
    awake: bool,
}

impl Agent {
    pub(super) fn new(setup: &Setup, random: &mut Random) -> Agent {
        let mut room = setup.data_bytes();
        if let Some(pages) = setup.table_pages() {
            room -= pages * u64::from(super::memory::ENTRY_BYTES);
        }
        Agent {
            buffers: Buffers::new(room as u32),
            cache: Cache::new(setup.system.cache_entries),
            counts: AgentCounts::default(),
            jobs: Pool::default(),
            waiting: vec![VecDeque::new(); STEPS.len()],
            occupancies: vec![Occupancy::default(); STEPS.len()],
            blocked: [false; STEPS.len()],
            busy: [false; UNITS],
            locks: [None; UNITS],
            began: [Time::ZERO; UNITS],
            turns: [(); 2].map(|()| Arbiter::new(Policy::RoundRobin, STEPS.len(), random)),
            transfers: None,
            cutting: None,
            reading: false,
            sending: 0,
            messages: 0,
            send_buffers: 0,
            receive_buffers: 0,
            knocking: None,
            next_vi: 0,
            serial: 0,
            awake: false,
        }
    }

    /// The queue of jobs for a step, over time.
    pub fn queue(&self, step: Step) -> &Occupancy {
        &self.occupancies[step as usize]
    }

    /// Jobs that are on the NIC.
    pub fn jobs(&self) -> usize {
        self.jobs.len()
    }

    pub(super) fn audit(&self, host: usize, now: Time) -> Result<(), String> {
        self.buffers.audit().map_err(|error| format!("host {host}: {error}"))?;
        if self.buffers.in_use() != self.send_buffers + self.receive_buffers {
            return Err(format!("host {host}: buffers in use do not add up"));
        }
        for step in STEPS {
            let inside = self.waiting[step as usize].iter().map(|&job| self.jobs[job].entered);
            let name = format!("host {host}, {step:?}");
            let audited = self.occupancies[step as usize].audit(&name, now, inside);
            audited.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn enqueue(&mut self, now: Time, job: Handle, step: Step) {
        self.jobs[job].entered = now;
        self.waiting[step as usize].push_back(job);
        self.occupancies[step as usize].enter(now);
    }

    fn dequeue(&mut self, now: Time, step: Step) -> Option<Handle> {
        let job = self.waiting[step as usize].pop_front()?;
        self.occupancies[step as usize].leave(self.jobs[job].entered, now);
        Some(job)
    }

    /// Steps of a unit that have jobs and may begin, one bit each.
    fn ready(&self, setup: &Setup, unit: Unit) -> u64 {
        // Canary: there are always enough buffers.
        let endless = planted("myvia-buffers-ignored");
        let room = self.send_buffers < setup.system.send_buffers || endless;
        STEPS
            .into_iter()
            .filter(|step| step.unit() == unit && !self.waiting[*step as usize].is_empty())
            .filter(|step| !self.blocked[*step as usize])
            .filter(|step| *step != Step::first_with_buffer(setup.system.pipeline) || room)
            .fold(0, |bits, step| bits | 1 << step as u64)
    }

    /// Serial firmware takes the next packet only after it has read the previous packet's
    /// descriptor.
    fn serialise(&mut self, pipeline: Pipeline, step: Step, dropped: bool) {
        if pipeline == Pipeline::Serial {
            match step {
                Step::Parse => self.reading = false,
                Step::Match => self.blocked[step as usize] = !dropped,
                Step::ReceiveParse => self.blocked[Step::Match as usize] = false,
                _ => {}
            }
        }
    }

    fn unlock(&mut self, unit: Unit) {
        self.locks[unit as usize] = None;
        for step in STEPS {
            if step.locks() == Some(unit) {
                self.blocked[step as usize] = false;
            }
        }
    }

    /// Frees the buffer of a job.
    pub(super) fn give_back(&mut self, job: Handle) {
        if let Some(buffer) = self.jobs[job].buffer.take() {
            self.buffers.release(buffer);
            match self.jobs[job].side {
                Side::Send => self.send_buffers -= 1,
                Side::Receive => self.receive_buffers -= 1,
            }
        }
    }

    /// Canary: a buffer is counted that nobody has.
    #[cfg(test)]
    pub(super) fn lose_a_buffer(&mut self) {
        self.receive_buffers += 1;
    }

    fn serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }
}

impl Step {
    /// The step that allocates the buffer of an outgoing packet (M-20).
    const fn first_with_buffer(pipeline: Pipeline) -> Step {
        match pipeline {
            Pipeline::Hardware => Step::Fetch,
            _ => Step::Prepare,
        }
    }
}

impl Local<'_> {
    /// Notes a change: the state machine will run.
    pub(super) fn wake(&mut self) {
        let agent = &mut self.node.agent;
        if !std::mem::replace(&mut agent.awake, true) {
            self.schedule.settle(NicEvent::Dispatch(self.host));
        }
    }

    /// Starts every step that can start.
    pub(super) fn dispatch(&mut self) {
        self.node.agent.awake = false;
        self.take_descriptors();
        self.accept();
        for unit in [Unit::Processor, Unit::HostDma] {
            let planted = unit == Unit::Processor && *self.double_use;
            let agent = &mut self.node.agent;
            let ready = agent.ready(self.setup, unit);
            if ready == 0 || agent.busy[unit as usize] && !planted {
                continue;
            }
            if agent.busy[unit as usize] {
                *self.double_use = false;
            }
            let Some(chosen) = agent.turns[unit as usize].grant(ready) else { continue };
            match unit {
                Unit::Processor => self.processor_begins(STEPS[chosen]),
                _ => self.dma_begins(STEPS[chosen]),
            }
        }
        self.transmit();
    }

    /// Turns posted sends into jobs, up to the limit of the pipeline.
    fn take_descriptors(&mut self) {
        let system = &self.setup.system;
        let (most, messages) = (system.messages.max(system.send_buffers), system.messages);
        let (pipeline, packet) = (system.pipeline, system.packet.count() as u32);
        loop {
            let agent = &mut self.node.agent;
            if agent.sending >= most || agent.reading {
                return;
            }
            let mut job = match agent.cutting.take() {
                Some(next) => next,
                None if agent.messages < messages => {
                    // Round-robin over VIs.
                    let vis = self.node.vis.len();
                    let has = |at: &usize| self.node.vis[*at].queues[0].small_len() > 0;
                    let found = (0..vis).map(|at| (agent.next_vi + at) % vis).find(has);
                    let Some(vi) = found else { return };
                    agent.next_vi = vi + 1;
                    let Some(descriptor) = self.node.vis[vi].queues[0].take() else { return };
                    agent.counts.descriptors_taken += 1;
                    agent.messages += 1;
                    let operation = self.node.operations[usize::from(descriptor.tag)].as_ref();
                    let message = operation.map_or(0, |operation| operation.completion.number);
                    let vi = vi as u16;
                    self.note_dry(vi);
                    self.ask_refill(vi, Side::Send);
                    Job {
                        side: Side::Send,
                        vi,
                        operation: Some(descriptor.tag),
                        message,
                        total: descriptor.length,
                        offset: 0,
                        length: 0,
                        last: false,
                        buffer: None,
                        extents: Vec::new(),
                        entered: self.schedule.now(),
                        serial: 0,
                    }
                }
                None => return,
            };
            job.length = packet.min(job.total - job.offset);
            let end = job.offset + job.length;
            job.last = end == job.total;
            let agent = &mut self.node.agent;
            if !job.last {
                agent.cutting = Some(Job { offset: end, ..job.clone() });
            }
            let operation =
                job.operation.and_then(|tag| self.node.operations[usize::from(tag)].as_ref());
            if let Some(operation) = operation {
                let largest = self.setup.system.largest_dma.count() as u32;
                let from = operation.offset + u64::from(job.offset);
                let memory = &self.node.memory;
                job.extents = memory.extents(operation.region, from, job.length, largest);
            }
            job.serial = agent.serial();
            let step = Step::first(pipeline, job.first());
            let job = agent.jobs.put(job);
            agent.sending += 1;
            agent.reading = pipeline == Pipeline::Serial;
            agent.counts.most_sending = agent.counts.most_sending.max(agent.sending);
            agent.enqueue(self.schedule.now(), job, step);
        }
    }

    /// Starts a step on the processor, or spends the instructions of a failed lock try.
    fn processor_begins(&mut self, step: Step) {
        let locked = self.setup.system.pipeline == Pipeline::Locked;
        let firmware = &self.setup.firmware;
        let agent = &mut self.node.agent;
        let now = self.schedule.now();
        let mut instructions = 0;
        let lock = step.locks().filter(|_| locked);
        if let Some(lock) = lock {
            agent.counts.lock_tries += 1;
            instructions += firmware.lock;
            if agent.locks[lock as usize].is_some() {
                agent.counts.lock_failures += 1;
                agent.busy[Unit::Processor as usize] = true;
                agent.began[Unit::Processor as usize] = now;
                let after = self.setup.instructions(firmware.lock);
                soon(self.schedule, after, NicEvent::TryFailed { host: self.host, step });
                return;
            }
        }
        if step == Step::Prepare {
            let job = agent.waiting[step as usize][0];
            let Some(buffer) = agent.buffers.allocate(agent.jobs[job].length) else { return };
            agent.jobs[job].buffer = Some(buffer);
            agent.send_buffers += 1;
        }
        let Some(job) = agent.dequeue(now, step) else { return };
        if let Some(lock) = lock {
            agent.locks[lock as usize] = Some(job);
        }
        agent.busy[Unit::Processor as usize] = true;
        agent.began[Unit::Processor as usize] = now;
        if step == Step::Match {
            self.find_receive(job);
        }
        let state = &self.node.agent.jobs[job];
        let pages = match (self.setup.system.translation, state.operation) {
            (Translation::User, _) | (_, None) => 0,
            _ => state.extents.len() as u64,
        };
        instructions += step.instructions(self.setup, state, pages);
        let after = self.setup.instructions(instructions);
        soon(self.schedule, after, NicEvent::StepEnds { host: self.host, job, step });
    }

    /// A lock try has failed. The step waits until the engine is unlocked, if it still is locked.
    pub(super) fn try_failed(&mut self, step: Step) {
        let agent = &mut self.node.agent;
        let locked = step.locks().is_some_and(|unit| agent.locks[unit as usize].is_some());
        agent.blocked[step as usize] = locked;
        agent.busy[Unit::Processor as usize] = false;
        let (from, to) = (agent.began[Unit::Processor as usize], self.schedule.now());
        self.journal.note(Use { host: self.host, unit: Unit::Processor, step, job: 0, from, to });
        self.wake();
    }

    /// Finds the receive descriptor for an incoming packet (M-09); the message's first packet finds
    /// it for all.
    fn find_receive(&mut self, job: Handle) {
        let largest = self.setup.system.largest_dma.count() as u32;
        let state = &mut self.node.agent.jobs[job];
        let vi = &mut self.node.vis[usize::from(state.vi)];
        let mut took = false;
        if state.first() {
            let descriptor = vi.queues[Side::Receive as usize].take();
            took = descriptor.is_some();
            vi.arriving = Some(descriptor.map(|descriptor| descriptor.tag));
            if took {
                self.node.agent.counts.descriptors_taken += 1;
            } else {
                self.node.agent.counts.dropped += 1;
            }
        }
        state.operation = vi.arriving.flatten();
        if state.last {
            vi.arriving = None;
        }
        if let Some(tag) = state.operation
            && let Some(operation) = self.node.operations[usize::from(tag)].as_ref()
            && state.total <= operation.completion.length
        {
            let from = operation.offset + u64::from(state.offset);
            state.extents = self.node.memory.extents(operation.region, from, state.length, largest);
        }
        let vi = state.vi;
        if took {
            self.ask_refill(vi, Side::Receive);
        }
    }

    /// Starts a step on the host DMA: queues its transfers.
    fn dma_begins(&mut self, step: Step) {
        let system = &self.setup.system;
        let agent = &mut self.node.agent;
        if step == Step::Fetch && system.pipeline == Pipeline::Hardware {
            let job = agent.waiting[step as usize][0];
            let Some(buffer) = agent.buffers.allocate(agent.jobs[job].length) else { return };
            agent.jobs[job].buffer = Some(buffer);
            agent.send_buffers += 1;
        }
        let Some(handle) = agent.dequeue(self.schedule.now(), step) else { return };
        let job = &agent.jobs[handle];
        let chained = matches!(system.pipeline, Pipeline::Chained | Pipeline::Hardware);
        let hardware = system.pipeline == Pipeline::Hardware;
        let mut left = VecDeque::new();
        let mut push = |direction, bytes, effect| {
            let starts = left.is_empty() || !chained;
            left.push_back(Transfer { direction, bytes, effect, starts });
        };
        let data = match step {
            Step::Fetch => Some(Direction::Read),
            Step::Deliver => Some(Direction::Write),
            _ => None,
        };
        if matches!(step, Step::Descriptor | Step::ReceiveDescriptor) {
            push(Direction::Read, VI_DESCRIPTOR_BYTES, Effect::Descriptor);
        }
        if hardware && step == Step::Fetch {
            push(Direction::Read, FRAME_DESCRIPTOR_BYTES, Effect::Descriptor);
        }
        if let Some(direction) = data {
            for extent in job.extents.iter().filter(|extent| extent.length > 0) {
                push(direction, extent.length, Effect::Data);
            }
        }
        if hardware && step == Step::Deliver {
            push(Direction::Write, FRAME_DESCRIPTOR_BYTES, Effect::Descriptor);
        }
        // On LANai9 the chain that moves the data of the last packet continues with the status word
        // (M-19).
        let reports = matches!(step, Step::Report | Step::ReceiveReport)
            || system.pipeline == Pipeline::Chained && data.is_some() && job.last;
        if reports {
            push(Direction::Write, STATUS_BYTES, Effect::Status);
            if system.completion_record {
                push(Direction::Write, STATUS_BYTES, Effect::Record);
            }
        }
        agent.busy[Unit::HostDma as usize] = true;
        agent.began[Unit::HostDma as usize] = self.schedule.now();
        match left.pop_front() {
            Some(current) => {
                agent.transfers = Some(Transfers { job: handle, step, current, left });
                self.dma_prepares();
            }
            None => {
                self.schedule.settle(NicEvent::StepEnds { host: self.host, job: handle, step });
            }
        }
    }

    /// Starts the engine for the current transfer, or continues the chain.
    fn dma_prepares(&mut self) {
        let agent = &mut self.node.agent;
        let Some(transfers) = &agent.transfers else { return };
        if transfers.current.starts {
            agent.counts.dma_starts += 1;
            soon(self.schedule, self.setup.nic.dma_start, NicEvent::DmaStarts(self.host));
        } else {
            self.dma_asks();
        }
    }

    /// The host DMA requests the bus.
    pub(super) fn dma_asks(&mut self) {
        if let Some(Transfers { current, .. }) = &self.node.agent.transfers {
            let grant = NicEvent::Grant(self.host);
            self.node.bus.ask(self.schedule, Master::Nic, current.direction, current.bytes, grant);
        }
    }

    /// A transfer of the host DMA has ended.
    pub(super) fn dma_moved(&mut self) {
        let record = self.setup.system.completion_record;
        let agent = &mut self.node.agent;
        let Some(transfers) = &mut agent.transfers else { return };
        let (job, step, effect) = (transfers.job, transfers.step, transfers.current.effect);
        let next = transfers.left.pop_front();
        if let Some(next) = next {
            transfers.current = next;
        } else {
            agent.transfers = None;
        }
        match effect {
            Effect::Data => agent.counts.data_transfers += 1,
            Effect::Descriptor => {
                let read = matches!(step, Step::Descriptor | Step::ReceiveDescriptor);
                agent.counts.descriptors_read += u64::from(read);
            }
            Effect::Status => agent.counts.status_words += 1,
            Effect::Record => agent.counts.records += 1,
        }
        // The program polls whatever is written last.
        let visible = if record { Effect::Record } else { Effect::Status };
        if effect == visible {
            let Job { side, operation, message, total, .. } = agent.jobs[job];
            if let Some(tag) = operation {
                if side == Side::Receive {
                    self.finish_receive(tag, message, total);
                }
                self.complete(tag);
            }
        }
        if next.is_some() {
            self.dma_prepares();
        } else {
            self.step_ends(job, step);
        }
    }

    /// Transmits a packet if the send DMA is free.
    fn transmit(&mut self) {
        let wire = &self.setup.wire;
        let agent = &mut self.node.agent;
        if agent.busy[Unit::SendDma as usize] {
            return;
        }
        let Some(handle) = agent.dequeue(self.schedule.now(), Step::Transmit) else { return };
        agent.busy[Unit::SendDma as usize] = true;
        agent.began[Unit::SendDma as usize] = self.schedule.now();
        agent.counts.packets_sent += 1;
        let job = &agent.jobs[handle];
        let Some((to, vi)) = self.node.vis[usize::from(job.vi)].peer else { return };
        let route = self.node.routes[usize::from(to)].as_deref().unwrap_or_default();
        let bytes = wire.header.count() as u32 + route.len() as u32 + job.length;
        let bytes = bytes.max(wire.least.count() as u32);
        let packet = Job {
            side: Side::Receive,
            vi,
            operation: None,
            buffer: None,
            extents: Vec::new(),
            ..job.clone()
        };
        self.network.send(self.schedule, (self.host, handle), route, bytes, packet);
    }

    /// A packet waits at the NIC's input.
    pub(super) fn knocks(&mut self, worm: Handle) {
        self.node.agent.knocking = Some(worm);
        self.accept();
    }

    /// Accepts the waiting packet if the receive DMA and a buffer are free. Otherwise the packet
    /// stays and holds its cables.
    fn accept(&mut self) {
        let agent = &self.node.agent;
        let room = agent.receive_buffers < self.setup.system.receive_buffers;
        let Some(worm) = agent.knocking.filter(|_| room && !agent.busy[Unit::ReceiveDma as usize])
        else {
            return;
        };
        let length = self.network.worm(worm).packet.length;
        let agent = &mut self.node.agent;
        let Some(buffer) = agent.buffers.allocate(length) else { return };
        agent.knocking = None;
        agent.receive_buffers += 1;
        agent.busy[Unit::ReceiveDma as usize] = true;
        agent.began[Unit::ReceiveDma as usize] = self.schedule.now();
        agent.counts.packets_received += 1;
        let (worm, flow) = self.network.accept(self.schedule, worm);
        let serial = agent.serial();
        let mut came = Job { buffer: Some(buffer), serial, ..worm.packet };
        if self.setup.system.pipeline == Pipeline::Hardware {
            // Into a kernel buffer.
            came.extents = vec![super::memory::Extent { address: 0, length }];
        }
        let handle = agent.jobs.put(came);
        let ends = NicEvent::StepEnds { host: worm.source, job: worm.job, step: Step::Transmit };
        soon(self.schedule, flow.leaves, ends);
        soon(self.schedule, flow.comes, NicEvent::Received { host: self.host, job: handle });
    }

    /// The host has written the translations that a job waited for.
    pub(super) fn translated(&mut self, job: Handle) {
        let agent = &mut self.node.agent;
        let step = match agent.jobs[job].side {
            Side::Send => Step::Parse,
            Side::Receive => Step::ReceiveParse,
        };
        agent.serialise(self.setup.system.pipeline, step, false);
        if let Some(next) = step.next(self.setup.system.pipeline, &agent.jobs[job]) {
            agent.enqueue(self.schedule.now(), job, next);
        }
        self.wake();
    }

    /// A step has ended: its unit is free, and the job continues.
    pub(super) fn step_ends(&mut self, job: Handle, step: Step) {
        let now = self.schedule.now();
        let pipeline = self.setup.system.pipeline;
        let agent = &mut self.node.agent;
        let unit = step.unit();
        agent.busy[unit as usize] = false;
        let (from, serial) = (agent.began[unit as usize], agent.jobs[job].serial);
        self.journal.note(Use { host: self.host, unit, step, job: serial, from, to: now });
        let dropped = step == Step::Match && agent.jobs[job].operation.is_none();
        if pipeline == Pipeline::Locked {
            let dropped = dropped.then_some(Unit::HostDma);
            step.unlocks().into_iter().chain(dropped).for_each(|unit| agent.unlock(unit));
        }
        // No later step needs the buffer.
        let ends = match pipeline {
            Pipeline::Locked => matches!(step, Step::Transmitted | Step::Delivered),
            // Frames stay in kernel buffers until they are copied.
            Pipeline::Hardware => step == Step::Transmit,
            _ => matches!(step, Step::Transmit | Step::Deliver),
        };
        if ends || dropped {
            agent.give_back(job);
        }
        if matches!(step, Step::Parse | Step::ReceiveParse) && self.look_up(job) {
            // The host must provide translations; the job waits for them, and so do the jobs behind
            // it.
            return self.wake();
        }
        let agent = &mut self.node.agent;
        agent.serialise(pipeline, step, dropped);
        if dropped {
            agent.jobs.take(job);
        } else if let Some(next) = step.next(pipeline, &agent.jobs[job]) {
            agent.enqueue(now, job, next);
        } else if pipeline == Pipeline::Hardware && agent.jobs[job].side == Side::Receive {
            self.frame_came(job);
        } else {
            let ended = agent.jobs.take(job);
            if ended.side == Side::Send {
                agent.sending -= 1;
                agent.messages -= usize::from(ended.last);
            }
        }
        self.wake();
    }

    /// Looks up the pages of a job in the NIC's cache; true if the host must provide some (B-14).
    fn look_up(&mut self, job: Handle) -> bool {
        if self.setup.system.translation != Translation::NicCache {
            return false;
        }
        let state = &self.node.agent.jobs[job];
        let operation =
            state.operation.and_then(|tag| self.node.operations[usize::from(tag)].as_ref());
        let Some(operation) = operation.filter(|_| state.length > 0) else { return false };
        let from = operation.offset + u64::from(state.offset);
        let pages = Registered::pages(operation.region, from, state.length);
        let cache = &mut self.node.agent.cache;
        let misses = pages.filter(|&page| !cache.look_up(page)).count() as u32;
        if misses > 0 {
            self.node.processor.counts.miss_interrupts += 1;
            self.interrupt(Action::Fill { job, entries: misses });
        }
        misses > 0
    }
}
