//! The whole system: processes, bus and interface, cycle by cycle while anything moves.
//!
//! A cycle comes after all events at the host until then: processes act, memory answers. It has two
//! parts. First, the interface takes what has arrived over the bus, in the order of the wires, up
//! to one word. Second, the buffer, the send engine and the prefetcher do their cycle. Cycles in
//! which nothing can happen are skipped.

use std::collections::VecDeque;

use super::buffer::DescriptorBuffer;
use super::bus::{Bus, Traffic};
use super::config::{Config, ConfigError, Submission};
use super::credits::CreditManager;
use super::host_queue::HostQueue;
use super::journal::{Journal, Step};
use super::prefetch::Prefetcher;
use super::process::{Load, Message, Process, State};
use super::word::{PortWord, Way, Word};
use crate::engine::{Ended, Event, Model, Random, Schedule, Server, Simulation, Standstill, Waits};
use crate::stats::Tally;
use crate::units::{Span, Time};

/// Bytes of a doorbell, and of the answer to a credit request.
const REGISTER_BYTES: u64 = 8;
/// Bytes of a status line: the count of freed entries of the host queue, and an offer.
const STATUS_BYTES: u64 = 32;

/// Processes, bus and interface in time.
pub type Machine = Simulation<Hardware>;

/// Processes, bus and interface.
pub struct Hardware {
    config: Config,
    cycle: Span,
    /// The earliest time of the next cycle.
    next_cycle: Time,
    /// Whether the next cycle is scheduled.
    awake: bool,
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
    engine_stopped: bool,
    send_engine: Server,
    /// Bytes of message data that the send engine reads for each descriptor before it sends.
    pub data_bytes: u64,
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

/// An event at the host, or a cycle of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NicEvent {
    /// A cycle of the interface.
    Cycle,
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

impl Event for NicEvent {
    fn trace(self) -> u64 {
        let of = |kind: u64, port: u8| kind | u64::from(port) << 8;
        match self {
            NicEvent::Cycle => 0,
            NicEvent::Acts(port) => of(1, port),
            NicEvent::Answered(port, words) => of(2, port) | u64::from(words) << 16,
            NicEvent::DescriptorRead(port, number, words) => {
                of(3, port) | u64::from(words) << 16 | u64::from(number) << 32
            }
            NicEvent::DataRead(port, number) => of(4, port) | u64::from(number) << 32,
            NicEvent::StatusWritten(port, freed, offer) => {
                of(5, port) | u64::from(freed) << 16 | u64::from(offer) << 32
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Incoming {
    Word(PortWord),
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
        let model = Hardware {
            cycle: nic.clock.period(),
            next_cycle: Time::ZERO,
            awake: false,
            queues: vec![HostQueue::default(); nic.ports],
            bus: Bus::new(&config.bus),
            arriving: VecDeque::new(),
            buffer: DescriptorBuffer::new(nic.organisation, nic.ports, nic.depth, nic.landing),
            peak: 0,
            credits: CreditManager::new(config),
            prefetcher: Prefetcher::new(nic.ports, nic.tags, nic.landing),
            status: vec![Status::default(); nic.ports],
            engine_stopped: false,
            send_engine: Server::default(),
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
        let mut schedule = Schedule::in_order(seed, model.cycle);
        for port in 0..nic.ports as u8 {
            schedule.at(Time::ZERO, NicEvent::Acts(port));
        }
        Ok(Simulation { model, schedule })
    }

    /// Stops the send engine, for analyses of capacity, or starts it again.
    pub fn stop_engine(&mut self, stopped: bool) {
        self.model.engine_stopped = stopped;
        let edge = self.model.config.nic.clock.edge(self.now());
        self.schedule.settle_at(edge.max(self.model.next_cycle), NicEvent::Cycle);
    }

    /// Runs all cycles that begin before `until`, or until nothing moves.
    ///
    /// # Errors
    /// [`Standstill`], if nothing can happen although messages are in flight.
    pub fn run_before(&mut self, until: Time) -> Result<Ended, Standstill> {
        let Some(last) = until.ps().checked_sub(1) else { return Ok(Ended::TimeUp) };
        let cycle = self.model.cycle.ps();
        let ended = self.run(Time::from_ps(last / cycle * cycle));
        self.standstill().map_or(Ok(ended), Err)
    }
}

impl Hardware {
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
        let sent: u64 = self.ports.iter().map(|port| port.sent).sum();
        let reads = self.config.nic.data_reads as u64;
        if self.data_bytes > 0 && self.data_reads as u64 + self.buffer.selected != reads + sent {
            return Err(format!("{} of {reads} data reads are free", self.data_reads));
        }
        self.credits.check()?;
        self.buffer.check()
    }

    /// Whether the buffer has no work in the next cycle.
    fn buffer_rests(&self) -> bool {
        self.buffer.is_empty()
            || self.engine_stopped && !self.buffer.has_input() && self.buffer.run.is_none()
    }

    /// Schedules the next cycle at or after `time`, unless one is scheduled.
    fn wake(&mut self, schedule: &mut Schedule<NicEvent>, time: Time) {
        if !self.awake {
            self.awake = true;
            let edge = self.config.nic.clock.edge(time);
            schedule.settle_at(edge.max(self.next_cycle), NicEvent::Cycle);
        }
    }

    /// Cycles of the interface until something else happens. An edge has one cycle.
    fn cycles(&mut self, schedule: &mut Schedule<NicEvent>) {
        while schedule.now() >= self.next_cycle && self.cycle(schedule) {
            if !schedule.settles_next(self.next_cycle, NicEvent::Cycle) {
                return;
            }
        }
    }

    /// One cycle of the interface; whether the next one follows at once.
    fn cycle(&mut self, schedule: &mut Schedule<NicEvent>) -> bool {
        let now = schedule.now();
        let input = self.incoming(schedule);
        let ready = !self.engine_stopped
            && self.send_engine.is_free(now)
            && (self.data_bytes == 0 || self.data_reads > 0);
        let selected = self.buffer.selected;
        let read = self.buffer.cycle(input, ready);
        self.peak = self.peak.max(self.buffer.inside(Way::Pio));
        // The engine is busy from the moment at which it selects a descriptor.
        if self.buffer.selected > selected {
            self.send_engine.reserve(now, self.cycle * self.config.nic.engine_cycles);
            self.data_reads -= usize::from(self.data_bytes > 0);
        }
        if let Some(read) = read {
            self.leaves(schedule, read);
        }
        let fetched = self.prefetch(schedule);
        self.next_cycle = now + self.cycle;
        let moves = read.is_some() || fetched || input.is_some() || !self.buffer_rests();
        if !moves {
            self.awake = false;
            self.wake_for_arrival(schedule);
        }
        moves
    }

    /// Schedules the cycle that takes the next packet from the wires.
    fn wake_for_arrival(&mut self, schedule: &mut Schedule<NicEvent>) {
        if let Some(&(arrives, _)) = self.arriving.front() {
            self.wake(schedule, arrives);
        }
    }

    /// Lets a process act: it submits what is due, requests credits, or waits.
    fn act(&mut self, schedule: &mut Schedule<NicEvent>, port: u8) {
        let at = schedule.now();
        let process = &mut self.processes[port as usize];
        let message = match process.due(at) {
            Ok(message) => message,
            Err(Some(later)) => return schedule.at(later, NicEvent::Acts(port)),
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
                self.write_descriptor(schedule, port, message)
            }
            Way::Pio => self.ask(port, at),
            Way::Dma => self.enqueue(schedule, port, message),
        }
    }

    /// Submits by PIO: the stores of the descriptor leave in bursts.
    fn write_descriptor(&mut self, schedule: &mut Schedule<NicEvent>, port: u8, message: Message) {
        let at = schedule.now();
        let Message { number, words, .. } = message;
        let process = &mut self.processes[port as usize];
        process.credits -= words;
        process.submit();
        self.submitted(port, at, message);
        let word_bytes = self.config.nic.word.count();
        let (all, mut sent, mut arrived, mut begins) = (u64::from(words) * word_bytes, 0, 0, at);
        while sent < all {
            // Write combining: the stores leave in few bursts (D-12).
            let bytes = self.config.bus.burst.count().min(all - sent);
            let passage = self.bus.send_down(at, Traffic::PioWrite, bytes);
            begins = passage.begins;
            sent += bytes;
            // A word is complete when its last byte has arrived.
            let complete = (sent / word_bytes) as u16;
            for index in arrived..complete {
                let word = Word::new(bits(port, number, index), index + 1 == words);
                let write = PortWord { port, way: Way::Pio, word };
                self.arriving.push_back((passage.arrives, Incoming::Word(write)));
            }
            arrived = complete;
        }
        self.journal.note(begins, port, number, Step::DescriptorWritten);
        // The processor goes on when its last combining buffer is free.
        schedule.at(begins.max(at + self.config.host.store), NicEvent::Acts(port));
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
    fn enqueue(&mut self, schedule: &mut Schedule<NicEvent>, port: u8, message: Message) {
        let at = schedule.now();
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
        schedule.at(next, NicEvent::Acts(port));
    }

    fn submitted(&mut self, port: u8, at: Time, message: Message) {
        self.posted[port as usize].push_back(message.posted);
        self.journal.note(at, port, message.number, Step::DataPrepared);
    }

    fn answered(&mut self, schedule: &mut Schedule<NicEvent>, port: u8, words: u16) {
        let process = &mut self.processes[port as usize];
        process.asked += schedule.now() - process.asking_since;
        process.credits += words;
        process.state = State::Scheduled;
        if words == 0 && self.config.host.submission == Submission::PioAndDma {
            // Without credits it uses DMA and does not wait (D-16).
            process.change(Way::Dma);
        }
        self.act(schedule, port);
    }

    fn descriptor_read(&mut self, port: u8, at: Time, number: u32, words: u16) {
        let bytes = u64::from(words) * self.config.nic.word.count();
        let passage = self.bus.send_down(at, Traffic::DescriptorRead, bytes);
        for index in 0..words {
            let word = Word::new(bits(port, number, index), index + 1 == words);
            let write = PortWord { port, way: Way::Dma, word };
            self.arriving.push_back((passage.arrives, Incoming::Word(write)));
        }
    }

    fn status_written(&mut self, schedule: &mut Schedule<NicEvent>, port: u8, news: (u16, u16)) {
        let (freed, offer) = news;
        self.status[port as usize].under_way = false;
        self.queues[port as usize].used -= usize::from(freed);
        let process = &mut self.processes[port as usize];
        process.offered += offer;
        if process.state == State::QueueFull {
            process.state = State::Scheduled;
            schedule.at(schedule.now(), NicEvent::Acts(port));
        }
        self.tell(schedule, port);
    }

    /// Takes what has arrived over the bus, up to and including one word.
    fn incoming(&mut self, schedule: &mut Schedule<NicEvent>) -> Option<PortWord> {
        let now = schedule.now();
        while let Some(&(at, incoming)) = self.arriving.front() {
            if at > now {
                return None;
            }
            self.arriving.pop_front();
            match incoming {
                Incoming::Word(write) => {
                    self.takes(now, write);
                    return Some(write);
                }
                Incoming::Doorbell(port, number) => {
                    self.buffer.ring(port);
                    self.prefetcher.ring(port);
                    self.journal.note(now, port, number, Step::PrefetchEntered);
                }
                Incoming::CreditRequest(port) => self.answer(schedule, port),
                Incoming::Data(port, number) => {
                    self.data_reads += 1;
                    self.ports[port as usize].sent += 1;
                    self.journal.note(now, port, number, Step::DataCame);
                    self.journal.note(now, port, number, Step::Sent);
                }
            }
        }
        None
    }

    fn takes(&mut self, now: Time, PortWord { port, way, word }: PortWord) {
        if !word.is_last() {
            return;
        }
        let number = number_of(word.bits());
        if way == Way::Dma {
            self.prefetcher.came();
            self.journal.note(now, port, number, Step::DescriptorCame);
        } else {
            self.journal.note(now, port, number, Step::LogicEntered);
        }
    }

    /// Answers a credit request.
    fn answer(&mut self, schedule: &mut Schedule<NicEvent>, port: u8) {
        let words = self.credits.request(port);
        let passage = self.bus.send_up(schedule.now(), Traffic::PioRead, REGISTER_BYTES);
        // The wires explain a part of the 600 ns; processor and root complex take the rest.
        let bus = &self.config.bus;
        let rest = bus.pio_read.saturating_sub(bus.one_way * 2);
        later(schedule, passage.arrives + rest, NicEvent::Answered(port, words));
    }

    /// Requests one descriptor from host memory; false if it cannot.
    fn prefetch(&mut self, schedule: &mut Schedule<NicEvent>) -> bool {
        let queues = &self.queues;
        let words = |port: u8| queues[port as usize].waiting.front().map_or(0, |next| next.words);
        let Some(port) = self.prefetcher.choose(words) else { return false };
        let message = self.queues[port as usize].waiting.pop_front().expect("it rang for one");
        let passage = self.bus.send_up(schedule.now(), Traffic::DescriptorRead, 0);
        self.journal.note(passage.begins, port, message.number, Step::DescriptorReadBegins);
        let at = passage.arrives + self.memory();
        later(schedule, at, NicEvent::DescriptorRead(port, message.number, message.words));
        true
    }

    /// The share of host memory in the latency of a read.
    fn memory(&self) -> Span {
        self.config.bus.dma_read.saturating_sub(self.config.bus.one_way * 2)
    }

    /// A word has left the buffer.
    fn leaves(&mut self, schedule: &mut Schedule<NicEvent>, read: PortWord) {
        let PortWord { port, way, word } = read;
        let now = schedule.now();
        let expected = self.ports[port as usize].left.iter().sum::<u64>() as u32;
        self.disordered += u64::from(word.bits() != bits(port, expected, self.leaving));
        self.leaving = if word.is_last() { 0 } else { self.leaving + 1 };
        match way {
            Way::Dma => self.prefetcher.freed(),
            Way::Pio => {
                self.credits.freed(port);
                while let Some(offered) = self.credits.offer(port) {
                    self.tell(schedule, offered);
                }
            }
        }
        if !word.is_last() {
            return;
        }
        let counts = &mut self.ports[port as usize];
        counts.left[way as usize] += 1;
        if let Some(posted) = self.posted[port as usize].pop_front() {
            let latency = (now - posted).ps();
            counts.latency.add(latency);
            self.latencies_ns.push((latency / 1000) as u32);
        }
        if way == Way::Dma {
            self.status[port as usize].freed += 1;
            self.tell(schedule, port);
        }
        let number = number_of(word.bits());
        if self.data_bytes > 0 {
            let passage = self.bus.send_up(now, Traffic::DataRead, 0);
            self.journal.note(passage.begins, port, number, Step::DataReadBegins);
            let at = passage.arrives + self.memory();
            later(schedule, at, NicEvent::DataRead(port, number));
        } else {
            self.ports[port as usize].sent += 1;
        }
    }

    /// Writes a port's status line, if it has news and no write is in flight. Processes that only
    /// use PIO have no status line: they poll.
    fn tell(&mut self, schedule: &mut Schedule<NicEvent>, port: u8) {
        let status = &mut self.status[port as usize];
        let offer = &mut self.credits.offers[port as usize];
        let news = status.freed > 0 || *offer > 0;
        if status.under_way || !news || self.config.host.submission == Submission::Pio {
            return;
        }
        status.under_way = true;
        let freed = std::mem::take(&mut status.freed);
        let offer = std::mem::take(offer);
        let passage = self.bus.send_up(schedule.now(), Traffic::Status, STATUS_BYTES);
        later(schedule, passage.arrives, NicEvent::StatusWritten(port, freed, offer));
    }
}

impl Model for Hardware {
    type Event = NicEvent;

    #[inline]
    fn handle(&mut self, event: NicEvent, schedule: &mut Schedule<NicEvent>) {
        let at = schedule.now();
        match event {
            NicEvent::Cycle => return self.cycles(schedule),
            NicEvent::Acts(port) => self.act(schedule, port),
            NicEvent::Answered(port, words) => self.answered(schedule, port, words),
            NicEvent::DescriptorRead(port, number, words) => {
                self.descriptor_read(port, at, number, words);
            }
            NicEvent::DataRead(port, number) => {
                let passage = self.bus.send_down(at, Traffic::DataRead, self.data_bytes);
                self.arriving.push_back((passage.arrives, Incoming::Data(port, number)));
            }
            NicEvent::StatusWritten(port, freed, offer) => {
                self.status_written(schedule, port, (freed, offer));
            }
        }
        self.wake_for_arrival(schedule);
    }

    fn is_idle(&self) -> bool {
        self.engine_stopped || self.left_over() == 0
    }

    fn waits(&self, waits: &mut Waits) {
        for (port, posted) in self.posted.iter().enumerate().filter(|(_, queue)| !queue.is_empty())
        {
            let messages = format!("{} messages of port {port}", posted.len());
            waits.add(messages, "the send engine", "their turn");
        }
    }
}

/// Schedules what follows from a cycle, which comes last in its moment: even over a bus without
/// delay it happens after that.
fn later(schedule: &mut Schedule<NicEvent>, at: Time, event: NicEvent) {
    schedule.at(at.max(schedule.now() + Span::from_ps(1)), event);
}

/// The contents of a word: distinct for each word of each message.
fn bits(port: u8, number: u32, index: u16) -> u64 {
    u64::from(port) << 56 | u64::from(number) << 16 | u64::from(index)
}

fn number_of(bits: u64) -> u32 {
    (bits >> 16) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    /// A port that has posted `messages` of 1 word until `ns`, each with 64 B of data.
    fn sending(messages: u32, ns: u64) -> Machine {
        let mut config = Config::paper();
        (config.nic.ports, config.nic.data_reads) = (1, 1);
        let load = Load { messages, words: 1, ..Load::SATURATED };
        let mut machine = Machine::new(&config, &[load], 1).unwrap();
        machine.model.data_bytes = 64;
        machine.model.processes[0].credits = machine.model.credits.request(0);
        machine.run_before(Time::ZERO + Span::from_ns(ns)).unwrap();
        machine
    }

    /// With one read of data at a time, a message waits for the data of the one before. Its
    /// request takes 250 ns, the memory 100, and the data 4 and 250: 604. The first word takes 2 ns
    /// and 250 to the interface, and 4 cycles through it.
    #[test]
    fn messages_wait_for_a_data_read() {
        crate::limit::limited(|| {
            let machine = sending(3, 10_000);
            machine.model.check().unwrap();
            assert_eq!(machine.model.latencies_ns, [260, 260 + 604, 260 + 2 * 604]);
            assert_eq!((machine.model.ports[0].sent, machine.model.data_reads), (3, 1));
            assert_eq!((machine.model.left_over(), machine.model.is_idle()), (0, true));
            let machine = sending(3, 900);
            machine.model.check().unwrap();
            assert_eq!((machine.model.ports[0].sent, machine.model.data_reads), (1, 0));
            assert_eq!((machine.model.left_over(), machine.model.is_idle()), (1, false));
            let mut waits = Waits::default();
            machine.model.waits(&mut waits);
            assert!(waits.all()[0].to_string().contains("1 messages of port 0"));
        });
    }

    /// An engine that needs 100 cycles for a descriptor, 200 ns, sends one each 200 ns. They are
    /// posted each 4 ns.
    #[test]
    fn the_engine_takes_its_cycles() {
        crate::limit::limited(|| {
            let mut config = Config::paper();
            (config.nic.ports, config.nic.engine_cycles) = (1, 100);
            let load = Load { messages: 3, words: 1, ..Load::SATURATED };
            let mut machine = Machine::new(&config, &[load], 1).unwrap();
            machine.model.processes[0].credits = machine.model.credits.request(0);
            machine.run_before(Time::NEVER).unwrap();
            assert_eq!(machine.model.latencies_ns, [260, 260 + 200 - 4, 260 + 400 - 8]);
            assert_eq!((machine.model.ports[0].sent, machine.model.data_reads), (3, 64));
        });
    }

    /// Doorbells of 8 B at 64 GB/s come after 250.125 and 250.25 ns, within one cycle. Their
    /// descriptors are asked for in that one and in the next.
    #[test]
    fn descriptors_are_asked_for_cycle_by_cycle() {
        crate::limit::limited(|| {
            let mut config = Config::paper();
            (config.nic.ports, config.host.submission) = (2, Submission::Dma);
            config.bus.rate = Rate::from_bytes_per_second(64_000_000_000);
            let load = Load { messages: 1, words: 1, ..Load::SATURATED };
            let mut machine = Machine::new(&config, &[load; 2], 1).unwrap();
            machine.model.journal.open();
            machine.run_before(Time::NEVER).unwrap();
            let begins = [0, 1].map(|port| {
                let steps = machine.model.journal.steps(port, 0);
                let asked = steps.iter().find(|it| it.step == Step::DescriptorReadBegins);
                asked.unwrap().at.ps()
            });
            assert_eq!(begins, [252_000, 254_000]);
        });
    }

    /// An interface whose engine stands still keeps the words and sleeps. It sends them when the
    /// engine goes on.
    #[test]
    fn a_stopped_engine_sleeps() {
        crate::limit::limited(|| {
            let mut config = Config::paper();
            config.nic.ports = 1;
            let load = Load { messages: 3, words: 1, ..Load::SATURATED };
            let mut machine = Machine::new(&config, &[load], 1).unwrap();
            machine.model.processes[0].credits = machine.model.credits.request(0);
            machine.stop_engine(true);
            let end = Time::ZERO + Span::from_ns(10_000);
            assert_eq!(machine.run_before(end).unwrap(), Ended::Quiet);
            let inside = machine.model.buffer.inside(Way::Pio);
            assert_eq!((machine.model.left_over(), inside), (3, 3));
            machine.stop_engine(false);
            assert_eq!(machine.run_before(end).unwrap(), Ended::Quiet);
            assert_eq!((machine.model.left_over(), machine.model.ports[0].sent), (0, 3));
        });
    }

    /// Canary: each law is broken once.
    #[test]
    fn broken_laws_are_found() {
        crate::limit::limited(|| {
            let found = |plant: fn(&mut Hardware)| {
                let mut machine = sending(100, 500);
                machine.model.check().unwrap();
                plant(&mut machine.model);
                machine.model.check().unwrap_err()
            };
            assert!(found(|it| it.disordered = 1).contains("out of order"));
            assert!(found(|it| it.data_reads += 1).contains("data reads are free"));
            assert!(found(|it| it.ports[0].sent += 1).contains("data reads are free"));
            // No word is granted of a buffer whose depth is what is free.
            assert!(
                found(|it| it.config.nic.depth = it.credits.free() as usize).contains("0 granted")
            );
            assert!(found(|it| it.buffer.overflows = 2).contains("2 words found no room"));
        });
    }

    /// Each event has a word of its own in the trace: kind, port, words and number stand apart. A
    /// word of a descriptor has its port, number and index.
    #[test]
    fn traces_and_words_are_packed() {
        for (event, word) in [
            (NicEvent::Cycle, 0),
            (NicEvent::Acts(7), 0x701),
            (NicEvent::Answered(7, 9), 0x9_0702),
            (NicEvent::DescriptorRead(7, 3, 9), 0x3_0009_0703),
            (NicEvent::DataRead(7, 3), 0x3_0000_0704),
            (NicEvent::StatusWritten(7, 9, 3), 0x3_0009_0705),
            // Every field is whole where the bits of all would meet.
            (NicEvent::Acts(0xff), 0xff01),
            (NicEvent::DescriptorRead(0xff, 0xffff_ffff, 0xffff), 0xffff_ffff_ffff_ff03),
        ] {
            assert_eq!(event.trace(), word, "{event:?}");
        }
        assert_eq!(bits(0x12, 0x3456_789a, 0xbcde), 0x1200_0000_0000_bcde | 0x3456_789a << 16);
        assert_eq!(number_of(bits(0x12, 0x3456_789a, 0xbcde)), 0x3456_789a);
    }
}
