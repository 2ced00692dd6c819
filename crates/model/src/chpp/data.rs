//! Data read, data extract and data reorder (C-34, C-35; cHPP section 4.1, Fig. 11).
//!
//! Ports: commands come from the descriptor extract module; reads go to the port; completions come
//! back split and out of order. They leave for the packer as one stream of bytes in the order of
//! the source lists.

use std::collections::VecDeque;

use super::Context;
use super::config::Config;
use super::descriptor::Command;
use super::journal::{Cause, Stage};
use super::node::Step;
use super::pcie::{Run, first_request};
use super::port::{Note, Port, Purpose};
use crate::engine::Server;
use crate::stats::{Queue, Watched};
use crate::units::{Span, Time};

/// A read, with the place of its data in the stream.
struct ReorderEntry {
    expected: usize,
    /// Bytes that arrived while an earlier read was incomplete.
    early: Vec<u8>,
    /// Bytes that have entered the stream.
    passed: usize,
}

/// Registers and queues of the three modules.
pub struct DataUnit {
    /// Commands in order; the packer works on the first.
    pub commands: Queue<Box<Command>>,
    /// The command that the data read module works on.
    reading: usize,
    reorder_bytes: u64,
    /// Bytes requested and not packed yet.
    pub in_use: u64,
    entries: Queue<ReorderEntry>,
    first_entry: u64,
    spare: Vec<Vec<u8>>,
    /// Packed commands, whose memory is reused.
    // Boxed, as they move from module to module.
    #[expect(clippy::vec_box)]
    pub spare_commands: Vec<Box<Command>>,
    stream: VecDeque<u8>,
    /// Count of bytes that have entered the stream so far, and when the packer may take them.
    available: VecDeque<(u64, Time)>,
    came: u64,
    gone: u64,
    interval: Span,
    /// The way of requests to the port.
    requests: Server,
    /// When a turn is scheduled, if one is.
    turn_at: Option<Time>,
    blocked: Cause,
    pub counters: DataCounters,
}

/// Stage counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataCounters {
    pub reads: u64,
    pub completions: u64,
    /// Completions that waited for an earlier read.
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
            entries: Queue::default(),
            first_entry: 0,
            spare: Vec::new(),
            spare_commands: Vec::new(),
            stream: VecDeque::new(),
            available: VecDeque::new(),
            came: 0,
            gone: 0,
            // A request occupies the internal bus for its header and for `engine_cycles`.
            interval: config.nic.packet_time(0),
            requests: Server::default(),
            turn_at: None,
            blocked: Cause::Order,
            counters: DataCounters::default(),
        }
    }

    /// Sends as many reads as tags, room and rate allow.
    pub fn reads(&mut self, cx: &mut Context, port: &mut Port) {
        let now = cx.now();
        while let Some(command) = self.commands.get_mut(self.reading) {
            let Some(source) = command.sources.get(command.cursor.0) else {
                self.reading += 1;
                continue;
            };
            if now < command.extracted + cx.config.nic.module() {
                return;
            }
            let (address, left) =
                (source.address + command.cursor.1, source.length - command.cursor.1);
            let run: Run = first_request(address, left, cx.config.pcie.read_request.count());
            if self.in_use + run.length > self.reorder_bytes {
                self.blocked = Cause::Room;
                return;
            }
            let free_at = self.requests.free_at();
            if now < free_at {
                self.blocked = Cause::Arbiter;
                if self.turn_at.is_none() {
                    self.turn_at = Some(free_at);
                    cx.schedule.at(free_at, Step::DataReads.of(command.transfer.source.cpu()));
                }
                return;
            }
            // The journal follows the read that completes a packet.
            let end = command.asked + run.length;
            let note = if cx.journal.is_open() {
                let payload = match command.moves.is_empty() {
                    true => u64::MAX,
                    false => cx.config.nic.put_payload.count(),
                };
                let completes = end == command.transfer.length || end.is_multiple_of(payload);
                completes.then(|| Note {
                    operation: command.transfer.operation,
                    part: Some(((end - 1) / payload) as u32),
                    module: Stage::DataRead,
                    memory: Stage::DataMemory,
                })
            } else {
                None
            };
            let purpose = Purpose::Data { read: self.first_entry + self.entries.len() as u64 };
            if let Some(Note { operation, part, module, .. }) = note {
                let begun = command.extracted + cx.config.nic.module();
                cx.journal.mark(operation, part, module, None, begun);
                cx.journal.mark(operation, part, module, Some(self.blocked), now);
            }
            if !port.read(cx, run, purpose, note) {
                self.blocked = Cause::Tag;
                return;
            }
            self.requests.reserve(now, self.interval);
            self.in_use += run.length;
            self.counters.reads += 1;
            let early = self.spare.pop().unwrap_or_default();
            self.entries
                .push(now, ReorderEntry { expected: run.length as usize, early, passed: 0 });
            command.asked += run.length;
            command.cursor.1 += run.length;
            if command.cursor.1 == source.length {
                command.cursor = (command.cursor.0 + 1, 0);
            }
        }
        self.blocked = Cause::Order;
    }

    /// A scheduled turn is due.
    pub fn turn(&mut self, cx: &mut Context, port: &mut Port) {
        self.turn_at = self.turn_at.filter(|at| *at > cx.now());
        self.reads(cx, port);
    }

    /// Bytes of a read have arrived. They leave in order, after the delay of two modules.
    pub fn completion(&mut self, read: u64, bytes: &[u8], now: Time, modules: Span) {
        self.counters.completions += 1;
        let Some(at) = read.checked_sub(self.first_entry).map(|at| at as usize) else { return };
        let Some(entry) = self.entries.get_mut(at) else { return };
        if at > 0 {
            entry.early.extend_from_slice(bytes);
            self.counters.early += 1;
            return;
        }
        self.stream.extend(bytes);
        entry.passed += bytes.len();
        let mut fresh = bytes.len();
        while self.entries.front().is_some_and(|entry| entry.passed == entry.expected) {
            let ReorderEntry { mut early, .. } = self.entries.pop(now).expect("there is a front");
            self.first_entry += 1;
            early.clear();
            self.spare.push(early);
            if let Some(next) = self.entries.front_mut() {
                self.stream.extend(&next.early);
                next.passed = next.early.len();
                fresh += next.passed;
            }
        }
        self.came += fresh as u64;
        self.counters.bytes += fresh as u64;
        self.available.push_back((self.came, now + modules));
    }

    /// When the packer has the next `bytes`; nothing if they have not arrived.
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

    /// Removes the next `bytes` from the stream.
    pub fn take(&mut self, bytes: usize, into: &mut Vec<u8>) {
        let (front, back) = self.stream.as_slices();
        let first = bytes.min(front.len());
        into.extend_from_slice(&front[..first]);
        into.extend_from_slice(&back[..bytes - first]);
        self.stream.drain(..bytes);
        self.gone += bytes as u64;
        self.in_use -= bytes as u64;
    }

    /// Bytes of a read come that the packer may take now, and no read is under way.
    #[cfg(test)]
    pub fn comes(&mut self, bytes: &[u8], now: Time) {
        self.in_use += bytes.len() as u64;
        let entry = ReorderEntry { expected: bytes.len(), early: Vec::new(), passed: 0 };
        self.entries.push(now, entry);
        self.completion(self.first_entry, bytes, now, Span::ZERO);
    }

    /// The first command is packed, now.
    pub fn finished(&mut self, now: Time) -> Option<Box<Command>> {
        self.reading = self.reading.saturating_sub(1);
        self.commands.pop(now)
    }

    /// Its queues, by name.
    pub fn queues(&self) -> [(&'static str, &dyn Watched); 2] {
        [("commands", &self.commands), ("data reads in order", &self.entries)]
    }

    /// Whether no command waits and no read is in flight.
    pub fn is_idle(&self) -> bool {
        self.commands.is_empty() && self.entries.is_empty() && self.stream.is_empty()
    }
}

#[cfg(test)]
mod cycle_tests;

#[cfg(test)]
mod tests {
    use super::*;

    /// The packer has the bytes of a read 32 ns after they came, and not when earlier ones came.
    #[test]
    fn bytes_are_ready_when_they_came() {
        let at = |ns: u64| Time::ZERO + Span::from_ns(ns);
        let mut data = DataUnit::new(&Config::prototype());
        for _ in 0..2 {
            data.in_use += 128;
            let entry = ReorderEntry { expected: 128, early: Vec::new(), passed: 0 };
            data.entries.push(at(0), entry);
        }
        let mut taken = Vec::new();
        for (read, ns) in [(0, 100), (1, 500)] {
            assert_eq!(data.ready(128), None);
            data.completion(read, &[read as u8; 128], at(ns), Span::from_ns(32));
            assert_eq!(data.ready(128), Some(at(ns + 32)));
            data.take(128, &mut taken);
        }
        assert_eq!(taken, [[0; 128], [1; 128]].concat());
        assert!(data.is_idle() && data.in_use == 0);
    }
}
