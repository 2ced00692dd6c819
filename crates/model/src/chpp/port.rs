//! The PCIe port of an interface and the host behind it (C-35, C-36, C-55): links in both
//! directions, credits, tags, reads in flight, and host memory.
//!
//! Ports: [`Port::read`] requests bytes of host memory and answers with [`Incoming::Completion`]s.
//! [`Port::write`] writes bytes into it. [`Port::doorbell`] and [`Port::window_write`] carry a
//! processor's stores into the window. Every incoming packet occupies the internal bus for its
//! header, its data and `engine_cycles` cycles; this causes the paper's 80 % (5.1).

use super::Context;
use super::config::Config;
use super::host::RingKind;
use super::journal::{Cause, Stage};
use super::memory::HostMemory;
use super::node::Step;
use super::pcie::{
    COMPLETION_BYTES, Credits, Link, Passage, REQUEST_BYTES, Run, cut_completions, dword_bytes,
};
use super::record::frames::{self, Wire};
use super::tags::{Tag, TagAllocator};
use crate::engine::Random;
use crate::engine::{Server, Service};
use crate::stats::{Queue, Tally, Watched};
use crate::units::Time;

/// The purpose of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The descriptor of the job with this number.
    Descriptor { job: u64 },
    /// The data read with this number.
    Data { read: u64 },
    /// NAP slot addresses.
    Slots { function: usize, queue_pair: usize },
}

/// Where the journal books a read or write.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    pub operation: u32,
    /// Its part, if it concerns only one part.
    pub part: Option<u32>,
    /// The stage of the requesting module.
    pub module: Stage,
    /// The stage of the round trip to memory.
    pub memory: Stage,
}

/// A read in flight.
struct Read {
    run: Run,
    purpose: Purpose,
    note: Option<Note>,
    asked: Time,
    bytes: Vec<u8>,
    received: usize,
}

/// A processor's store into the window other than a doorbell.
#[derive(Clone, Copy, Debug)]
pub enum WindowWrite {
    /// Count of events of a ring that software has consumed since the beginning (C-16).
    Consumed { function: usize, queue_pair: usize, ring: RingKind, count: u64 },
    /// Count of slot addresses that software has listed since the beginning (C-20).
    SlotsPosted { function: usize, queue_pair: usize, count: u64 },
}

/// What the port passes to the blocks of the interface.
#[derive(Clone, Copy, Debug)]
pub enum Incoming {
    /// A store into the window.
    Window(WindowWrite),
    /// Some bytes of a read.
    Completion { tag: Tag, length: usize },
}

/// A write in flight to host memory.
pub struct PendingWrite {
    /// Global address of the first byte.
    pub address: u64,
    pub bytes: Vec<u8>,
    pub meaning: Written,
}

/// What becomes visible in host memory.
#[derive(Clone, Copy, Debug)]
pub enum Written {
    /// Data of a part of an operation.
    Data { operation: u32, part: u32, length: u64 },
    /// A record of an event ring.
    Event { function: usize, queue_pair: usize, ring: RingKind, operation: u32, part: u32 },
}

/// A completed read.
pub struct Answer {
    pub purpose: Purpose,
    /// Address of the first byte.
    pub address: u64,
    pub bytes: Vec<u8>,
}

/// Links, credits, tags and memory of one node.
pub struct Port {
    node: u8,
    /// Interface to host.
    pub up: Link,
    /// Host to interface.
    pub down: Link,
    /// Credits for writes.
    pub posted: Credits,
    /// Credits for reads.
    pub non_posted: Credits,
    pub memory: HostMemory,
    pub tags: TagAllocator,
    reads: Vec<Option<Read>>,
    /// The internal bus, busy with incoming packets.
    pub bus: Server,
    /// Packets from the host, in the order of the wires.
    pub incoming: Queue<Incoming>,
    writes: Queue<PendingWrite>,
    spare: Vec<Vec<u8>>,
    /// Time from taking a tag to the last completion, in picoseconds: the t of Eq. 2.
    pub round_trip: Tally,
    /// Reads for descriptors, data and slot addresses.
    pub reads_sent: [u64; 3],
}

impl Port {
    /// An idle port.
    pub fn new(config: &Config, node: usize, random: &mut Random) -> Port {
        let (pcie, host) = (&config.pcie, &config.host);
        let memory_bytes = host.window.count() * config.nic.functions as u64;
        Port {
            node: node as u8,
            up: Link::new(pcie),
            down: Link::new(pcie),
            posted: Credits::new(pcie.posted_headers, pcie.posted_data),
            non_posted: Credits::new(pcie.non_posted_headers, 0),
            memory: HostMemory::new(node, memory_bytes, host, random.fork(node as u64)),
            tags: TagAllocator::new(config.nic.tags),
            reads: (0..config.nic.tags).map(|_| None).collect(),
            bus: Server::default(),
            incoming: Queue::default(),
            writes: Queue::default(),
            spare: Vec::new(),
            round_trip: Tally::default(),
            reads_sent: [0; 3],
        }
    }

    /// Requests a run of bytes within one page, now; false if no tag is free.
    pub fn read(
        &mut self,
        cx: &mut Context,
        run: Run,
        purpose: Purpose,
        note: Option<Note>,
    ) -> bool {
        let now = cx.schedule.now();
        let Some(tag) = self.tags.take(now) else { return false };
        let credited = self.non_posted.earliest(now, 0);
        let passage = self.up.transmit(credited, REQUEST_BYTES);
        let access = self.memory.serve_read(passage.arrives, run.length);
        self.non_posted.occupy(access.begins + cx.config.pcie.latency, 0);
        cx.journal.frame(passage.begins, Wire::Up(self.node), || {
            frames::read_request(self.node, tag.index() as u8, run.address, run.length)
        });
        if let Some(Note { operation, part, module, memory }) = note
            && cx.journal.is_open()
        {
            cx.journal.mark(operation, part, module, Some(Cause::Credit), credited);
            cx.journal.mark(operation, part, module, Some(Cause::Link), passage.begins);
            cx.journal.mark(operation, part, memory, None, passage.arrives);
            cx.journal.mark(operation, part, memory, Some(Cause::Memory), access.begins);
            cx.journal.mark(operation, part, memory, None, access.ends);
        }
        self.reads_sent[match purpose {
            Purpose::Descriptor { .. } => 0,
            Purpose::Data { .. } => 1,
            Purpose::Slots { .. } => 2,
        }] += 1;
        let bytes = self.spare.pop().unwrap_or_default();
        self.reads[tag.index()] = Some(Read { run, purpose, note, asked: now, bytes, received: 0 });
        cx.schedule.at(access.ends, Step::ReadReady.about(self.node, tag.index() as u8));
        true
    }

    /// The memory has the data of a read: sends its completions.
    pub fn ready(&mut self, cx: &mut Context, tag: Tag) {
        let now = cx.schedule.now();
        let Some(read) = &mut self.reads[tag.index()] else { return };
        let run = read.run;
        read.bytes.clear();
        // Addresses outside memory read as ones, as on a real bus; blocks check windows before they
        // read.
        match self.memory.slice(run.address, run.length as usize) {
            Some(bytes) => read.bytes.extend_from_slice(bytes),
            None => read.bytes.resize(run.length as usize, 0xff),
        }
        let note = read.note;
        let pcie = &cx.config.pcie;
        for completion in cut_completions(
            run.address,
            run.length,
            pcie.completion_boundary.count(),
            pcie.max_payload.count(),
        ) {
            let data = dword_bytes(completion);
            let passage = self.down.transmit(now, COMPLETION_BYTES + data);
            let from = (completion.address - run.address) as usize;
            cx.journal.frame(passage.begins, Wire::Down(self.node), || {
                let data = &read.bytes[from..from + completion.length as usize];
                let left = run.length - from as u64;
                frames::completion(self.node, tag.index() as u8, completion.address, left, data)
            });
            let arrives = cx.config.nic.edge(passage.arrives);
            let Service { begins, ends } =
                self.bus.reserve(arrives, cx.config.nic.packet_time(data));
            if let Some(Note { operation, part, memory, .. }) = note
                && cx.journal.is_open()
            {
                cx.journal.mark(operation, part, memory, Some(Cause::Link), passage.begins);
                cx.journal.mark(operation, part, memory, None, arrives);
                cx.journal.mark(operation, part, memory, Some(Cause::Arbiter), begins);
                cx.journal.mark(operation, part, memory, None, ends);
            }
            self.incoming
                .push(now, Incoming::Completion { tag, length: completion.length as usize });
            cx.schedule.at(ends, Step::Incoming.of(self.node));
        }
    }

    /// Sends a doorbell, or a word of a descriptor, to its place in the window of a function, now.
    /// Returns when the internal bus has taken it.
    pub fn doorbell(
        &mut self,
        cx: &mut Context,
        operation: u32,
        (function, place, word): (usize, u64, u64),
    ) -> Time {
        let (passage, Service { begins, ends }) = self.store(cx, (function, place, word));
        let arrives = cx.config.nic.edge(passage.arrives);
        let stage = Stage::DoorbellWrite;
        cx.journal.mark(operation, None, stage, Some(Cause::Link), passage.begins);
        cx.journal.mark(operation, None, stage, None, arrives);
        cx.journal.mark(operation, None, stage, Some(Cause::Arbiter), begins);
        cx.journal.mark(operation, None, stage, None, ends);
        ends
    }

    /// Sends a descriptor to the buffer of the interface in bursts of a cache line, now (D-12).
    /// Returns when the internal bus has taken it.
    pub fn burst(
        &mut self,
        cx: &mut Context,
        operation: u32,
        function: usize,
        descriptor: &[u8],
    ) -> Time {
        const LINE: usize = 64;
        let stage = Stage::DoorbellWrite;
        for (at, line) in descriptor.chunks(LINE).enumerate() {
            let bytes = line.len() as u64;
            let passage = self.down.transmit(cx.schedule.now(), REQUEST_BYTES + bytes);
            cx.journal.frame(passage.begins, Wire::Down(self.node), || {
                let place = 0x400 + (at * LINE) as u64;
                let address = frames::window_address(self.node, function, place);
                frames::write_request(self.node, address, line)
            });
            let arrives = cx.config.nic.edge(passage.arrives);
            let taken = self.bus.reserve(arrives, cx.config.nic.packet_time(bytes));
            if at == 0 {
                cx.journal.mark(operation, None, stage, Some(Cause::Link), passage.begins);
                cx.journal.mark(operation, None, stage, None, arrives);
                cx.journal.mark(operation, None, stage, Some(Cause::Arbiter), taken.begins);
            }
        }
        let ends = self.bus.free_at();
        cx.journal.mark(operation, None, stage, None, ends);
        ends
    }

    /// Sends another store of the processor to the window, now.
    pub fn window_write(&mut self, cx: &mut Context, write: WindowWrite) {
        let store = match write {
            WindowWrite::Consumed { function, queue_pair, ring, count } => {
                (function, 0x100 + 16 * queue_pair as u64 + 8 * ring as u64, count)
            }
            WindowWrite::SlotsPosted { function, queue_pair, count } => {
                (function, 0x200 + 8 * queue_pair as u64, count)
            }
        };
        let (_, Service { ends, .. }) = self.store(cx, store);
        self.incoming.push(cx.schedule.now(), Incoming::Window(write));
        cx.schedule.at(ends, Step::Incoming.of(self.node));
    }

    /// A store of eight bytes: over the wires, then over the internal bus.
    fn store(
        &mut self,
        cx: &mut Context,
        (function, place, word): (usize, u64, u64),
    ) -> (Passage, Service) {
        let passage = self.down.transmit(cx.schedule.now(), REQUEST_BYTES + 8);
        cx.journal.frame(passage.begins, Wire::Down(self.node), || {
            let address = frames::window_address(self.node, function, place);
            frames::write_request(self.node, address, &word.to_le_bytes())
        });
        let arrives = cx.config.nic.edge(passage.arrives);
        (passage, self.bus.reserve(arrives, cx.config.nic.packet_time(8)))
    }

    /// Counts a completion. With the last one, returns the read's bytes and frees its tag.
    pub fn completed(&mut self, now: Time, tag: Tag, length: usize) -> Option<Answer> {
        let place = self.reads.get_mut(tag.index())?;
        let read = place.as_mut()?;
        read.received += length;
        if read.received < read.bytes.len() {
            return None;
        }
        let read = place.take()?;
        self.round_trip.add((now - read.asked).ps());
        self.tags.release(tag, now).expect("a read holds its tag until it is answered");
        Some(Answer { purpose: read.purpose, address: read.run.address, bytes: read.bytes })
    }

    /// The next `length` bytes of an unfinished read, which have just arrived.
    pub fn partial(&self, tag: Tag, length: usize) -> Option<(Purpose, &[u8])> {
        let read = self.reads.get(tag.index())?.as_ref()?;
        Some((read.purpose, read.bytes.get(read.received..read.received + length)?))
    }

    /// Takes the bytes of an answer back for reuse.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < 64 {
            self.spare.push(bytes);
        }
    }

    /// An empty buffer for bytes to write.
    pub fn blank(&mut self) -> Vec<u8> {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.clear();
        bytes
    }

    /// Writes bytes within one page, at `at` or when wires and credits allow. Calls must come in
    /// order of `at`. Returns when the write starts to leave.
    pub fn write(&mut self, cx: &mut Context, at: Time, write: PendingWrite, note: Note) -> Time {
        let run = Run { address: write.address, length: write.bytes.len() as u64 };
        let data = dword_bytes(run);
        let units = data.div_ceil(16);
        let credited = self.posted.earliest(at, units);
        let passage = self.up.transmit(credited, REQUEST_BYTES + data);
        let access = self.memory.serve_write(passage.arrives, data);
        self.posted.occupy(access.begins + cx.config.pcie.latency, units);
        cx.journal.frame(passage.begins, Wire::Up(self.node), || {
            frames::write_request(self.node, write.address, &write.bytes)
        });
        if cx.journal.is_open() {
            let Note { operation, part, module, memory } = note;
            cx.journal.mark(operation, part, module, Some(Cause::Credit), credited);
            cx.journal.mark(operation, part, module, Some(Cause::Link), passage.begins);
            cx.journal.mark(operation, part, memory, None, passage.arrives);
            cx.journal.mark(operation, part, memory, Some(Cause::Memory), access.begins);
            cx.journal.mark(operation, part, memory, None, access.ends);
        }
        self.writes.push(cx.schedule.now(), write);
        cx.schedule.at(access.ends, Step::Visible.of(self.node));
        passage.begins
    }

    /// The oldest write becomes visible, now. Returns its meaning.
    pub fn visible(&mut self, now: Time) -> Option<Written> {
        let PendingWrite { address, bytes, meaning } = self.writes.pop(now)?;
        if let Some(target) = self.memory.slice_mut(address, bytes.len()) {
            target.copy_from_slice(&bytes);
        }
        self.recycle(bytes);
        Some(meaning)
    }

    /// Its queues, by name.
    pub fn queues(&self) -> [(&'static str, &dyn Watched); 2] {
        [("what comes over the internal bus", &self.incoming), ("writes to memory", &self.writes)]
    }

    /// Reads and writes in flight.
    pub fn outstanding(&self) -> usize {
        self.reads.iter().flatten().count() + self.writes.len() + self.incoming.len()
    }
}
