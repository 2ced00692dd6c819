//! Runs a schedule of a message-passing program on the machine, as an MPI library would use the
//! interface (C-53; cHPP section 3.4).
//!
//! Ranks are the functions of the nodes: with n nodes, rank r is function r / n of node r mod n.
//! Messages use queue pair 0. Each carries a software tail of 16 bytes: kind, sender, tag, number,
//! length.
//!
//! - **Eager**, up to `eager` bytes: one NAP with inline data. The send ends when the processor has
//!   written it.
//! - **Rendezvous**, above: a NAP asks; when a receive matches, a NAP answers with an address; a
//!   PUT moves the data. The send ends with its send event, the receive with the receiver's event.
//!
//! Receives match messages as in MPI: in posting order, by source and tag, with -1 as wildcard.
//! Messages of one sender match in order. `calc` and the start of a send occupy the rank's
//! processor, one after the other in the order in which they become ready. Receiving costs no
//! processor time, as elsewhere in the model. The receiver checks all data.

use std::collections::VecDeque;
use std::fmt;

use bellwire_wire::descriptor::{DescriptorRepr, Work as Moves};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::{Chain, Entry};

use super::message::{ANSWERS, ASKS, DATA, EAGER, Message, content, matches};
use super::report::Limit;
use super::room::Room;
use crate::chpp::config::{Config, Start};
use crate::chpp::host::{Notice, RingKind};
use crate::chpp::machine::{Busy, HostApi, Machine, Program};
use crate::engine::Ended;
use crate::goal::{Schedule, Work};
use crate::units::{Span, Time};

/// Eager messages are NAPs.
pub const MOST_EAGER_BYTES: u64 = 2048;

/// A machine and the program that runs on it.
pub struct Execution {
    /// The machine. A caller can turn on its records before a run, and inspect it afterwards.
    pub machine: Machine,
    ranks: Ranks,
}

/// The results of a run.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Outcome {
    /// When the last operation ended.
    pub time: Span,
    /// When the last operation of each rank ended.
    pub rank_times: Vec<Span>,
    /// Eager messages.
    pub eager: u64,
    /// Messages by rendezvous.
    pub rendezvous: u64,
    /// Bytes of all messages.
    pub bytes: u64,
    /// The most messages that waited at any rank for a receive.
    pub most_unexpected: usize,
    /// The busiest resource.
    pub limit: Limit,
    /// Events of the core.
    pub events: u64,
    /// Trace hash; 16 hexadecimal digits in JSON.
    #[serde(serialize_with = "crate::stats::hexadecimal")]
    pub trace_hash: u64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "time         {}", self.time)?;
        let ranks: Vec<String> = self.rank_times.iter().take(16).map(Span::to_string).collect();
        let more = self.rank_times.len() - ranks.len();
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        writeln!(f, "ranks        {}{more}", ranks.join(", "))?;
        let Outcome { eager, rendezvous, bytes, most_unexpected, .. } = self;
        writeln!(f, "messages     {eager} eager, {rendezvous} rendezvous; {bytes} B, all as sent")?;
        writeln!(
            f,
            "unexpected   {most_unexpected} messages at most waited at a rank for a receive"
        )?;
        writeln!(f, "limit        {}", self.limit.why)?;
        writeln!(f, "trace        {:016x}, {} events", self.trace_hash, self.events)
    }
}

/// All ranks.
struct Ranks {
    config: Config,
    eager: u64,
    nodes: usize,
    ranks: Vec<RankState>,
    schedule: Schedule,
    /// By number, the rank of each operation of the machine, and the operation of the rank that
    /// ends with its send event.
    posted: Vec<(usize, Option<usize>)>,
    eager_sent: u64,
    rendezvous_sent: u64,
    bytes: u64,
    most_unexpected: usize,
    /// The first mismatch between received and sent data.
    wrong: Option<String>,
}

/// One rank.
#[derive(Default)]
struct RankState {
    operations: Vec<OperationState>,
    cpus: Vec<Cpu>,
    /// Receives that have begun and wait, in order.
    receives: VecDeque<usize>,
    /// Messages that have arrived and match no receive yet, in order.
    unexpected: VecDeque<Message>,
    /// Matched rendezvous that wait for memory: receive, message.
    roomless: VecDeque<(usize, Message)>,
    /// Memory for incoming rendezvous data, and the pieces in use.
    room: Option<Room>,
    /// By message number, the send operation.
    sends: Vec<usize>,
    /// Operations posted to the interface and not sent yet.
    outstanding: usize,
}

#[derive(Clone, Default)]
struct OperationState {
    /// Whether it ends with its send event, not when the processor has written it.
    ends_with_event: bool,
    /// Requirements that are not met yet.
    left: usize,
    begun: bool,
    over: Option<Time>,
    /// Operations that wait for this one's beginning, and for its end.
    on_begin: Vec<usize>,
    on_end: Vec<usize>,
}

/// A processor of a rank.
#[derive(Clone, Default)]
struct Cpu {
    busy: bool,
    ready: VecDeque<usize>,
}

impl Execution {
    /// Prepares a schedule on a machine. `eager` is the maximum size of an eager message in bytes.
    ///
    /// # Errors
    /// A sentence with the line of the schedule: more ranks than functions, or messages without
    /// room.
    pub fn new(
        config: &Config,
        schedule: Schedule,
        eager: u64,
        seed: u64,
    ) -> Result<Execution, String> {
        let mut machine = Machine::new(config, seed).map_err(|error| error.to_string())?;
        let (nodes, functions, count) =
            (config.nodes(), config.nic.functions, schedule.ranks.len());
        if count > nodes * functions {
            return Err(format!(
                "num_ranks is {count}, but there are {} places: {functions} functions of {nodes} nodes; give the machine more nodes (`crossbar.ports`, `links`) or functions (`nic.functions`)",
                nodes * functions
            ));
        }
        if eager > MOST_EAGER_BYTES {
            return Err(format!(
                "`eager` is {eager} B, but a NAP carries {MOST_EAGER_BYTES} B at most"
            ));
        }
        let calculated = schedule.operations().map(|(_, operation)| match operation.work {
            Work::Calculate { ns } => ns,
            _ => 0,
        });
        if calculated.fold(0, u64::saturating_add) > LONGEST_NS {
            return Err(format!(
                "all `calc` together take more than the {LONGEST_NS} ns (a day) that are the most"
            ));
        }
        // Half of a window is for outgoing data and rings, the other half for incoming data.
        let half = config.host.window.count() / 2;
        for (rank, operation) in schedule.operations() {
            let line = operation.line;
            match operation.work {
                Work::Send { bytes, .. } | Work::Receive { bytes, .. } if bytes > half / 2 => {
                    return Err(format!(
                        "line {line}: {bytes} B are more than the {} B that have room at a rank; give `host.window` more, or cut the message",
                        half / 2
                    ));
                }
                // Processors have small numbers; a schedule with larger ones is a mistake.
                _ if operation.cpu >= MOST_CPUS => {
                    return Err(format!(
                        "line {line}: cpu {} of rank {rank}, but {MOST_CPUS} is the most",
                        operation.cpu
                    ));
                }
                _ => {}
            }
        }
        let ranks = Ranks {
            config: config.clone(),
            eager,
            nodes,
            ranks: schedule.ranks.iter().map(|rank| RankState::new(rank, half)).collect(),
            schedule,
            posted: Vec::new(),
            eager_sent: 0,
            rendezvous_sent: 0,
            bytes: 0,
            most_unexpected: 0,
            wrong: None,
        };
        ranks.fill(&mut machine.api())?;
        Ok(Execution { machine, ranks })
    }

    /// Runs all ranks to their ends. Calls `done` from time to time with the share of ended
    /// operations.
    ///
    /// # Errors
    /// A sentence: the machine or the program deadlocked; it names the operations that wait for
    /// each other, with their lines.
    pub fn run(&mut self, mut done: impl FnMut(f64)) -> Result<Outcome, String> {
        let Execution { machine, ranks } = self;
        ranks.begin(&mut machine.api());
        let all = ranks.schedule.operations().count().max(1) as f64;
        loop {
            // The steps grow with the time: a program may compute for a day.
            let until = machine.now() + Span::from_ns(100_000) + (machine.now() - Time::ZERO) / 8;
            let ended = machine.run_program(ranks, until).map_err(|stopped| stopped.to_string())?;
            let over = ranks.ranks.iter().flat_map(|rank| &rank.operations);
            done(over.filter(|operation| operation.over.is_some()).count() as f64 / all);
            match ended {
                Ended::Quiet => break,
                Ended::TimeUp => {}
            }
        }
        done(1.0);
        machine.audit().map_err(|imbalance| imbalance.to_string())?;
        if let Some(wrong) = ranks.wrong.take() {
            return Err(wrong);
        }
        if let Some(stuck) = ranks.stuck() {
            return Err(stuck);
        }
        let rank_times: Vec<Span> = ranks
            .ranks
            .iter()
            .map(|rank| {
                let times = rank.operations.iter().filter_map(|operation| operation.over);
                times.max().unwrap_or(Time::ZERO) - Time::ZERO
            })
            .collect();
        let Busy { resource, share: utilisation } = machine.busiest().swap_remove(0);
        let why =
            format!("{resource} was busiest, in use {:.0} % of the time", utilisation * 100.0);
        Ok(Outcome {
            time: rank_times.iter().copied().max().unwrap_or(Span::ZERO),
            rank_times,
            eager: ranks.eager_sent,
            rendezvous: ranks.rendezvous_sent,
            bytes: ranks.bytes,
            most_unexpected: ranks.most_unexpected,
            limit: Limit { resource, utilisation, why },
            events: machine.events(),
            trace_hash: machine.trace_hash(),
        })
    }
}

/// A day.
const LONGEST_NS: u64 = 86_400_000_000_000;

const MOST_CPUS: u32 = 256;

impl RankState {
    fn new(rank: &crate::goal::Rank, room: u64) -> RankState {
        let mut operations = vec![OperationState::default(); rank.operations.len()];
        for (at, operation) in rank.operations.iter().enumerate() {
            operations[at].left = operation.requires.len() + operation.irequires.len();
            for &on in &operation.requires {
                operations[on].on_end.push(at);
            }
            for &on in &operation.irequires {
                operations[on].on_begin.push(at);
            }
        }
        let cpus = rank.operations.iter().map(|operation| operation.cpu as usize + 1).max();
        RankState {
            operations,
            cpus: vec![Cpu::default(); cpus.unwrap_or(0)],
            room: Some(Room::new(room)),
            ..RankState::default()
        }
    }
}

impl Ranks {
    /// Why the program does not end, if it does not.
    fn stuck(&self) -> Option<String> {
        let state = |operation: &OperationState| (operation.begun, operation.over.is_some());
        let states = self.ranks.iter().map(|rank| rank.operations.iter().map(state).collect());
        let messages = self.ranks.iter().flat_map(|rank| &rank.unexpected);
        let eager = messages.filter(|message| message.kind == EAGER);
        let unreceived = eager.filter_map(|message| {
            let rank = message.from as usize;
            let operation = self.ranks[rank].sends.get(message.number as usize)?;
            Some((rank, *operation))
        });
        super::blame::stuck(&self.schedule, &states.collect::<Vec<_>>(), unreceived)
    }

    fn place(&self, rank: usize) -> (usize, usize) {
        (rank % self.nodes, rank / self.nodes)
    }

    fn endpoint(&self, rank: usize) -> Endpoint {
        let (node, function) = self.place(rank);
        Endpoint::new(node as u8, function as u8, 0)
            .expect("ranks were counted against nodes and functions")
    }

    /// First address of a rank's outgoing data, and of its incoming data.
    fn memory(&self, rank: usize, api: &HostApi<'_>) -> (u64, u64) {
        let (node, function) = self.place(rank);
        let half = self.config.host.window.count() / 2;
        (api.free_memory(node, function), api.window(node, function) + half)
    }

    /// Fills each rank's memory with the data that it sends.
    fn fill(&self, api: &mut HostApi<'_>) -> Result<(), String> {
        for (rank, all) in self.schedule.ranks.iter().enumerate() {
            let sent = all.operations.iter().filter_map(|operation| match operation.work {
                Work::Send { bytes, .. } => Some(bytes),
                _ => None,
            });
            let (from, end) = self.memory(rank, api);
            let length = sent.max().unwrap_or(0) as usize;
            if from + length as u64 > end {
                return Err(format!(
                    "rings and slots leave no room for the {length} B that rank {rank} sends; give `host.window` more"
                ));
            }
            if let Some(memory) = api.memory_mut(from, length) {
                memory.iter_mut().enumerate().for_each(|(at, byte)| *byte = content(rank, at));
            }
        }
        Ok(())
    }

    fn begin(&mut self, api: &mut HostApi<'_>) {
        for rank in 0..self.ranks.len() {
            for operation in 0..self.ranks[rank].operations.len() {
                if self.ranks[rank].operations[operation].left == 0 {
                    self.ready(rank, operation, api);
                }
            }
        }
    }

    /// An operation's requirements are met; it may still wait for its processor.
    fn ready(&mut self, rank: usize, operation: usize, api: &mut HostApi<'_>) {
        let what = &self.schedule.ranks[rank].operations[operation];
        match what.work {
            Work::Receive { .. } => {
                self.begun(rank, operation, api);
                self.receive(rank, operation, api);
            }
            Work::Send { .. } | Work::Calculate { .. } => {
                let cpu = what.cpu as usize;
                self.ranks[rank].cpus[cpu].ready.push_back(operation);
                self.work(rank, cpu, api);
            }
        }
    }

    /// A processor starts its next operation.
    fn work(&mut self, rank: usize, cpu: usize, api: &mut HostApi<'_>) {
        let state = &mut self.ranks[rank].cpus[cpu];
        if state.busy {
            return;
        }
        let Some(operation) = state.ready.pop_front() else { return };
        state.busy = true;
        self.begun(rank, operation, api);
        match self.schedule.ranks[rank].operations[operation].work {
            Work::Calculate { ns } => {
                self.wake(api.now() + Span::from_ns(ns), rank, operation, api)
            }
            Work::Send { bytes, to, tag } => self.send(rank, operation, (bytes, to, tag), api),
            Work::Receive { .. } => {}
        }
    }

    /// Schedules the end of the processor's work on an operation at `time`.
    fn wake(&mut self, time: Time, rank: usize, operation: usize, api: &mut HostApi<'_>) {
        let before: usize = self.ranks[..rank].iter().map(|rank| rank.operations.len()).sum();
        api.wake(time, (before + operation) as u32);
    }

    fn send(
        &mut self,
        rank: usize,
        operation: usize,
        (bytes, to, tag): (u64, u32, u32),
        api: &mut HostApi<'_>,
    ) {
        let number = self.ranks[rank].sends.len() as u32;
        self.ranks[rank].sends.push(operation);
        let is_eager = bytes <= self.eager;
        let message = Message {
            kind: if is_eager { EAGER } else { ASKS },
            from: rank as u32,
            tag,
            number,
            bytes: bytes as u32,
        };
        self.bytes += bytes;
        self.eager_sent += u64::from(is_eager);
        self.rendezvous_sent += u64::from(!is_eager);
        // If a place for the descriptor is free, the processor starts at once and the end of its
        // work is known.
        let begins = self.ranks[rank].outstanding < self.config.nic.doorbell_depth
            && self.config.nic.submission == Start::Doorbell;
        let data: Vec<u8> = match is_eager {
            true => (0..bytes as usize).map(|at| content(rank, at)).collect(),
            false => Vec::new(),
        };
        let ends_with_event = is_eager && !begins;
        self.ranks[rank].operations[operation].ends_with_event = ends_with_event;
        let ends = ends_with_event.then_some(operation);
        let posted = self.post((rank, ends), to as usize, Moves::NapImmediate(&data), message, api);
        let started = api.operations()[posted as usize].started;
        let written = if begins { started + self.config.host.cpu_start } else { api.now() };
        self.wake(written, rank, operation, api);
    }

    /// Posts from one rank to another; its send event `ends` an operation of the rank, if any.
    /// Returns the machine's number of the operation.
    fn post(
        &mut self,
        (rank, ends): (usize, Option<usize>),
        to: usize,
        work: Moves<'_>,
        message: Message,
        api: &mut HostApi<'_>,
    ) -> u32 {
        let (node, function) = self.place(rank);
        let destination = self.endpoint(to);
        let descriptor = DescriptorRepr {
            destination,
            queue_pair: 0,
            traffic_class: 0,
            magic: api.key(destination),
            wants_event: true,
            work,
            tail: message.tail(),
        };
        let number = api
            .post(node, function, &descriptor)
            .expect("lengths were checked when the schedule was taken up");
        self.ranks[rank].outstanding += 1;
        debug_assert_eq!(number as usize, self.posted.len());
        self.posted.push((rank, ends));
        number
    }

    fn begun(&mut self, rank: usize, operation: usize, api: &mut HostApi<'_>) {
        let state = &mut self.ranks[rank].operations[operation];
        state.begun = true;
        let news = std::mem::take(&mut state.on_begin);
        self.met(rank, news, api);
    }

    fn over(&mut self, rank: usize, operation: usize, api: &mut HostApi<'_>) {
        let state = &mut self.ranks[rank].operations[operation];
        state.over = Some(api.now());
        let news = std::mem::take(&mut state.on_end);
        self.met(rank, news, api);
    }

    /// One requirement of each of these operations is met.
    fn met(&mut self, rank: usize, of: Vec<usize>, api: &mut HostApi<'_>) {
        for operation in of {
            let state = &mut self.ranks[rank].operations[operation];
            state.left -= 1;
            if state.left == 0 {
                self.ready(rank, operation, api);
            }
        }
    }

    /// A receive begins: it takes the first matching message, or waits.
    fn receive(&mut self, rank: usize, operation: usize, api: &mut HostApi<'_>) {
        let work = self.schedule.ranks[rank].operations[operation].work;
        let state = &mut self.ranks[rank];
        let waits = state.unexpected.iter().position(|message| matches(work, message));
        match waits.and_then(|at| state.unexpected.remove(at)) {
            Some(message) => self.matched(rank, operation, message, api),
            None => state.receives.push_back(operation),
        }
    }

    /// A message has arrived that a receive can match.
    fn came(&mut self, rank: usize, message: Message, api: &mut HostApi<'_>) {
        let operations = &self.schedule.ranks[rank].operations;
        let state = &mut self.ranks[rank];
        let waits = state.receives.iter().position(|&at| matches(operations[at].work, &message));
        match waits.and_then(|at| state.receives.remove(at)) {
            Some(operation) => self.matched(rank, operation, message, api),
            None => {
                state.unexpected.push_back(message);
                self.most_unexpected = self.most_unexpected.max(state.unexpected.len());
            }
        }
    }

    fn matched(&mut self, rank: usize, operation: usize, message: Message, api: &mut HostApi<'_>) {
        let Work::Receive { bytes, .. } = self.schedule.ranks[rank].operations[operation].work
        else {
            return;
        };
        if bytes < message.bytes.into() {
            let line = self.schedule.ranks[rank].operations[operation].line;
            self.wrong.get_or_insert(format!(
                "line {line}: rank {rank} receives {bytes} B, but rank {} sent {} B to it with tag {}",
                message.from, message.bytes, message.tag
            ));
        }
        if message.kind == EAGER {
            return self.over(rank, operation, api);
        }
        self.ranks[rank].roomless.push_back((operation, message));
        self.answer(rank, api);
    }

    /// Answers matched rendezvous as long as there is memory for their data.
    fn answer(&mut self, rank: usize, api: &mut HostApi<'_>) {
        while let Some(&(operation, message)) = self.ranks[rank].roomless.front() {
            let Some(at) =
                self.ranks[rank].room.as_mut().and_then(|room| room.take(message.bytes.into()))
            else {
                return;
            };
            self.ranks[rank].roomless.pop_front();
            let address = self.memory(rank, api).1 + at;
            if let Some(memory) = api.memory_mut(address, message.bytes as usize) {
                memory.fill(0);
            }
            // The answer carries the number of the question, and the receive in place of the tag.
            let answer =
                Message { kind: ANSWERS, from: rank as u32, tag: operation as u32, ..message };
            let (to, place) = (message.from as usize, address.to_le_bytes());
            self.post((rank, None), to, Moves::NapImmediate(&place), answer, api);
        }
    }

    /// The answer to a rendezvous has arrived: the data goes to its address.
    fn answered(&mut self, rank: usize, message: Message, address: u64, api: &mut HostApi<'_>) {
        let Message { from, tag, number, bytes, .. } = message;
        let Some(&operation) = self.ranks[rank].sends.get(number as usize) else { return };
        let (near, _) = self.memory(rank, api);
        let length = u64::from(bytes);
        let (sources, destinations) =
            ([Entry { address: near, length }], [Entry { address, length }]);
        let work = Moves::Put(Chain {
            sources: (&sources[..]).into(),
            destinations: (&destinations[..]).into(),
        });
        let data = Message { kind: DATA, from: rank as u32, tag, number, bytes };
        self.post((rank, Some(operation)), from as usize, work, data, api);
    }

    /// Checks that received data equals sent data.
    fn check(&mut self, rank: usize, message: Message, address: u64, api: &HostApi<'_>) {
        let sender = message.from as usize;
        let whole = api.memory(address, message.bytes as usize).is_some_and(|bytes| {
            bytes.iter().enumerate().all(|(at, &byte)| byte == content(sender, at))
        });
        if !whole {
            self.wrong.get_or_insert(format!(
                "message {} of rank {sender} came to rank {rank} with other data than was sent",
                message.number
            ));
        }
    }
}

impl Program for Ranks {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        if notice.ring == RingKind::Send {
            let (rank, ends) = self.posted[notice.operation as usize];
            self.ranks[rank].outstanding -= 1;
            if let Some(operation) = ends {
                self.over(rank, operation, api);
            }
            return;
        }
        let rank = notice.function * self.nodes + notice.node;
        let Some(message) = Message::read(&notice.event.tail) else { return };
        let address = notice.event.address;
        match message.kind {
            EAGER => {
                self.check(rank, message, address, api);
                self.came(rank, message, api);
            }
            ASKS => self.came(rank, message, api),
            ANSWERS => {
                let told = api.memory(address, 8).and_then(|bytes| bytes.try_into().ok());
                self.answered(rank, message, u64::from_le_bytes(told.unwrap_or_default()), api);
            }
            DATA => {
                // The event describes the last packet; the message ends where that packet ends.
                let (_, base) = self.memory(rank, api);
                let end = address + notice.event.length;
                let begins = end - u64::from(message.bytes);
                self.check(rank, message, begins, api);
                if let Some(room) = &mut self.ranks[rank].room {
                    room.free(begins - base);
                }
                self.over(rank, message.tag as usize, api);
                self.answer(rank, api);
            }
            _ => {}
        }
    }

    /// The processor has finished its work on an operation.
    fn woken(&mut self, token: u32, api: &mut HostApi<'_>) {
        let mut operation = token as usize;
        let mut rank = 0;
        while operation >= self.ranks[rank].operations.len() {
            operation -= self.ranks[rank].operations.len();
            rank += 1;
        }
        let what = &self.schedule.ranks[rank].operations[operation];
        let (work, cpu) = (what.work, what.cpu as usize);
        let ends = match work {
            Work::Calculate { .. } => true,
            Work::Send { bytes, .. } => {
                // An eager send that was held back ends with its event, a rendezvous with that of
                // its data.
                let ends_later = self.ranks[rank].operations[operation].ends_with_event;
                bytes <= self.eager && !ends_later
            }
            Work::Receive { .. } => false,
        };
        self.ranks[rank].cpus[cpu].busy = false;
        if ends {
            self.over(rank, operation, api);
        }
        self.work(rank, cpu, api);
    }
}
