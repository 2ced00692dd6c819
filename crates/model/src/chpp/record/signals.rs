//! The level of each queue and the handshakes between blocks, at every moment with a change.
//!
//! A *depth* is a number of items in a queue. A *handshake* is a pair of bits: `valid`, a block has
//! an item to hand over; `ready`, the next block would take it. An item waits where `valid` is set
//! and `ready` is not.
//!
//! An item that can move moves within the same moment, so both bits are set together only while the
//! next block is busy. The pairs: `doorbell_valid` and `descriptor_ready`, `descriptor_valid` and
//! `data_ready`, `packer_valid` and `packer_ready` (the crossbar's channel), `upload_valid` and
//! `upload_ready`.

use std::fmt;

use crate::chpp::config::NicConfig;
use crate::chpp::crossbar::{Crossbar, DATA, GET};
use crate::chpp::node::Node;
use crate::units::Time;

use super::MOST_NOTES;

/// The kind of a signal's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A number of items or of bytes.
    Depth,
    /// A bit.
    Bit,
}

/// The part of the machine that has a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// A host with its interface.
    Node(usize),
    /// A controller, without the interfaces.
    Controller(usize),
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unit::Node(number) => write!(f, "node {number}"),
            Unit::Controller(number) => write!(f, "controller {number}"),
        }
    }
}

/// A named value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Its part of the machine.
    pub unit: Unit,
    /// The block, named like its file.
    pub block: &'static str,
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
}

/// A change of a signal's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When the value begins to hold.
    pub time: Time,
    /// Index into [`Signals::signals`].
    pub signal: u32,
    /// Its value.
    pub value: u64,
}

/// All signals of a machine, and their changes in order of time.
#[derive(Clone, Debug, Default)]
pub struct Signals {
    /// The signals.
    pub signals: Vec<Signal>,
    /// Their changes; each signal has one at the beginning.
    pub changes: Vec<Change>,
    /// The time of the last sample, if any.
    pub until: Option<Time>,
    /// Whether changes were dropped at the limit.
    pub cut: bool,
    last: Vec<u64>,
}

impl Signals {
    /// Samples all signals: their values at the end of the moment `time`. Call it with rising
    /// times.
    pub(crate) fn look(
        &mut self,
        time: Time,
        nic: &NicConfig,
        nodes: &[Node],
        crossbars: &[Crossbar],
    ) {
        let first = self.until.is_none();
        let mut at = 0;
        let Signals { signals, changes, last, cut, .. } = self;
        let mut see =
            |unit: Unit, block: &'static str, name: fmt::Arguments<'_>, kind, value: u64| {
                if first {
                    signals.push(Signal { unit, block, name: name.to_string(), kind });
                    last.push(value);
                }
                if first || last[at] != value {
                    last[at] = value;
                    if changes.len() < MOST_NOTES {
                        changes.push(Change { time, signal: at as u32, value });
                    } else {
                        *cut = true;
                    }
                }
                at += 1;
            };
        for (number, node) in nodes.iter().enumerate() {
            let unit = Unit::Node(number);
            blocks(nic, node, &mut |block, name, kind, value| see(unit, block, name, kind, value));
        }
        for (number, crossbar) in crossbars.iter().enumerate() {
            let unit = Unit::Controller(number);
            switch(crossbar, &mut |block, name, kind, value| see(unit, block, name, kind, value));
        }
        self.until = Some(time);
    }
}

/// Takes block, name, kind and value of a signal.
type See<'a> = dyn FnMut(&'static str, fmt::Arguments<'_>, Kind, u64) + 'a;

/// The queues and handshakes of an interface, in the order of a message's path.
fn blocks(nic: &NicConfig, node: &Node, see: &mut See<'_>) {
    use Kind::{Bit, Depth};
    let Node { host, port, doorbells, descriptors, data, packer, receiver, .. } = node;
    see("host", format_args!("waiting"), Depth, host.waiting() as u64);
    for (function, fifo) in doorbells.fifos.iter().enumerate() {
        see("doorbell", format_args!("fifo_{function}"), Depth, fifo.len() as u64);
    }
    let reading = descriptors.jobs.iter().filter(|job| job.received < job.bytes.len() as u64);
    see("doorbell", format_args!("valid"), Bit, u64::from(!doorbells.is_empty()));
    let ready = descriptors.jobs.len() < nic.descriptors_in_flight;
    see("descriptor", format_args!("ready"), Bit, u64::from(ready));
    see("descriptor", format_args!("reading"), Depth, reading.count() as u64);
    see("descriptor", format_args!("jobs"), Depth, descriptors.jobs.len() as u64);
    see("descriptor", format_args!("remote_gets"), Depth, descriptors.remote.len() as u64);
    see("descriptor", format_args!("busy"), Bit, u64::from(descriptors.extracting.is_some()));
    let held = descriptors.held.is_some() || descriptors.held_remote.is_some();
    see("descriptor", format_args!("valid"), Bit, u64::from(held));
    see("data", format_args!("ready"), Bit, u64::from(data.commands.len() < nic.command_depth));
    see("data", format_args!("commands"), Depth, data.commands.len() as u64);
    see("data", format_args!("reorder_bytes"), Depth, data.in_use);
    see("port", format_args!("tags"), Depth, port.tags.occupancy.inside());
    see("port", format_args!("reads_and_writes"), Depth, port.outstanding() as u64);
    see("packer", format_args!("valid"), Bit, u64::from(!data.commands.is_empty()));
    see("packer", format_args!("ready"), Bit, u64::from(packer.waits_for.is_none()));
    see("upload", format_args!("data"), Depth, receiver.waiting[DATA].len() as u64);
    see("upload", format_args!("gets"), Depth, receiver.waiting[GET].len() as u64);
    see("upload", format_args!("valid"), Bit, u64::from(!receiver.waiting[DATA].is_empty()));
    let ready = !receiver.is_uploading() && receiver.blocked.is_none();
    see("upload", format_args!("ready"), Bit, u64::from(ready));
}

/// The channels and the matching of a crossbar. Its first ports are those of its nodes, the others
/// those of its links.
fn switch(crossbar: &Crossbar, see: &mut See<'_>) {
    use Kind::{Bit, Depth};
    for port in 0..crossbar.ports {
        for channel in 0..crossbar.channels {
            let inside = crossbar.inside(port, channel);
            see("crossbar", format_args!("input_{port}_channel_{channel}"), Depth, inside);
        }
        see(
            "crossbar",
            format_args!("input_busy_{port}"),
            Bit,
            u64::from(crossbar.input_busy(port)),
        );
        see(
            "crossbar",
            format_args!("output_busy_{port}"),
            Bit,
            u64::from(crossbar.output_busy(port)),
        );
        for (class, left) in crossbar.credits_behind(port).iter().enumerate() {
            see("crossbar", format_args!("output_{port}_places_{class}"), Depth, *left as u64);
        }
    }
}
