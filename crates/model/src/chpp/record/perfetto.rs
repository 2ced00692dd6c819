//! A trace for ui.perfetto.dev, in Perfetto's own format: a protobuf `Trace` of `TracePacket`s
//! (perfetto/protos/perfetto/trace).
//!
//! ```text
//! node 0                     a track without events, the parent of the tracks below
//!   processor                one track for each block: its work, and its waits with their causes
//!   ...
//!   tags                     one counter for each queue
//! node 1
//! controller 0
//!   input 0 channel 0        and likewise those of the crossbar
//! ```
//!
//! Packets overlap in a block, but slices of one track must not. So a block has several tracks with
//! the same name, which Perfetto merges in its display. Arrows (flows) join all steps of an
//! operation before its packets and those of the packet that ended it.
//!
//! Perfetto counts in whole nanoseconds. Beginnings and ends are rounded to the nearest one, so
//! that slices still meet. The arguments of each slice have the exact picoseconds.

use std::collections::BTreeMap;

use crate::chpp::journal::{SEND_EVENT, Stage, Step};
use crate::chpp::machine::{Machine, Operation};
use crate::units::Time;

use super::signals::{Kind, Unit};

/// The trace of a machine: its journal as slices, its queues as counters.
pub fn trace(machine: &Machine) -> Vec<u8> {
    let operations = machine.operations();
    let steps = machine.journal().steps(|operation| {
        let record = &operations[operation as usize];
        (record.started, record.sent)
    });
    let mut trace = Trace::default();
    let mut units: Vec<Unit> = steps.iter().filter_map(|step| place(step, operations)).collect();
    units.extend(machine.signals().iter().flat_map(|signals| &signals.signals).map(|of| of.unit));
    units.sort_unstable();
    units.dedup();
    let roots: BTreeMap<Unit, u64> = units
        .into_iter()
        .enumerate()
        .map(|(at, unit)| (unit, trace.track(&unit.to_string(), None, at as u64, Sort::Group)))
        .collect();
    slices(&mut trace, &roots, &steps, operations);
    counters(&mut trace, &roots, machine);
    trace.finish()
}

/// The node of a step.
fn place(step: &Step, operations: &[Operation]) -> Option<Unit> {
    let operation = &operations[step.operation as usize];
    let is_get = step.after_get_trip || step.stage == Stage::GetTrip;
    let sends = step.stage < Stage::Crossbar;
    // The local node requests a GET, the far node reads, and the local node receives.
    let here = match step.part {
        Some(SEND_EVENT) => true,
        _ if is_get => sends != step.after_get_trip,
        _ => sends,
    };
    if here { Some(operation.node) } else { operation.peer }.map(Unit::Node)
}

fn slices(
    trace: &mut Trace,
    roots: &BTreeMap<Unit, u64>,
    steps: &[Step],
    operations: &[Operation],
) {
    // By node and block, in order of time.
    let mut blocks: BTreeMap<(Unit, Stage), Vec<&Step>> = BTreeMap::new();
    for step in steps {
        if let Some(unit) = place(step, operations) {
            blocks.entry((unit, step.stage)).or_default().push(step);
        }
    }
    for ((unit, stage), mut steps) in blocks {
        steps.sort_by_key(|step| (step.begins, step.ends, step.operation, step.part));
        // Tracks of this block, and when each becomes free.
        let mut tracks: Vec<(u64, u64)> = Vec::new();
        for step in steps {
            let (begins, ends) = (nanoseconds(step.begins), nanoseconds(step.ends));
            let free = tracks.iter().position(|&(_, until)| until <= begins);
            let at = free.unwrap_or_else(|| {
                let track =
                    trace.track(&stage.to_string(), Some(roots[&unit]), stage as u64, Sort::Slices);
                tracks.push((track, 0));
                tracks.len() - 1
            });
            tracks[at].1 = ends;
            trace.slice(tracks[at].0, (begins, ends), step, &operations[step.operation as usize]);
        }
    }
}

fn counters(trace: &mut Trace, roots: &BTreeMap<Unit, u64>, machine: &Machine) {
    let Some(signals) = machine.signals() else { return };
    let tracks: Vec<Option<u64>> = signals
        .signals
        .iter()
        .enumerate()
        .map(|(at, signal)| {
            let name = format!("{} {}", signal.block, signal.name.replace('_', " "));
            // After the blocks.
            let rank = 100 + at as u64;
            (signal.kind == Kind::Depth)
                .then(|| trace.track(&name, Some(roots[&signal.unit]), rank, Sort::Counter))
        })
        .collect();
    for change in &signals.changes {
        if let Some(track) = tracks[change.signal as usize] {
            trace.count(track, nanoseconds(change.time), change.value);
        }
    }
}

/// The nearest nanosecond.
fn nanoseconds(time: Time) -> u64 {
    (time.ps() + 500) / 1000
}

/// The kind of a track.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sort {
    Group,
    Slices,
    Counter,
}

/// A trace under construction.
#[derive(Default)]
struct Trace {
    /// Track descriptors; they come first.
    descriptors: Vec<u8>,
    /// Events with their times. Those of one track are in order.
    events: Vec<(u64, Vec<u8>)>,
    tracks: u64,
}

/// All packets come from one writer.
const SEQUENCE: u64 = 1;

impl Trace {
    /// Adds a track and returns its number. Siblings are shown in the order of `rank`.
    fn track(&mut self, name: &str, parent: Option<u64>, rank: u64, sort: Sort) -> u64 {
        self.tracks += 1;
        let uuid = self.tracks;
        let mut descriptor = Vec::new();
        number(&mut descriptor, 1, uuid);
        text(&mut descriptor, 2, name);
        if let Some(parent) = parent {
            number(&mut descriptor, 5, parent);
        }
        if sort == Sort::Counter {
            // A counter descriptor with unit (3): count (2).
            let mut counter = Vec::new();
            number(&mut counter, 3, 2);
            message(&mut descriptor, 8, &counter);
        }
        if sort == Sort::Group {
            // Children are shown in the order of their ranks (explicit, 3).
            number(&mut descriptor, 11, 3);
        }
        number(&mut descriptor, 12, rank);
        let mut packet = Vec::new();
        number(&mut packet, 10, SEQUENCE);
        message(&mut packet, 60, &descriptor);
        message(&mut self.descriptors, 1, &packet);
        uuid
    }

    fn slice(&mut self, track: u64, (begins, ends): (u64, u64), step: &Step, of: &Operation) {
        let what = format!("{:?} {}", of.primitive, step.operation).to_uppercase();
        let part = step.part.filter(|part| *part != SEND_EVENT);
        let mut name = match (step.part, part) {
            (Some(_), None) => format!("{what} send event"),
            (_, Some(part)) => format!("{what} packet {part}"),
            (None, None) => what,
        };
        if let Some(cause) = step.cause {
            name = format!("{name}, waits for {cause}");
        }
        let mut event = Vec::new();
        annotation(&mut event, "operation", step.operation.into());
        if let Some(part) = part {
            annotation(&mut event, "packet", part.into());
        }
        annotation(&mut event, "begins_ps", step.begins.ps());
        annotation(&mut event, "length_ps", step.ends.since(step.begins).ps());
        number(&mut event, 9, 1);
        number(&mut event, 11, track);
        text(&mut event, 22, if step.cause.is_some() { "wait" } else { "service" });
        text(&mut event, 23, &name);
        let last = of.finished.or(of.landed).map(|(_, part)| part);
        if step.part.is_none() || step.part == last {
            tag(&mut event, 47, 1);
            event.extend((u64::from(step.operation) + 1).to_le_bytes());
        }
        self.event(begins, &event);
        let mut event = Vec::new();
        number(&mut event, 9, 2);
        number(&mut event, 11, track);
        self.event(ends, &event);
    }

    fn count(&mut self, track: u64, time: u64, value: u64) {
        let mut event = Vec::new();
        number(&mut event, 9, 4);
        number(&mut event, 11, track);
        number(&mut event, 30, value);
        self.event(time, &event);
    }

    fn event(&mut self, time: u64, event: &[u8]) {
        let mut packet = Vec::new();
        number(&mut packet, 8, time);
        number(&mut packet, 10, SEQUENCE);
        message(&mut packet, 11, event);
        self.events.push((time, packet));
    }

    fn finish(mut self) -> Vec<u8> {
        // The stable sort keeps the end of a slice before the beginning of the next on its track.
        self.events.sort_by_key(|&(time, _)| time);
        let mut trace = self.descriptors;
        for (_, packet) in self.events {
            message(&mut trace, 1, &packet);
        }
        trace
    }
}

/// A debug annotation: name (10) and unsigned value (3), as field 4 of an event.
fn annotation(event: &mut Vec<u8>, name: &str, value: u64) {
    let mut annotation = Vec::new();
    number(&mut annotation, 3, value);
    text(&mut annotation, 10, name);
    message(event, 4, &annotation);
}

/// Field number and wire type.
fn tag(out: &mut Vec<u8>, field: u64, wire: u64) {
    varint(out, field << 3 | wire);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    tag(out, field, 0);
    varint(out, value);
}

fn message(out: &mut Vec<u8>, field: u64, bytes: &[u8]) {
    tag(out, field, 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn text(out: &mut Vec<u8>, field: u64, text: &str) {
    message(out, field, text.as_bytes());
}

/// Seven bits at a time, low bits first.
fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
