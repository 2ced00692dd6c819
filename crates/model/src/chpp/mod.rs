//! The cHPP network interface, its host and its controller, block by block (rows C-01 to C-55; docs/model-chpp.md).
//!
//! A message goes through the files in this order:
//!
//! ```text
//!   host        the processor writes descriptor and doorbell            port, pcie, memory   the bus and what is behind it
//!   doorbell    window, FIFOs, arbiter                                  tags                 one allocator for all reads
//!   descriptor  descriptor read, descriptor extract                     function             windows and keys
//!   data        data read, data extract, data reorder
//!   packer      network packets
//!   controllers ways between nodes                                       links                wires between controllers
//!   crossbar    virtual channels, matching                              io                   processors and I/O devices
//!   upload      receive dispatch, PUT and NAP upload, events            slots, ring          buffer management
//! ```
//!
//! [`node`] wires them up, [`machine`] holds all nodes and lets a [`machine::Program`] use them; [`journal`] says where the time of
//! an operation went; [`experiments`] are those of the paper. What the bytes look like is in `bellwire-wire`: descriptors,
//! doorbells, packets and events are those of the real formats, and lie in the memory of the modelled hosts.

pub mod carried;
pub mod config;
pub mod controllers;
pub mod crossbar;
pub mod data;
pub mod descriptor;
pub mod doorbell;
pub mod experiments;
pub mod function;
pub mod host;
pub mod io;
pub mod journal;
pub mod links;
pub mod machine;
pub mod memory;
pub mod node;
pub mod operations;
pub mod packer;
pub mod pcie;
pub mod picture;
pub mod port;
pub mod record;
pub mod ring;
pub mod sensitivity;
pub mod slots;
pub mod submission;
pub mod tags;
pub mod upload;
pub mod workload;

pub use config::{Config, ConfigError};
pub use machine::{Machine, Operation, Stopped};

use crate::engine::{Event, Handle, Pool, Schedule};
use crate::units::Time;

/// A network packet in the machine's pool.
pub type PacketHandle = Handle;

/// A network packet: the bytes that cross, and whose they are.
pub struct Packet {
    /// Header, payload, tail: the format of `bellwire_wire::packet`.
    pub bytes: Vec<u8>,
    /// The operation, for the journal; hardware does not look.
    pub operation: u32,
    /// Which of the operation's packets this is.
    pub part: u32,
    /// Whether it is a GET packet, for the journal.
    pub is_get: bool,
}

/// Everything that can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// A program asked to be woken.
    Wake {
        /// What it said.
        token: u32,
    },
    /// Something in a node.
    Node {
        /// Which.
        node: u8,
        /// What.
        step: node::Step,
        /// Which processor or tag it is about; 0 if it is about neither.
        whom: u8,
    },
    /// A crossbar decides who crosses.
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
    /// A place at the far end of a link is known to be free again.
    Credited {
        /// Controller at the near end.
        controller: u8,
        /// Its output.
        output: u8,
        /// Channel at the far end.
        channel: u8,
    },
    /// Something on a link between controllers, where those are the SMP paper's.
    OnLink {
        /// Its number.
        link: u16,
        /// What.
        event: crate::smp::LinkEvent,
    },
    /// An access to an I/O device gets on.
    Io {
        /// How.
        step: io::Step,
        /// Node, device or output, as the step has it.
        at: u16,
    },
}

impl Event for Happening {
    #[inline]
    fn trace(self) -> u64 {
        match self {
            // Almost all are of this kind.
            Happening::Node { node, step, whom } => {
                trace_word(step as u64, node.into(), whom.into())
            }
            _ => self.trace_between(),
        }
    }
}

impl Happening {
    /// The trace of what is not in a node.
    // Out of line: looking for the kind costs more than all the rest.
    #[inline(never)]
    fn trace_between(self) -> u64 {
        let (kind, a, b) = match self {
            Happening::Node { node, step, whom } => (step as u64, node.into(), whom.into()),
            Happening::Wake { token } => (0, token & 0xffff, token >> 16),
            Happening::CrossbarMatches { controller } => (9, controller.into(), 0),
            Happening::Crossed { controller, input, output } => {
                (10, input.into(), u32::from(output) | u32::from(controller) << 16)
            }
            Happening::Credited { controller, output, channel } => {
                (14, output.into(), u32::from(channel) | u32::from(controller) << 16)
            }
            Happening::OnLink { link, event } => (17, link.into(), event.trace() as u32),
            Happening::Io { step, at } => (15, at.into(), step as u32),
        };
        trace_word(kind, a, b)
    }
}

/// The word of the trace that says what happened, where, and in which part of it.
#[inline]
fn trace_word(kind: u64, a: u32, b: u32) -> u64 {
    kind | u64::from(a) << 8 | u64::from(b) << 32
}

/// What every block can reach beside its own node.
pub struct Wires<'a> {
    /// Time and future.
    pub schedule: &'a mut Schedule<Happening>,
    /// Parameters.
    pub config: &'a Config,
    /// All packets.
    pub packets: &'a mut Pool<Packet>,
    /// Buffers of packets and descriptors that are gone.
    pub spare: &'a mut Vec<Vec<u8>>,
    /// The switches, and the links between them.
    pub controllers: &'a mut controllers::Controllers,
    /// Where time goes.
    pub journal: &'a mut journal::Journal,
    /// What was asked for, and what became of it.
    pub operations: &'a mut operations::Operations,
    /// What programs are told.
    pub notices: &'a mut std::collections::VecDeque<host::Notice>,
}

impl Wires<'_> {
    /// The present moment.
    pub fn now(&self) -> Time {
        self.schedule.now()
    }

    /// A buffer of `length` bytes, of which all are to be written.
    pub fn buffer(&mut self, length: usize) -> Vec<u8> {
        buffer(self.spare, length)
    }

    /// Keeps a buffer for others.
    pub fn recycle(&mut self, bytes: Vec<u8>) {
        if self.spare.len() < 256 {
            self.spare.push(bytes);
        }
    }

    /// Forgets a packet and keeps its buffer.
    pub fn drop_packet(&mut self, packet: PacketHandle) {
        let Packet { bytes, .. } = self.packets.take(packet);
        self.recycle(bytes);
    }
}

/// One of the buffers `spare`, of `length` bytes; what they are is left from others.
fn buffer(spare: &mut Vec<Vec<u8>>, length: usize) -> Vec<u8> {
    let mut bytes = spare.pop().unwrap_or_default();
    bytes.resize(length, 0);
    bytes
}
