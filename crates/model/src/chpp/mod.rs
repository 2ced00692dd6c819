//! The cHPP network interface, its host and its controller, block by block (rows C-01 to C-55;
//! docs/model-chpp.md).
//!
//! A message goes through the files in this order:
//!
//! ```text
//!   host         processor writes descriptor, doorbell   port, pcie, memory   bus, and host memory
//!   doorbell     window, FIFOs, arbiter                  tags                 allocator for reads
//!   descriptor   descriptor read, descriptor extract     function             windows and keys
//!   data         data read, data extract, data reorder
//!   packer       network packets
//!   controllers  routes between nodes                    links                wires between them
//!   crossbar     virtual channels, matching              io                   I/O devices
//!   upload       dispatch, PUT and NAP upload, events    slots, ring          buffer management
//! ```
//!
//! [`node`] connects the blocks. [`machine`] holds all nodes and lets a [`machine::Program`] use
//! them. [`clocked`] puts hosts around interfaces that go cycle by cycle. [`journal`] records where
//! the time of an operation goes. [`experiments`] are those of the paper. Byte layouts are in
//! `bellwire-wire`: descriptors, doorbells, packets and events have the real formats, and lie in
//! the memory of the modelled hosts.

mod carried;
pub mod clocked;
pub mod config;
pub mod controllers;
mod crossbar;
mod data;
mod descriptor;
mod doorbell;
pub mod experiments;
mod function;
pub mod host;
pub mod io;
pub mod journal;
mod links;
pub mod loads;
pub mod machine;
mod memory;
pub mod node;
mod operations;
mod packer;
mod pcie;
pub mod picture;
mod port;
pub mod record;
mod ring;
mod slots;
mod submission;
mod tags;
mod upload;
pub mod workload;
mod zeroed;

pub use config::{Config, ConfigError};
pub use machine::{Machine, Operation};

use crate::engine::{Event, Handle, Pool, Schedule};
use crate::units::Time;

/// A network packet in the machine's pool.
pub type PacketHandle = Handle;

/// A network packet: its bytes, and the operation that it belongs to.
pub struct Packet {
    /// Header, payload, tail: the format of `bellwire_wire::packet`.
    pub bytes: Vec<u8>,
    /// The operation, for the journal; the hardware does not read it.
    pub operation: u32,
    /// Which of the operation's packets this is.
    pub part: u32,
    /// Whether it is a GET packet, for the journal.
    pub is_get: bool,
}

/// Everything that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NicEvent {
    /// A program asked for a wake-up.
    Wake {
        /// The program's token.
        token: u32,
    },
    /// A step of a node.
    Node {
        /// Node.
        node: u8,
        /// Step.
        step: node::Step,
        /// Processor or tag of the step; 0 if it has neither.
        index: u8,
    },
    /// A crossbar matches inputs and outputs.
    CrossbarMatches {
        /// Controller.
        controller: u8,
    },
    /// A packet has crossed.
    Crossed {
        /// Controller.
        controller: u8,
        /// Input.
        input: u8,
        /// Output.
        output: u8,
    },
    /// A credit for a place at the far end of a link has come back.
    Credited {
        /// Controller at the near end.
        controller: u8,
        /// Its output.
        output: u8,
        /// Channel at the far end.
        channel: u8,
    },
    /// An event on a link of the SMP paper between controllers.
    Link {
        /// Number of the link.
        link: u16,
        /// Event.
        event: crate::smp::LinkEvent,
    },
    /// The next step of an access to an I/O device.
    Io {
        /// Step.
        step: io::Step,
        /// Node, device or output, depending on the step.
        at: u16,
    },
}

impl Event for NicEvent {
    #[inline]
    fn trace(self) -> u64 {
        match self {
            // The most frequent kind.
            NicEvent::Node { node, step, index } => {
                trace_word(step as u64, node.into(), index.into())
            }
            _ => self.trace_between(),
        }
    }
}

impl NicEvent {
    /// The trace of an event outside a node.
    // Out of line: matching the kind costs more than the rest.
    #[inline(never)]
    fn trace_between(self) -> u64 {
        let (kind, a, b) = match self {
            NicEvent::Node { node, step, index } => (step as u64, node.into(), index.into()),
            NicEvent::Wake { token } => (0, token & 0xffff, token >> 16),
            NicEvent::CrossbarMatches { controller } => (9, controller.into(), 0),
            NicEvent::Crossed { controller, input, output } => {
                (10, input.into(), u32::from(output) | u32::from(controller) << 16)
            }
            NicEvent::Credited { controller, output, channel } => {
                (14, output.into(), u32::from(channel) | u32::from(controller) << 16)
            }
            NicEvent::Link { link, event } => (17, link.into(), event.trace() as u32),
            NicEvent::Io { step, at } => (15, at.into(), step as u32),
        };
        trace_word(kind, a, b)
    }
}

/// A word of the trace: the kind of event, where it happens, and for which part.
#[inline]
fn trace_word(kind: u64, a: u32, b: u32) -> u64 {
    kind | u64::from(a) << 8 | u64::from(b) << 32
}

/// What every block can reach outside its own node.
pub struct Context<'a> {
    /// Clock and pending events.
    pub schedule: &'a mut Schedule<NicEvent>,
    /// Parameters.
    pub config: &'a Config,
    /// All packets.
    pub packets: &'a mut Pool<Packet>,
    /// Buffers of dropped packets and descriptors, for reuse.
    pub spare: &'a mut Vec<Vec<u8>>,
    /// The switches, and the links between them.
    pub controllers: &'a mut controllers::Controllers,
    /// Where time goes.
    pub journal: &'a mut journal::Journal,
    /// Operations that programs posted, and their state.
    pub operations: &'a mut operations::Operations,
    /// Notices for programs.
    pub notices: &'a mut std::collections::VecDeque<host::Notice>,
}

impl Context<'_> {
    /// The present time.
    pub fn now(&self) -> Time {
        self.schedule.now()
    }

    /// A buffer of `length` bytes with stale contents: the caller writes all of it.
    pub fn buffer(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = self.spare.pop().unwrap_or_default();
        bytes.resize(length, 0);
        bytes
    }

    /// Keeps a buffer for reuse.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < 256 {
            self.spare.push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Event;

    /// Each event has a word of its own in the trace: its kind, where it happens, and for what.
    #[test]
    fn traces_are_packed() {
        for (event, word) in [
            (NicEvent::Wake { token: 0x0005_0004 }, 0x5_0000_0400),
            (node::Step::DataReads.of(2), 0x207),
            (node::Step::ReadReady.about(2, 3), 0x3_0000_0205),
            (NicEvent::CrossbarMatches { controller: 6 }, 0x609),
            (NicEvent::Crossed { controller: 1, input: 2, output: 3 }, 0x0001_0003_0000_020a),
            (NicEvent::Credited { controller: 1, output: 2, channel: 3 }, 0x0001_0003_0000_020e),
            (
                NicEvent::Crossed { controller: 0xff, input: 0xff, output: 0xff },
                0x00ff_00ff_0000_ff0a,
            ),
        ] {
            assert_eq!(event.trace(), word, "{event:?}");
            assert_eq!(event.trace_between(), word, "{event:?}");
        }
    }
}
