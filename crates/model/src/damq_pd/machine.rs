//! The whole system: processes, bus and interface, cycle by cycle while anything moves.
//!
//! A cycle has three parts. First, events at the host that are due happen: processes act, memory
//! answers. Second, the interface takes what has arrived over the bus, in the order of the wires,
//! up to one word. Third, the buffer, the send engine and the prefetcher do their cycle. Cycles in
//! which nothing can happen are skipped.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::buffer::DescriptorBuffer;
use super::bus::{Bus, Traffic};
use super::config::{Config, ConfigError, Submission};
use super::credits::CreditManager;
use super::host_queue::HostQueue;
use super::journal::{Journal, Step};
use super::prefetch::Prefetcher;
use super::process::{Load, Message, Process, State};
use super::word::{Read, Way, Word, Write};
use super::write_combining::bursts;
use crate::engine::Random;
use crate::stats::Tally;
use crate::units::{Span, Time};

/// Bytes of a doorbell, and of the answer to a credit request.
const REGISTER_BYTES: u64 = 8;
/// Bytes of a status line: the count of freed entries of the host queue, and an offer.
const STATUS_BYTES: u64 = 32;

/// Processes, bus and interface.
pub struct Machine {
    config: Config,
    now: Time,
    cycle: Span,
    /// Events at the host.
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    scheduled: u64,
    /// The processes.
    pub processes: Vec<Process>,
    /// Their send queues in host memory.
    pub queues: Vec<HostQueue>,
    /// The bus.
    pub bus: Bus,
    /// Packets on the way to the interface, in the order of the wires.
    arriving: VecDeque<(Time, Incoming)>,
    /// The descriptor buffer.
    pub buffer: DescriptorBuffer,
    /// Peak of the words in the buffer that came by PIO.
    pub peak: usize,
    /// The credit manager.
    pub credits: CreditManager,
    /// The prefetcher.
    pub prefetcher: Prefetcher,
    status: Vec<Status>,
    /// Stops the send engine, for analyses of capacity.
    pub engine_stopped: bool,
    engine_free_at: Time,
    /// Bytes of message data that the send engine reads for each descriptor.
    data_bytes: u64,
    data_reads: usize,
    /// Per port, the post times of submitted messages that have not left.
    posted: Vec<VecDeque<Time>>,
    /// Counters per port.
    pub ports: Vec<PortCounts>,
    /// Nanoseconds from post to leaving the buffer, in the order of leaving.
    pub latencies_ns: Vec<u32>,
    /// Steps of the messages, if the journal is open.
    pub journal: Journal,
    /// Messages that left out of order or in pieces. Always zero.
    pub disordered: u64,
    /// Words of the descriptor that is leaving.
    leaving: u16,
}

/// Counters of a port's messages.
#[derive(Clone, Debug, Default)]
pub struct PortCounts {
    /// Descriptors that left the buffer, by way.
    pub left: [u64; 2],
    /// Time from post to leaving, in picoseconds.
    pub latency: Tally,
    /// Messages whose data has been sent.
    pub sent: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A process acts.
    Acts(u8),
    /// The answer to a credit request: port, words.
    Answered(u8, u16),
    /// Host memory has read a descriptor: port, number, words.
    DescriptorRead(u8, u32, u16),
    /// Host memory has read a message's data: port, number.
    DataRead(u8, u32),
    /// A status line is written: port, freed entries, offer.
    StatusWritten(u8, u16, u16),
}

#[derive(Clone, Copy, Debug)]
enum Incoming {
    Word(Write),
    Doorbell(u8, u32),
    CreditRequest(u8),
    /// A message's data: port, number. Only its last packet ends it.
    Data(u8, u32),
}

/// What a port's status line does not tell the process yet.
#[derive(Clone, Copy, Debug, Default)]
struct Status {
    freed: u16,
    under_way: bool,
}

/// Nothing moves although messages are in flight. Never seen: it is a check of the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing moves at {at}, and {left_over} messages were submitted that did not leave")]
pub struct Stalled {
    at: Time,
    left_over: u64,
}

impl Machine {
    /// An idle machine whose processes run `loads`, one per port. Equal configuration, loads and
    /// seed give the same run.
    ///
    /// # Errors
    /// [`ConfigError`] for impossible parameters.
    ///
    /// # Panics
    /// If the number of loads is not the number of ports.
    pub fn new(config: &Config, loads: &[Load], seed: u64) -> Result<Machine, ConfigError> {
        config.check()?;
        let nic = &config.nic;
        assert_eq!(loads.len(), nic.ports, "a load for each port");
        let mut random = Random::new(seed);
        let processes: Vec<Process> = loads
            .iter()
            .zip(0..)
            .map(|(load, port)| Process::new(config, *load, random.fork(port)))
            .collect();
        let mut machine = Machine {
            now: Time::ZERO,
            cycle: nic.clock.period(),
            events: BinaryHeap::new(),
            scheduled: 0,
            queues: vec![HostQueue::default(); nic.ports],
            bus: Bus::new(&config.bus),
            arriving: VecDeque::new(),
            buffer: DescriptorBuffer::new(nic.organisation, nic.ports, nic.depth, nic.landing),
            peak: 0,
            credits: CreditManager::new(config),
            prefetcher: Prefetcher::new(nic.ports, nic.tags, nic.landing),
            status: vec![Status::default(); nic.ports],
            engine_stopped: false,
            engine_free_at: Time::ZERO,
            data_bytes: 0,
            data_reads: nic.data_reads,
            posted: vec![VecDeque::new(); nic.ports],
            ports: vec![PortCounts::default(); nic.ports],
            latencies_ns: Vec::new(),
            journal: Journal::default(),
            disordered: 0,
            leaving: 0,
            processes,
            config: config.clone(),
        };
        for port in 0..nic.ports as u8 {
            machine.schedule(Time::ZERO, Event::Acts(port));
        }
        Ok(machine)
    }

    /// Sets the bytes of data that the send engine reads for each descriptor before it sends.
    pub fn set_data_bytes(&mut self, bytes: u64) {
        self.data_bytes = bytes;
    }

    /// The current time: the beginning of a cycle.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Runs until `until`, or until no event is left.
    ///
    /// # Errors
    /// [`Stalled`], if nothing can happen although messages are in flight.
    pub fn run(&mut self, until: Time) -> Result<(), Stalled> {
        while self.now < until {
            self.host();
            let input = self.incoming();
            let ready = !self.engine_stopped
                && self.engine_free_at <= self.now
                && (self.data_bytes == 0 || self.data_reads > 0);
            let read = self.buffer.cycle(input, ready);
            self.peak = self.peak.max(self.buffer.inside(Way::Pio));
            // The engine is busy from the moment at which it selects a descriptor.
            if ready && self.buffer.output.run.is_some() {
                self.engine_free_at = self.now + self.cycle * self.config.nic.engine_cycles;
                self.data_reads -= usize::from(self.data_bytes > 0);
            }
            if let Some(read) = read {
                self.leaves(read);
            }
            let fetched = self.prefetch();
            self.now += self.cycle;
            let moves = read.is_some() || fetched || input.is_some() || !self.buffer_rests();
            if !moves && !self.skip(until) {
                break;
            }
        }
        let left_over = self.left_over();
        if self.now < until && left_over > 0 && !self.engine_stopped {
            return Err(Stalled { at: self.now, left_over });
        }
        Ok(())
    }

    /// Submitted messages that have not left.
    pub fn left_over(&self) -> u64 {
        self.posted.iter().map(|posted| posted.len() as u64).sum()
    }

    /// Checks all laws: order, conservation of words, addresses and credits.
    ///
    /// # Errors
    /// A sentence.
    pub fn check(&self) -> Result<(), String> {
        if self.disordered > 0 {
            return Err(format!("{} descriptors left out of order", self.disordered));
        }
        let granted = self.config.nic.depth as u32 - self.credits.free();
        if self.buffer.inside(Way::Pio) as u32 > granted {
            return Err(format!("more words are in the buffer than the {granted} granted"));
        }
        self.credits.check()?;
        self.buffer.check()
    }

    /// Whether the buffer has no work in the next cycle.
    fn buffer_rests(&self) -> bool {
        self.buffer.is_empty()
            || self.engine_stopped && !self.buffer.has_input() && self.buffer.output.run.is_none()
    }

    /// Skips to the cycle of the next event; false if there is none.
    fn skip(&mut self, until: Time) -> bool {
        let event = self.events.peek().map(|Reverse((at, ..))| *at);
        let arrival = self.arriving.front().map(|(at, _)| *at);
        let Some(next) = event.into_iter().chain(arrival).min() else { return false };
        self.now = self.now.max(next.edge(self.cycle)).min(until.edge(self.cycle));
        true
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at, self.scheduled, event)));
    }

    /// Handles all events at the host that are due.
    fn host(&mut self) {
        while let Some(Reverse((at, ..))) = self.events.peek() {
            if *at > self.now {
                break;
            }
            let Some(Reverse((at, _, event))) = self.events.pop() else { break };
            match event {
                Event::Acts(port) => self.act(port, at),
                Event::Answered(port, words) => self.answered(port, at, words),
                Event::DescriptorRead(port, number, words) => {
                    self.descriptor_read(port, at, number, words)
                }
                Event::DataRead(port, number) => {
                    let bytes = self.data_bytes;
                    let passage = self.bus.send_down(at, Traffic::DataRead, bytes);
                    self.arriving.push_back((passage.arrives, Incoming::Data(port, number)));
                }
                Event::StatusWritten(port, freed, offer) => {
                    self.status_written(port, at, freed, offer)
                }
            }
        }
    }

    /// Lets a process act: it submits what is due, requests credits, or waits.
    fn act(&mut self, port: u8, at: Time) {
        let process = &mut self.processes[port as usize];
        let message = match process.due(at) {
            Ok(message) => message,
            Err(Some(later)) => return self.schedule(later, Event::Acts(port)),
            Err(None) => {
                process.state = State::Done;
                return;
            }
        };
        if process.mode == Way::Dma && process.offered > 0 {
            // Back to PIO: tickets keep the descriptors in the host queue first (D-17, D-19).
            process.credits += std::mem::take(&mut process.offered);
            process.change(Way::Pio);
        }
        match process.mode {
            Way::Pio if process.credits >= message.words => {
                self.write_descriptor(port, at, message)
            }
            Way::Pio => self.ask(port, at),
            Way::Dma => self.enqueue(port, at, message),
        }
    }

    /// Submits by PIO: the stores of the descriptor leave in bursts.
    fn write_descriptor(&mut self, port: u8, at: Time, message: Message) {
        let Message { number, words, .. } = message;
        let process = &mut self.processes[port as usize];
        process.credits -= words;
        process.submit();
        self.submitted(port, at, message);
        let word_bytes = self.config.nic.word.count();
        let (mut sent, mut begins) = (0, at);
        let mut arrived = 0;
        for bytes in bursts(&self.config.bus, u64::from(words) * word_bytes) {
            let passage = self.bus.send_down(at, Traffic::PioWrite, bytes);
            begins = passage.begins;
            sent += bytes;
            // A word is complete when its last byte has arrived.
            let complete = (sent / word_bytes) as u16;
            for index in arrived..complete {
                let word = Word::new(bits(port, number, index), index + 1 == words);
                let write = Write { port, way: Way::Pio, word };
                self.arriving.push_back((passage.arrives, Incoming::Word(write)));
            }
            arrived = complete;
        }
        self.journal.note(begins, port, number, Step::DescriptorWritten);
        // The processor goes on when its last combining buffer is free.
        self.schedule(begins.max(at + self.config.host.store), Event::Acts(port));
    }

    /// Requests credits by a PIO read. The process submits nothing until the answer comes (D-15).
    fn ask(&mut self, port: u8, at: Time) {
        let process = &mut self.processes[port as usize];
        process.state = State::Asks;
        process.reads += 1;
        process.asking_since = at;
        let passage = self.bus.send_down(at, Traffic::PioRead, 0);
        self.arriving.push_back((passage.arrives, Incoming::CreditRequest(port)));
    }

    /// Submits by DMA: an entry in the host queue, and a doorbell.
    fn enqueue(&mut self, port: u8, at: Time, message: Message) {
        let process = &mut self.processes[port as usize];
        let queue = &mut self.queues[port as usize];
        if queue.used >= self.config.host.queue {
            process.state = State::QueueFull;
            return;
        }
        process.submit();
        queue.write(message);
        self.submitted(port, at, message);
        self.journal.note(at, port, message.number, Step::DescriptorPrepared);
        let passage = self.bus.send_down(at, Traffic::Doorbell, REGISTER_BYTES);
        self.journal.note(passage.begins, port, message.number, Step::DoorbellRung);
        self.arriving.push_back((passage.arrives, Incoming::Doorbell(port, message.number)));
        let next = passage.begins.max(at + self.config.host.store);
        self.schedule(next, Event::Acts(port));
    }

    fn submitted(&mut self, port: u8, at: Time, message: Message) {
        self.posted[port as usize].push_back(message.posted);
        self.journal.note(at, port, message.number, Step::DataPrepared);
    }

    fn answered(&mut self, port: u8, at: Time, words: u16) {
        let process = &mut self.processes[port as usize];
        process.asked += at - process.asking_since;
        process.credits += words;
        process.state = State::Scheduled;
        if words == 0 && self.config.host.submission == Submission::PioAndDma {
            // Without credits it uses DMA and does not wait (D-16).
            process.change(Way::Dma);
        }
        self.act(port, at);
    }

    fn descriptor_read(&mut self, port: u8, at: Time, number: u32, words: u16) {
        let bytes = u64::from(words) * self.config.nic.word.count();
        let passage = self.bus.send_down(at, Traffic::DescriptorRead, bytes);
        for index in 0..words {
            let word = Word::new(bits(port, number, index), index + 1 == words);
            let write = Write { port, way: Way::Dma, word };
            self.arriving.push_back((passage.arrives, Incoming::Word(write)));
        }
    }

    fn status_written(&mut self, port: u8, at: Time, freed: u16, offer: u16) {
        self.status[port as usize].under_way = false;
        self.queues[port as usize].used -= usize::from(freed);
        let process = &mut self.processes[port as usize];
        process.offered += offer;
        if process.state == State::QueueFull {
            process.state = State::Scheduled;
            self.schedule(at, Event::Acts(port));
        }
        self.tell(port, at);
    }

    /// Takes what has arrived over the bus, up to and including one word.
    fn incoming(&mut self) -> Option<Write> {
        while let Some(&(at, incoming)) = self.arriving.front() {
            if at > self.now {
                return None;
            }
            self.arriving.pop_front();
            match incoming {
                Incoming::Word(write) => {
                    self.takes(write);
                    return Some(write);
                }
                Incoming::Doorbell(port, number) => {
                    self.buffer.ring(port);
                    self.prefetcher.ring(port);
                    self.journal.note(self.now, port, number, Step::PrefetchEntered);
                }
                Incoming::CreditRequest(port) => self.answer(port),
                Incoming::Data(port, number) => {
                    self.data_reads += 1;
                    self.ports[port as usize].sent += 1;
                    self.journal.note(self.now, port, number, Step::DataCame);
                    self.journal.note(self.now, port, number, Step::Sent);
                }
            }
        }
        None
    }

    fn takes(&mut self, Write { port, way, word }: Write) {
        if !word.is_last() {
            return;
        }
        let number = number_of(word.bits());
        if way == Way::Dma {
            self.prefetcher.came();
            self.journal.note(self.now, port, number, Step::DescriptorCame);
        } else {
            self.journal.note(self.now, port, number, Step::LogicEntered);
        }
    }

    /// Answers a credit request.
    fn answer(&mut self, port: u8) {
        let words = self.credits.request(port);
        let passage = self.bus.send_up(self.now, Traffic::PioRead, REGISTER_BYTES);
        // The wires explain a part of the 600 ns; processor and root complex take the rest.
        let bus = &self.config.bus;
        let rest = bus.pio_read.saturating_sub(bus.one_way * 2);
        self.schedule(passage.arrives + rest, Event::Answered(port, words));
    }

    /// Requests one descriptor from host memory; false if it cannot.
    fn prefetch(&mut self) -> bool {
        let queues = &self.queues;
        let words = |port: u8| queues[port as usize].next().map_or(0, |message| message.words);
        let Some(port) = self.prefetcher.choose(words) else { return false };
        let message = self.queues[port as usize].fetch().expect("it rang for one");
        let passage = self.bus.send_up(self.now, Traffic::DescriptorRead, 0);
        self.journal.note(passage.begins, port, message.number, Step::DescriptorReadBegins);
        let at = passage.arrives + self.memory();
        self.schedule(at, Event::DescriptorRead(port, message.number, message.words));
        true
    }

    /// The share of host memory in the latency of a read.
    fn memory(&self) -> Span {
        self.config.bus.dma_read.saturating_sub(self.config.bus.one_way * 2)
    }

    /// A word has left the buffer.
    fn leaves(&mut self, Read { port, way, word }: Read) {
        let expected = self.ports[port as usize].left.iter().sum::<u64>() as u32;
        self.disordered += u64::from(word.bits() != bits(port, expected, self.leaving));
        self.leaving = if word.is_last() { 0 } else { self.leaving + 1 };
        match way {
            Way::Dma => self.prefetcher.freed(),
            Way::Pio => {
                self.credits.freed(port);
                while let Some(offered) = self.credits.offer(port) {
                    self.tell(offered, self.now);
                }
            }
        }
        if !word.is_last() {
            return;
        }
        let counts = &mut self.ports[port as usize];
        counts.left[way as usize] += 1;
        if let Some(posted) = self.posted[port as usize].pop_front() {
            let latency = (self.now - posted).ps();
            counts.latency.add(latency);
            self.latencies_ns.push((latency / 1000) as u32);
        }
        if way == Way::Dma {
            self.status[port as usize].freed += 1;
            self.tell(port, self.now);
        }
        let number = number_of(word.bits());
        if self.data_bytes > 0 {
            let passage = self.bus.send_up(self.now, Traffic::DataRead, 0);
            self.journal.note(passage.begins, port, number, Step::DataReadBegins);
            self.schedule(passage.arrives + self.memory(), Event::DataRead(port, number));
        } else {
            self.ports[port as usize].sent += 1;
        }
    }

    /// Writes a port's status line, if it has news and no write is in flight. Processes that only
    /// use PIO have no status line: they poll.
    fn tell(&mut self, port: u8, at: Time) {
        let status = &mut self.status[port as usize];
        let news = status.freed > 0 || self.credits.has_offer(port);
        if status.under_way || !news || self.config.host.submission == Submission::Pio {
            return;
        }
        status.under_way = true;
        let freed = std::mem::take(&mut status.freed);
        let offer = self.credits.take_offer(port);
        let passage = self.bus.send_up(at, Traffic::Status, STATUS_BYTES);
        self.schedule(passage.arrives, Event::StatusWritten(port, freed, offer));
    }
}

/// The contents of a word: distinct for each word of each message.
fn bits(port: u8, number: u32, index: u16) -> u64 {
    u64::from(port) << 56 | u64::from(number) << 16 | u64::from(index)
}

fn number_of(bits: u64) -> u32 {
    (bits >> 16) as u32
}
