//! The parameters of the cluster, read from TOML; `hpcl.toml` has the paper's values and their
//! sources.

use serde::{Deserialize, Serialize};

pub use crate::form::ParameterError as ConfigError;
use crate::form::{demand as of, read, within};
use crate::sensitivity::Parameters;
use crate::units::{Bytes, Frequency, Rate, Span};

/// The paper's cluster.
pub const CLUSTER: &str = include_str!("hpcl.toml");

/// How a waiting process gets its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receive {
    /// It calls the interrupt handler itself, repeatedly (H-08).
    Reap,
    /// It sleeps until an interrupt brings one (B-23).
    Interrupt,
}

/// Where HPCL frames are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HandOver {
    /// In the link layer, at once (H-24).
    LinkLayer,
    /// In a soft interrupt, like frames of the network layer (B-24).
    SoftInterrupt,
}

/// The place of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Buffers {
    /// In preallocated rings that kernel and user share (H-20).
    Fixed,
    /// In kernel buffers allocated per message; data is copied to and from them (B-25).
    Dynamic,
}

/// The owner of a receive ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rings {
    /// The channel: one ring for all peers (H-23).
    Channel,
    /// A connection: one ring per peer (B-26).
    Connection,
}

/// Wires and switch.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    /// Data rate.
    pub rate: Rate,
    /// Delay of a cable.
    pub cable: Span,
    /// From a whole frame at a port of the switch until it is in the queue of another.
    pub switch_delay: Span,
    /// Bytes that a port queues; more is dropped.
    pub port_buffer: Bytes,
    /// Ports of the switch.
    pub ports: u16,
    /// Probability that the switch loses a frame.
    pub loss: f64,
}

/// The bus between memory and NIC.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pci {
    /// Its clock.
    pub clock: Frequency,
    /// Bytes per cycle.
    pub width: Bytes,
    /// Cycles of a burst without data.
    pub overhead_cycles: u64,
    /// Cycles until the first data of a read.
    pub read_cycles: u64,
    /// The longest burst.
    pub burst: Bytes,
}

/// The network interface.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Nic {
    /// Descriptors in the transmit ring.
    pub transmit_descriptors: u32,
    /// Descriptors in the receive ring.
    pub receive_descriptors: u32,
    /// Size of a descriptor.
    pub descriptor: Bytes,
    /// FIFO for frames that wait for the line.
    pub transmit_fifo: Bytes,
    /// FIFO for frames that wait for the bus.
    pub receive_fifo: Bytes,
    /// Minimum time between two interrupts.
    pub interrupt_gap: Span,
}

/// Costs on a processor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Driver and link layer, per frame sent or received.
    pub driver_frame: Span,
    /// Entry into the kernel and return.
    pub system_call: Span,
    /// The longest system call minus the shortest.
    pub system_call_spread: Span,
    /// Entry into an interrupt and return.
    pub interrupt: Span,
    /// Raising a soft interrupt and entering it.
    pub soft_interrupt: Span,
    /// The queue between link layer and network layer, per frame.
    pub queue_frame: Span,
    /// Making a process ready.
    pub wake_up: Span,
    /// Until a ready process runs.
    pub context_switch: Span,
    /// Allocating and freeing a buffer.
    pub allocation: Span,
    /// Start of a copy.
    pub copy_start: Span,
    /// Rate of copies.
    pub copy_rate: Rate,
    /// Rate of the checksum, added to a copy.
    pub checksum_rate: Rate,
    /// Granularity of the kernel's timers.
    pub tick: Span,
}

/// HPCL.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Hpcl {
    /// How processes wait for messages.
    pub receive: Receive,
    /// Where frames are handled.
    pub hand_over: HandOver,
    /// The place of messages.
    pub buffers: Buffers,
    /// The owner of a receive ring.
    pub rings: Rings,
    /// Nasy: the most messages in flight to one peer.
    pub window: u16,
    /// Messages in a ring.
    pub slots: u16,
    /// The longest frame, without Ethernet's header.
    pub frame: Bytes,
    /// Bytes kept per peer while the ring is full; a power of two.
    pub credit: Bytes,
    /// The protocol state machine, per frame.
    pub protocol: Span,
    /// The library between two calls.
    #[serde(rename = "loop")]
    pub library: Span,
    /// A check whether one ring has a message.
    pub check: Span,
}

/// TCP/IP.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tcp {
    /// The longest segment.
    pub segment: Bytes,
    /// Input of a segment.
    pub input: Span,
    /// Output of a segment.
    pub output: Span,
    /// A socket call.
    pub socket: Span,
    /// Bytes that wait to be sent or acknowledged.
    pub send_buffer: Bytes,
    /// Bytes that wait to be read.
    pub receive_buffer: Bytes,
    /// The longest delay of an acknowledgement that waits for data to carry it.
    pub delayed: Span,
    /// Segments after which an acknowledgement is not delayed.
    pub acknowledge_every: u32,
}

/// All parameters.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
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
    /// The fault and its remedy.
    pub fn read(text: &str) -> Result<Config, ConfigError> {
        let config: Config = read(text)?;
        config.check()?;
        Ok(config)
    }

    /// Checks ranges. Call it also for a setting that code has changed.
    ///
    /// # Errors
    /// The first parameter out of range.
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
    /// The time of a copy.
    pub fn copy(&self, bytes: usize) -> Span {
        match bytes {
            0 => Span::ZERO,
            _ => self.copy_start + self.copy_rate.time(Bytes::new(bytes as u64)),
        }
    }

    /// The time of a copy with checksum.
    pub fn copy_and_sum(&self, bytes: usize) -> Span {
        self.copy(bytes) + self.checksum_rate.time(Bytes::new(bytes as u64))
    }
}

impl Parameters for Config {
    const FILE: &'static str = CLUSTER;

    fn refusal(&self) -> Option<String> {
        self.check().err().map(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy starts in 100 ns and moves 1 GB/s, a checksum reads 2 GB/s. Nothing takes no time.
    #[test]
    fn copies_take_their_time() {
        let mut host = Config::paper().host;
        host.copy_start = Span::from_ns(100);
        host.copy_rate = Rate::from_bytes_per_second(1_000_000_000);
        host.checksum_rate = Rate::from_bytes_per_second(2_000_000_000);
        let times = [0, 1, 1000].map(|bytes| (host.copy(bytes), host.copy_and_sum(bytes)));
        let ps = |copy, both| (Span::from_ps(copy), Span::from_ps(both));
        assert_eq!(times, [ps(0, 0), ps(101_000, 101_500), ps(1_100_000, 1_600_000)]);
    }

    /// Times that must be more than nothing are refused at nothing.
    #[test]
    fn nothing_is_no_tick() {
        let mut config = Config::paper();
        assert!(config.check().is_ok() && config.is_valid());
        config.host.tick = Span::ZERO;
        assert!(config.check().is_err() && !config.is_valid());
        let mut config = Config::paper();
        config.hpcl.library = Span::ZERO;
        assert!(config.check().is_err());
        config.hpcl.library = Span::from_ps(1);
        config.host.system_call_spread = config.host.system_call;
        assert!(config.check().is_ok());
    }
}
