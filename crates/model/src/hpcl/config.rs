//! The parameters of the cluster, read from TOML; `hpcl.toml` is the paper's and says where each value comes from.

use serde::{Deserialize, Serialize};

pub use crate::form::ParameterError as ConfigError;
use crate::form::{demand as of, read, within};
use crate::units::{Bytes, Frequency, Rate, Span};

/// The cluster of the paper.
pub const CLUSTER: &str = include_str!("hpcl.toml");

/// How a process that waits gets its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receive {
    /// It calls the interrupt handler itself, again and again (H-08).
    Reap,
    /// It sleeps until an interrupt has brought one (B-23).
    Interrupt,
}

/// Where frames of HPCL are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandOver {
    /// In the link layer, at once (H-24).
    LinkLayer,
    /// Behind a soft interrupt, like those of the network layer (B-24).
    SoftInterrupt,
}

/// Where messages lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Buffers {
    /// In rings that kernel and user share, made beforehand (H-20).
    Fixed,
    /// In buffers of the kernel made for each, from and to which they are copied (B-25).
    Dynamic,
}

/// Whose receive rings are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rings {
    /// One of the channel, for all peers (H-23).
    Channel,
    /// One for each peer (B-26).
    Connection,
}

/// Wires and switch.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// Data rate.
    pub rate: Rate,
    /// Delay of a cable.
    pub cable: Span,
    /// From a whole frame at a port of the switch to the queue of another.
    pub switch_delay: Span,
    /// Bytes that wait at a port; more is dropped.
    pub port_buffer: Bytes,
    /// Ports of the switch.
    pub ports: u16,
    /// Chance that the switch loses a frame.
    pub loss: f64,
}

/// The bus between memory and NIC.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pci {
    /// Its clock.
    pub clock: Frequency,
    /// Bytes that it carries in a cycle.
    pub width: Bytes,
    /// Cycles of a burst without data.
    pub overhead_cycles: u64,
    /// Cycles until a read has its first data.
    pub read_cycles: u64,
    /// Longest burst.
    pub burst: Bytes,
}

/// The network interface.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Nic {
    /// Descriptors of frames to be sent.
    pub transmit_descriptors: u32,
    /// Descriptors of buffers to receive into.
    pub receive_descriptors: u32,
    /// Size of one.
    pub descriptor: Bytes,
    /// Memory for frames that wait for the line.
    pub transmit_fifo: Bytes,
    /// Memory for frames that wait for the bus.
    pub receive_fifo: Bytes,
    /// Least time from an interrupt to the next.
    pub interrupt_gap: Span,
}

/// What things take on a processor.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Driver and link layer: a frame, sent or received.
    pub driver_frame: Span,
    /// Into the kernel and back.
    pub system_call: Span,
    /// How far the longest is from the shortest.
    pub system_call_spread: Span,
    /// Into an interrupt and back.
    pub interrupt: Span,
    /// Raising a soft interrupt and getting there.
    pub soft_interrupt: Span,
    /// Through the queue between link layer and network layer.
    pub queue_frame: Span,
    /// Making a process ready.
    pub wake_up: Span,
    /// Until a process that is ready runs.
    pub context_switch: Span,
    /// Making a buffer and giving it back.
    pub allocation: Span,
    /// Beginning a copy.
    pub copy_start: Span,
    /// Copying.
    pub copy_rate: Rate,
    /// Summing up what is copied, in addition.
    pub checksum_rate: Rate,
    /// Timeouts end at multiples of this.
    pub tick: Span,
}

/// HPCL.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hpcl {
    /// How messages are waited for.
    pub receive: Receive,
    /// Where frames are handled.
    pub hand_over: HandOver,
    /// Where messages lie.
    pub buffers: Buffers,
    /// Whose rings are.
    pub rings: Rings,
    /// Nasy: messages in flight to one peer.
    pub window: u16,
    /// Messages that a ring holds.
    pub slots: u16,
    /// Longest frame, Ethernet's header not counted.
    pub frame: Bytes,
    /// What is kept of one peer while the ring is full; a power of two.
    pub credit: Bytes,
    /// The state machine, for a frame.
    pub protocol: Span,
    /// The library between two calls.
    #[serde(rename = "loop")]
    pub library: Span,
    /// Looking whether one ring has something.
    pub check: Span,
}

/// TCP/IP.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    /// Longest segment.
    pub segment: Bytes,
    /// A segment that comes.
    pub input: Span,
    /// A segment that goes.
    pub output: Span,
    /// A call.
    pub socket: Span,
    /// Bytes that wait to be sent or acknowledged.
    pub send_buffer: Bytes,
    /// Bytes that wait to be read.
    pub receive_buffer: Bytes,
    /// How long an acknowledgement may wait for data to ride on.
    pub delayed: Span,
    /// Segments after which it does not.
    pub acknowledge_every: u32,
}

/// All parameters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Nodes of the cluster.
    pub nodes: u16,
    /// Wires and switch.
    pub wire: Wire,
    /// Bus.
    pub pci: Pci,
    /// Network interface.
    pub nic: Nic,
    /// Processor.
    pub host: Host,
    /// HPCL.
    pub hpcl: Hpcl,
    /// TCP/IP.
    pub tcp: Tcp,
}

impl Config {
    /// The paper's cluster.
    pub fn paper() -> Config {
        Config::read(CLUSTER).expect("the file that is built in is right")
    }

    /// Reads parameters.
    ///
    /// # Errors
    /// What is wrong, and what would be right.
    pub fn read(text: &str) -> Result<Config, ConfigError> {
        let config: Config = read(text)?;
        config.check()?;
        Ok(config)
    }

    /// Checks ranges. A setting that was changed in code should be checked, too.
    ///
    /// # Errors
    /// The first parameter that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Config { nodes, wire, pci, nic, host, hpcl, tcp } = self;
        within([
            ("wire.ports", wire.ports.into(), 2..=64),
            ("nodes", (*nodes).into(), 2..=wire.ports.into()),
            ("wire.port_buffer", wire.port_buffer.count(), 4096..=1 << 30),
            ("pci.burst", pci.burst.count(), 32..=1 << 16),
            ("pci.overhead_cycles", pci.overhead_cycles, 0..=1000),
            ("pci.read_cycles", pci.read_cycles, 0..=1000),
            ("nic.transmit_descriptors", nic.transmit_descriptors.into(), 2..=4096),
            ("nic.receive_descriptors", nic.receive_descriptors.into(), 2..=4096),
            ("nic.descriptor", nic.descriptor.count(), 4..=64),
            ("nic.transmit_fifo", nic.transmit_fifo.count(), 2048..=1 << 20),
            ("nic.receive_fifo", nic.receive_fifo.count(), 2048..=1 << 20),
            ("hpcl.window", hpcl.window.into(), 1..=1024),
            ("hpcl.slots", hpcl.slots.into(), 1..=4096),
            ("hpcl.frame", hpcl.frame.count(), 256..=1500),
            ("hpcl.credit", hpcl.credit.count(), 2048..=1 << 20),
            ("tcp.segment", tcp.segment.count(), 64..=1460),
            ("tcp.send_buffer", tcp.send_buffer.count(), 4096..=1 << 24),
            ("tcp.receive_buffer", tcp.receive_buffer.count(), 4096..=1 << 24),
            ("tcp.acknowledge_every", tcp.acknowledge_every.into(), 1..=64),
        ])?;
        of("wire.loss", &wire.loss, (0.0..0.5).contains(&wire.loss), "from 0 to below 0.5")?;
        let width = pci.width.count();
        of("pci.width", &pci.width, matches!(width, 4 | 8), "4 B or 8 B")?;
        let fits = pci.burst.count().is_multiple_of(width);
        of("pci.burst", &pci.burst, fits, "a multiple of the width")?;
        let power = hpcl.credit.count().is_power_of_two();
        of("hpcl.credit", &hpcl.credit, power, "a power of two")?;
        let spread = host.system_call_spread <= host.system_call;
        let most = "at most host.system_call";
        of("host.system_call_spread", &host.system_call_spread, spread, most)?;
        of("host.tick", &host.tick, host.tick > Span::ZERO, "more than 0")?;
        of("hpcl.loop", &hpcl.library, hpcl.library > Span::ZERO, "more than 0")
    }
}

impl Host {
    /// How long a copy takes.
    pub fn copy(&self, bytes: usize) -> Span {
        match bytes {
            0 => Span::ZERO,
            _ => self.copy_start + self.copy_rate.time(Bytes::new(bytes as u64)),
        }
    }

    /// How long a copy takes that sums up, too.
    pub fn copy_and_sum(&self, bytes: usize) -> Span {
        self.copy(bytes) + self.checksum_rate.time(Bytes::new(bytes as u64))
    }
}
