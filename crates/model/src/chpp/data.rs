//! Data read, data extract and data reorder (C-34, C-35; cHPP section 4.1, Fig. 11).
//!
//! Ports: commands come in from the descriptor extract module; reads go to the port; completions come back split and out of
//! order, and leave as one stream of bytes in the order of the source lists, for the packer.

use std::collections::VecDeque;

use super::Wires;
use super::config::Config;
use super::descriptor::Command;
use super::journal::{Cause, Stage};
use super::node::Step;
use super::pcie::{Run, first_request};
use super::port::{Note, Port, Purpose};
use crate::stats::{Queue, Watched};
use crate::units::{Span, Time};

/// A read whose data has its place in the stream.
struct Slot {
    expected: usize,
    /// Bytes that came while an earlier read was unanswered.
    early: Vec<u8>,
    /// Bytes that have gone into the stream.
    passed: usize,
}

/// Registers and queues of the three modules.
pub struct DataUnit {
    /// Commands in order; the packer is at the first.
    pub commands: Queue<Box<Command>>,
    /// Which of them the data read module is at.
    reading: usize,
    reorder_bytes: u64,
    /// Bytes asked for and not packed yet.
    in_use: u64,
    slots: Queue<Slot>,
    first_slot: u64,
    spare: Vec<Vec<u8>>,
    /// Commands that have been packed, for their memory.
    // In boxes, which is how they move from module to module.
    #[expect(clippy::vec_box)]
    spare_commands: Vec<Box<Command>>,
    stream: VecDeque<u8>,
    /// Bytes that have ever come into the stream, and when the packer may have them.
    available: VecDeque<(u64, Time)>,
    came: u64,
    gone: u64,
    interval: Span,
    next_at: Time,
    /// When a turn was asked for, if one was.
    turn_at: Option<Time>,
    blocked: Cause,
    /// Reads, bytes, and completions that came while an earlier read was unanswered.
    pub counters: DataCounters,
}

/// Stage counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataCounters {
    /// Reads sent.
    pub reads: u64,
    /// Completions taken.
    pub completions: u64,
    /// Of these, those that had to wait for an earlier read.
    pub early: u64,
    /// Bytes that left in order.
    pub bytes: u64,
}

impl DataUnit {
    /// Empty modules.
    pub fn new(config: &Config) -> DataUnit {
        DataUnit {
            commands: Queue::default(),
            reading: 0,
            reorder_bytes: config.nic.reorder.count(),
            in_use: 0,
            slots: Queue::default(),
            first_slot: 0,
            spare: Vec::new(),
            spare_commands: Vec::new(),
            stream: VecDeque::new(),
            available: VecDeque::new(),
            came: 0,
            gone: 0,
            // A request has a header of one cycle on the internal bus, and takes one cycle of the engine.
            interval: config.nic.packet_time(0),
            next_at: Time::ZERO,
            turn_at: None,
            blocked: Cause::Order,
            counters: DataCounters::default(),
        }
    }

    /// Sends as many reads as tags, room and pace allow.
    pub fn reads(&mut self, wires: &mut Wires, port: &mut Port) {
        let now = wires.now();
        while let Some(command) = self.commands.get_mut(self.reading) {
            let Some(source) = command.sources.get(command.cursor.0) else {
                self.reading += 1;
                continue;
            };
            if now < command.extracted + wires.config.nic.module() {
                return;
            }
            let (address, left) =
                (source.address + command.cursor.1, source.length - command.cursor.1);
            let run: Run = first_request(address, left, wires.config.pcie.read_request.count());
            if self.in_use + run.length > self.reorder_bytes {
                self.blocked = Cause::Room;
                return;
            }
            if now < self.next_at {
                self.blocked = Cause::Arbiter;
                if self.turn_at.is_none() {
                    self.turn_at = Some(self.next_at);
                    wires.schedule.at(self.next_at, Step::DataReads.of(command.source.cpu()));
                }
                return;
            }
            // The journal follows the read that completes a packet.
            let end = command.asked + run.length;
            let note = if wires.journal.is_open() {
                let payload = match command.moves.is_empty() {
                    true => u64::MAX,
                    false => wires.config.nic.put_payload.count(),
                };
                let completes = end == command.total || end.is_multiple_of(payload);
                completes.then(|| Note {
                    operation: command.operation,
                    part: Some(((end - 1) / payload) as u32),
                    module: Stage::DataRead,
                    memory: Stage::DataMemory,
                })
            } else {
                None
            };
            let purpose = Purpose::Data { read: self.first_slot + self.slots.len() as u64 };
            if let Some(note) = note {
                let begun = command.extracted + wires.config.nic.module();
                wires.journal.mark(note.operation, note.part, Stage::DataRead, None, begun);
                wires.journal.mark(
                    note.operation,
                    note.part,
                    Stage::DataRead,
                    Some(self.blocked),
                    now,
                );
            }
            if !port.read(wires, run, purpose, note) {
                self.blocked = Cause::Tag;
                return;
            }
            self.next_at = now + self.interval;
            self.in_use += run.length;
            self.counters.reads += 1;
            let early = self.spare.pop().unwrap_or_default();
            self.slots.push(now, Slot { expected: run.length as usize, early, passed: 0 });
            command.asked += run.length;
            command.cursor.1 += run.length;
            if command.cursor.1 == source.length {
                command.cursor = (command.cursor.0 + 1, 0);
            }
        }
        self.blocked = Cause::Order;
    }

    /// A turn that was scheduled has come.
    pub fn turn(&mut self, now: Time) {
        self.turn_at = self.turn_at.filter(|at| *at > now);
    }

    /// Bytes of a read have come; they leave in order, after the delay of two modules.
    pub fn completion(&mut self, read: u64, bytes: &[u8], now: Time, modules: Span) {
        self.counters.completions += 1;
        let Some(at) = read.checked_sub(self.first_slot).map(|at| at as usize) else { return };
        let Some(slot) = self.slots.get_mut(at) else { return };
        if at > 0 {
            slot.early.extend_from_slice(bytes);
            self.counters.early += 1;
            return;
        }
        self.stream.extend(bytes);
        slot.passed += bytes.len();
        let mut fresh = bytes.len();
        while self.slots.front().is_some_and(|slot| slot.passed == slot.expected) {
            let Slot { mut early, .. } = self.slots.pop(now).expect("there is a front");
            self.first_slot += 1;
            early.clear();
            self.spare.push(early);
            if let Some(next) = self.slots.front_mut() {
                self.stream.extend(&next.early);
                next.passed = next.early.len();
                fresh += next.passed;
            }
        }
        self.came += fresh as u64;
        self.counters.bytes += fresh as u64;
        self.available.push_back((self.came, now + modules));
    }

    /// When the next `bytes` are with the packer, if they have come at all.
    pub fn ready(&mut self, bytes: u64) -> Option<Time> {
        if (self.stream.len() as u64) < bytes {
            return None;
        }
        let needed = self.gone + bytes;
        while self.available.front().is_some_and(|&(came, _)| came < needed) {
            self.available.pop_front();
        }
        self.available.front().map(|&(_, time)| time)
    }

    /// Takes the next `bytes` out of the stream.
    pub fn take(&mut self, bytes: usize, into: &mut Vec<u8>) {
        let (front, back) = self.stream.as_slices();
        let first = bytes.min(front.len());
        into.extend_from_slice(&front[..first]);
        into.extend_from_slice(&back[..bytes - first]);
        self.stream.drain(..bytes);
        self.gone += bytes as u64;
        self.in_use -= bytes as u64;
    }

    /// The first command has been packed, now.
    pub fn finished(&mut self, now: Time) -> Option<Box<Command>> {
        self.reading = self.reading.saturating_sub(1);
        self.commands.pop(now)
    }

    /// Keeps a command that has been packed, for its memory.
    pub fn recycle(&mut self, command: Box<Command>) {
        self.spare_commands.push(command);
    }

    /// One of those that were kept.
    pub fn recycled(&mut self) -> Option<Box<Command>> {
        self.spare_commands.pop()
    }

    /// Bytes asked for and not packed yet.
    pub fn reorder_in_use(&self) -> u64 {
        self.in_use
    }

    /// Its queues, by name.
    pub fn queues(&self) -> [(&'static str, &dyn Watched); 2] {
        [("commands", &self.commands), ("data reads in order", &self.slots)]
    }

    /// Whether nothing is being read or waits.
    pub fn is_idle(&self) -> bool {
        self.commands.is_empty() && self.slots.is_empty() && self.stream.is_empty()
    }
}
