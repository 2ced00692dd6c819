//! The parameters of the model, read from TOML. `chpp.toml` is the paper's prototype and names the
//! source of each value.

use serde::{Deserialize, Serialize};

use super::zeroed::can_hold;
use crate::engine::{Arbiter, Policy, Random};
use crate::form::{ParameterError, demand, read, within};
use crate::network::{Shape, TopologyError};
use crate::sensitivity::Parameters;
use crate::units::{Bytes, Frequency, Rate, Span, Time};

/// The prototype of the paper.
pub const PROTOTYPE: &str = include_str!("chpp.toml");

/// All parameters of a controller with its hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The kind of links between controllers.
    #[serde(default)]
    pub link: LinkKind,
    /// The network interfaces; all are equal.
    pub nic: NicConfig,
    /// The bus between a host and its interface.
    pub pcie: PcieConfig,
    /// Processor and memory.
    pub host: HostConfig,
    /// The crossbar between the interfaces of a controller.
    pub crossbar: CrossbarConfig,
    /// I/O devices of the controllers.
    pub io: IoConfig,
    /// The links between controllers; without them, there is one controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<LinksConfig>,
    /// The processor time of a program that uses the machine as a device.
    pub program: ProgramConfig,
}

/// One network interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NicConfig {
    /// Frequency of all blocks of the interface and of the crossbar.
    pub clock: Frequency,
    /// Bytes that the internal bus carries in a cycle.
    pub bus: Bytes,
    /// Bytes that the descriptor path carries in a cycle.
    pub descriptor_path: Bytes,
    /// Cycles from a block's input to its output, for each block of Figs. 11 and 12.
    pub module_cycles: u64,
    /// Cycles of the bus for the header of a bus packet.
    pub header_cycles: u64,
    /// Cycles that a bus packet takes beyond header and data.
    pub engine_cycles: u64,
    /// Functions (PF and VFs), 1..=8.
    pub functions: usize,
    /// Queue pairs of a function, 1..=4.
    pub queue_pairs: usize,
    /// Doorbells that a function's FIFO holds; also the limit of outstanding operations.
    pub doorbell_depth: usize,
    /// Tags for reads over the bus, 1..=256.
    pub tags: usize,
    /// Bytes of payload of a PUT packet, 1..=4096.
    pub put_payload: Bytes,
    /// Descriptors that are read at once.
    pub descriptors_in_flight: usize,
    /// Extracted descriptors that wait for data reads.
    pub command_depth: usize,
    /// Descriptors of remote GETs that wait for extraction.
    pub remote_get_depth: usize,
    /// Bytes that data reads may have outstanding or waiting for the packer.
    pub reorder: Bytes,
    /// NAP slot addresses on the chip, for each queue pair.
    pub slot_cache: usize,
    /// Slot addresses that one refill reads.
    pub slot_batch: usize,
    /// How software starts an operation.
    pub submission: Start,
    /// Words of 32 B of the buffer for stored descriptors (`damq-pd` and `ring`).
    pub descriptor_words: u16,
    /// Bytes of a network packet's header: 16 in cHPP, 32 in others, at most 94 in InfiniBand
    /// (B-04).
    pub packet_header: Bytes,
    /// Whether packets are converted whole between the bus protocol and the network protocol, as
    /// between a bus and another network (B-05).
    pub conversion: bool,
    /// When a packet leaves the packer.
    pub packing: Packing,
    /// How the FIFOs of the functions share the engine.
    pub arbitration: Arbitration,
}

/// When a packet leaves the packer (C-34). Those of other networks are converted instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// A PUT's leaves as its data arrives. A NAP's data from memory is copied into its packet once
    /// all is there; the extract module has copied immediate data.
    Copied,
    /// Every packet leaves as its data arrives.
    Streamed,
    /// Every packet leaves once it is whole, as in gates: reads can fail. Immediate data comes from
    /// the extract module in beats, once that has the whole descriptor.
    Gathered,
}

/// How software starts an operation (C-31, B-01; cHPP section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// The descriptor is in memory, and one store rings a doorbell.
    Doorbell,
    /// The descriptor is stored into the engine, word by word, under a lock of all processors.
    Descriptor,
    /// The descriptor is stored in bursts into a buffer that functions share under credits. Without
    /// credits, as `Doorbell` (D-16).
    DamqPd,
    /// The descriptor is stored in bursts into the function's own part of the buffer. If that part
    /// is full, as `Doorbell` (M-13).
    Ring,
}

/// How requesters share one resource: functions the engine (C-40, C-41), inputs an output of the
/// crossbar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Arbitration {
    /// The arbiter's policy.
    pub policy: Policy,
    /// Turns of each function or input in a round, for the policy `weighted`; 1 where no weight is
    /// given.
    #[serde(default)]
    pub weights: Vec<u32>,
}

/// The PCIe bus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PcieConfig {
    /// Lanes.
    pub lanes: u64,
    /// Transfers per second and lane.
    pub transfer_rate: Frequency,
    /// Coding: data bits, and the bits on the lane that carry them.
    pub coding: [u64; 2],
    /// Most bytes of data in a write or completion (MPS, the paper's MTU).
    pub max_payload: Bytes,
    /// Most bytes that a read asks for (MRRS).
    pub read_request: Bytes,
    /// Boundary at which completions may be cut (RCB).
    pub completion_boundary: Bytes,
    /// Bytes of a busy link between two acknowledgements; 0 for none.
    pub ack_limit: Bytes,
    /// Bytes of a busy link between two updates of flow control; 0 for none.
    pub credit_limit: Bytes,
    /// Delay from the end of a packet on the wire until the other end takes it, in each direction.
    pub latency: Span,
    /// Header credits for posted requests at the host.
    pub posted_headers: u64,
    /// Data credits for posted requests at the host, in units of 16 B.
    pub posted_data: u64,
    /// Header credits for reads at the host.
    pub non_posted_headers: u64,
}

/// How a random time is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Uniform from zero to the maximum.
    Uniform,
    /// Exponential.
    Exponential,
}

/// A host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// Processor time for writing a descriptor and its doorbell (Oc).
    pub cpu_start: Span,
    /// Processors; function f is served by processor f modulo their number.
    pub processors: usize,
    /// Processor time for each store of 8 bytes of a descriptor into the engine.
    pub store: Span,
    /// Processor time for taking and releasing an uncontended lock.
    pub lock: Span,
    /// The same for a lock that another processor held last.
    pub lock_passed_on: Span,
    /// Latency of a memory access without contention.
    pub memory_latency: Span,
    /// Additional time of a read: the maximum if uniform, the mean if exponential.
    pub memory_jitter: Span,
    /// How the additional time of a read is drawn.
    pub memory_distribution: Distribution,
    /// Throughput of the memory.
    pub memory_rate: Rate,
    /// Records of an event ring.
    pub ring_entries: u64,
    /// NAP slots of a queue pair.
    pub slots: usize,
    /// Size of a function's memory.
    pub window: Bytes,
}

/// The crossbar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossbarConfig {
    /// Ports, one for each node: 1..=16.
    pub ports: usize,
    /// Virtual channels for NAP and PUT packets; one for each port is VOQ (C-43).
    pub channels: usize,
    /// Packets that an input holds in each channel.
    pub channel_packets: usize,
    /// Packets that a receive engine holds, for each class.
    pub receive_packets: usize,
    /// GET packets have a channel of their own (C-27).
    pub get_channel: bool,
    /// How inputs share an output.
    pub arbitration: Arbitration,
}

/// I/O devices, and the PCIe crossbar in front of them (C-03, C-55).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IoConfig {
    /// Devices at each controller.
    pub devices: usize,
    /// Size of a device's address range.
    pub memory: Bytes,
    /// Delay from a load's arrival at a device until its data is ready.
    pub latency: Span,
    /// Requests that the port of a node queues for the PCIe crossbar, and that a device queues.
    pub buffer: usize,
}

/// The kind of a link between controllers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkKind {
    /// The wires of a PCIe link, with a link layer without errors and limits.
    #[default]
    Pcie,
    /// The direct link of the SMP paper, in the setting that it recommends (docs/model-smp.md):
    /// frames, credits, replay. It has its own delays; `links.latency` is then only the delay of a
    /// returning credit.
    Smp,
}

/// The links between controllers (C-02): PCIe links with the width and rate of those to the hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinksConfig {
    /// Topology of the controllers: each of its routers is a controller with `crossbar.ports`
    /// nodes.
    pub topology: Shape,
    /// Packets that the far end of a link holds in each channel.
    pub channel_packets: usize,
    /// Delay from the end of a packet on the wires until the next controller has it.
    pub latency: Span,
}

/// Processor time of a program that uses the machine as the device `model:chpp`. The machine itself
/// charges the hardware and the start of an operation (`host.cpu_start`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgramConfig {
    /// Polling the rings once, with or without a result.
    pub poll: Span,
    /// Building a packet, without copying its bytes and starting its operation.
    pub send: Span,
    /// Handling a packet that a poll found, without copying its bytes.
    pub receive: Span,
    /// Rate of copying bytes into descriptors and buffers, and out of slots and buffers.
    pub copy: Rate,
    /// Wake-up after sleeping in the kernel.
    pub wake: Span,
}

/// Why a configuration is refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The text is not TOML of this form, or has a value out of range.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The links' topology cannot be built.
    #[error("`links.topology`: {0}")]
    Topology(#[from] TopologyError),
    /// The links' topology sets its own number of nodes for a controller.
    #[error(
        "`links.topology` has {value} terminals; give it one for each controller, `crossbar.ports` says how many nodes each has"
    )]
    Terminals {
        /// Terminals found.
        value: usize,
    },
    /// More nodes than a packet can address.
    #[error(
        "{controllers} controllers of {nodes} nodes are more than the {MOST_NODES} nodes that a packet can name; take fewer of either"
    )]
    TooManyNodes {
        /// Controllers of `links.topology`.
        controllers: u64,
        /// `crossbar.ports`.
        nodes: u64,
    },
    /// More devices than there are addresses.
    #[error(
        "{controllers} controllers with {devices} devices each are more than the {MOST_NODES} devices that have addresses; make `io.devices` smaller"
    )]
    TooManyDevices {
        /// Controllers of `links.topology`.
        controllers: u64,
        /// `io.devices`.
        devices: usize,
    },
}

impl Config {
    /// Nodes of all controllers.
    pub fn nodes(&self) -> usize {
        let controllers = self.links.as_ref().and_then(|links| links.topology.build().ok());
        self.crossbar.ports * controllers.map_or(1, |topology| topology.routers())
    }

    /// The paper's prototype.
    pub fn prototype() -> Config {
        Config::parse(PROTOTYPE).expect("the prototype is checked by a test")
    }

    /// The prototype with the delays of its interface in gates. They are two: a module takes three
    /// cycles, and a packet leaves once it is whole.
    pub fn of_gates() -> Config {
        let mut config = Config::prototype();
        (config.nic.module_cycles, config.nic.packing) = (3, Packing::Gathered);
        config
    }

    /// Reads and checks a configuration. The text overrides the prototype, so one line changes one
    /// parameter.
    ///
    /// # Errors
    /// [`ParameterError::Form`] with line and column for text that is not TOML; those of
    /// [`Config::prototype_with`].
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::prototype_with(&read(text)?)
    }

    /// The paper's prototype with changes: a table of the same form with only the differing values.
    ///
    /// # Errors
    /// [`ParameterError::Form`] with the key for unknown keys and wrong types; those of
    /// [`Config::check`].
    pub fn prototype_with(changes: &toml::Table) -> Result<Config, ConfigError> {
        let mut table: toml::Table = read(PROTOTYPE)?;
        merge(&mut table, changes);
        let config: Config = table.try_into().map_err(ParameterError::from)?;
        config.check()?;
        Ok(config)
    }

    /// Refuses values out of range.
    ///
    /// # Errors
    /// The first value out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Config { link: _, nic, pcie, host, crossbar, io, links, program } = self;
        let any = 1..=u64::MAX;
        let (payload, request) = (pcie.max_payload.count(), pcie.read_request.count());
        let put = nic.put_payload.count();
        let link_packets = links.as_ref().map_or(1, |links| links.channel_packets as u64);
        let ranges = [
            ("nic.module_cycles", nic.module_cycles, 0..=1000),
            ("nic.header_cycles", nic.header_cycles, 0..=1000),
            ("nic.engine_cycles", nic.engine_cycles, 0..=1000),
            ("nic.descriptor_path", nic.descriptor_path.count(), any.clone()),
            ("nic.bus", nic.bus.count(), any.clone()),
            ("nic.functions", nic.functions as u64, 1..=8),
            ("nic.queue_pairs", nic.queue_pairs as u64, 1..=4),
            ("nic.doorbell_depth", nic.doorbell_depth as u64, 1..=64),
            ("nic.descriptor_words", nic.descriptor_words.into(), 4..=4096),
            ("nic.tags", nic.tags as u64, 1..=256),
            ("nic.put_payload", put, 4..=4096),
            ("nic.packet_header", nic.packet_header.count(), 16..=1024),
            ("host.processors", host.processors as u64, 1..=8),
            ("nic.descriptors_in_flight", nic.descriptors_in_flight as u64, any.clone()),
            ("nic.command_depth", nic.command_depth as u64, any.clone()),
            ("nic.remote_get_depth", nic.remote_get_depth as u64, any.clone()),
            // The packer gathers a NAP whole, and a read must fit beside a packet.
            ("nic.reorder", nic.reorder.count(), 2048.max(request + put)..=u64::MAX),
            ("nic.slot_cache", nic.slot_cache as u64, nic.slot_batch as u64..=u64::MAX),
            ("nic.slot_batch", nic.slot_batch as u64, 1..=request / 8),
            ("pcie.lanes", pcie.lanes, 1..=32),
            ("pcie.coding", pcie.coding[0], 1..=pcie.coding[1]),
            ("pcie.coding", pcie.coding[1], 1..=1 << 20),
            ("pcie.transfer_rate", pcie.transfer_rate.hz(), 1_000_000_000..=1_000_000_000_000),
            ("pcie.max_payload", payload, 16..=4096),
            ("pcie.read_request", request, 16..=4096),
            ("pcie.completion_boundary", pcie.completion_boundary.count(), 16..=payload),
            ("pcie.posted_headers", pcie.posted_headers, any.clone()),
            ("pcie.posted_data", pcie.posted_data, payload / 16 + 1..=u64::MAX),
            ("pcie.non_posted_headers", pcie.non_posted_headers, any.clone()),
            ("host.ring_entries", host.ring_entries, 2..=4096),
            ("host.slots", host.slots as u64, 1..=256),
            ("host.window", host.window.count(), 4 << 20..=1 << 32),
            ("crossbar.ports", crossbar.ports as u64, 1..=MOST_NODES),
            ("crossbar.channels", crossbar.channels as u64, 1..=16),
            ("crossbar.channel_packets", crossbar.channel_packets as u64, any.clone()),
            ("crossbar.receive_packets", crossbar.receive_packets as u64, any.clone()),
            ("io.devices", io.devices as u64, 0..=MOST_NODES),
            ("io.memory", io.memory.count(), 1..=1 << 30),
            ("io.buffer", io.buffer as u64, 1..=u64::from(u32::MAX)),
            ("links.channel_packets", link_packets, any.clone()),
            // With a poll that costs no time, a program that only polls would stop virtual time.
            ("program.poll", program.poll.ps(), any),
        ];
        within(ranges)?;
        if let Some(links) = links {
            let topology = links.topology.build()?;
            if topology.terminals() != topology.routers() {
                return Err(ConfigError::Terminals { value: topology.terminals() });
            }
            let (controllers, nodes) = (topology.routers() as u64, crossbar.ports as u64);
            if controllers.saturating_mul(nodes) > MOST_NODES {
                return Err(ConfigError::TooManyNodes { controllers, nodes });
            }
            if controllers * io.devices as u64 > MOST_NODES {
                return Err(ConfigError::TooManyDevices { controllers, devices: io.devices });
            }
        }
        // Longer times would leave the range of `Time`.
        let second = Span::from_ns(1_000_000_000);
        let zero = Span::ZERO;
        let spans = [
            ("nic.clock", nic.clock.period(), second / 1000),
            ("host.cpu_start", host.cpu_start, second),
            ("host.memory_latency", host.memory_latency, second),
            ("host.memory_jitter", host.memory_jitter, second),
            ("pcie.latency", pcie.latency, second),
            ("links.latency", links.as_ref().map_or(zero, |links| links.latency), second),
        ];
        for (name, value, most) in spans {
            demand(name, &value, value <= most, format!("{most} at most"))?;
        }
        let powers = [
            ("pcie.max_payload", pcie.max_payload),
            ("pcie.read_request", pcie.read_request),
            ("pcie.completion_boundary", pcie.completion_boundary),
            ("nic.bus", nic.bus),
        ];
        for (name, bytes) in powers {
            demand(name, &bytes, bytes.count().is_power_of_two(), "a power of two")?;
        }
        let pages = host.window.count().is_multiple_of(4096);
        demand("host.window", &host.window, pages, "a multiple of 4096 B")?;
        let held = can_hold(host.window.count() * nic.functions as u64);
        let what = "so small that this computer has memory for each function";
        demand("host.window", &host.window, held, what)?;
        Ok(())
    }
}

/// Nodes that the four-bit processor field of a packet can address.
const MOST_NODES: u64 = 16;

/// Overrides values of `table` with those of `changes`, table by table.
fn merge(table: &mut toml::Table, changes: &toml::Table) {
    for (key, change) in changes {
        match (table.get_mut(key), change) {
            (Some(toml::Value::Table(inner)), toml::Value::Table(changes)) => merge(inner, changes),
            _ => {
                table.insert(key.clone(), change.clone());
            }
        }
    }
}

impl Arbitration {
    /// An arbiter over `requesters` requesters.
    pub fn arbiter(&self, requesters: usize, random: &mut Random) -> Arbiter {
        let weight = |at| self.weights.get(at).copied().unwrap_or(1);
        match self.policy {
            Policy::Weighted => {
                let weights: Vec<u32> = (0..requesters).map(weight).collect();
                Arbiter::weighted(&weights, random)
            }
            policy => Arbiter::new(policy, requesters, random),
        }
    }
}

impl NicConfig {
    /// Length of a cycle.
    pub fn cycle(&self) -> Span {
        self.clock.period()
    }

    /// Delay of one block.
    pub fn module(&self) -> Span {
        self.cycle() * self.module_cycles
    }

    /// Beats of a network packet's header.
    pub fn packet_header_beats(&self) -> u64 {
        self.beats_of(self.packet_header.count())
    }

    /// Beats of the internal bus for `bytes` of data; the width of the bus is a power of two.
    pub fn beats_of(&self, bytes: u64) -> u64 {
        let bus = self.bus.count();
        (bytes + (bus - 1)) >> bus.trailing_zeros()
    }

    /// Time of the internal bus for `bytes` of data.
    pub fn beats(&self, bytes: u64) -> Span {
        self.cycle() * self.beats_of(bytes)
    }

    /// Time that a bus packet with `bytes` of data occupies an engine: header, data, engine (5.1).
    pub fn packet_time(&self, bytes: u64) -> Span {
        self.cycle() * (self.header_cycles + self.engine_cycles) + self.beats(bytes)
    }

    /// The first clock edge at or after `time`.
    pub fn edge(&self, time: Time) -> Time {
        self.clock.edge(time)
    }
}

impl PcieConfig {
    /// Rate of the wires in each direction, after coding.
    pub fn rate(&self) -> Rate {
        let bits = u128::from(self.transfer_rate.hz()) * u128::from(self.lanes * self.coding[0])
            / u128::from(self.coding[1]);
        Rate::from_bytes_per_second((bits / 8) as u64)
    }
}

impl Parameters for Config {
    const FILE: &'static str = PROTOTYPE;

    fn refusal(&self) -> Option<String> {
        self.check().err().map(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_valid(change: impl FnOnce(&mut Config)) -> bool {
        let mut config = Config::prototype();
        change(&mut config);
        assert_eq!(config.check().is_ok(), config.is_valid());
        config.is_valid()
    }

    /// A bus of 16 B at 250 MHz: 17 B take two beats, and a bus packet of them 3 + 2 cycles more.
    #[test]
    fn the_bus_moves_beats() {
        let mut nic = Config::prototype().nic;
        (nic.bus, nic.clock) = (Bytes::new(16), Frequency::from_mhz(250));
        (nic.header_cycles, nic.engine_cycles) = (3, 2);
        assert_eq!([0, 1, 16, 17, 32].map(|bytes| nic.beats_of(bytes)), [0, 1, 1, 2, 2]);
        assert_eq!(nic.beats(17), Span::from_ns(8));
        assert_eq!(nic.packet_time(17), Span::from_ns(4 * (3 + 2 + 2)));
        assert_eq!(nic.packet_time(0), Span::from_ns(4 * (3 + 2)));
        nic.packet_header = Bytes::new(33);
        assert_eq!(nic.packet_header_beats(), 3);
        nic.bus = Bytes::new(1);
        assert_eq!((nic.beats_of(5), nic.packet_header_beats()), (5, 33));
    }

    /// Limits that follow from other parameters hold to the byte.
    #[test]
    fn limits_follow_from_each_other() {
        let reorder = |put, request, reorder| {
            is_valid(|config| {
                config.nic.put_payload = Bytes::new(put);
                config.pcie.read_request = Bytes::new(request);
                (config.nic.slot_batch, config.nic.slot_cache) = (1, 64);
                config.nic.reorder = Bytes::new(reorder);
            })
        };
        assert!(reorder(4096, 512, 4608) && !reorder(4096, 512, 4607));
        assert!(reorder(64, 64, 2048) && !reorder(64, 64, 2047));
        let batch = |batch, cache| {
            is_valid(|config| {
                config.pcie.read_request = Bytes::new(512);
                (config.nic.slot_batch, config.nic.slot_cache) = (batch, cache);
            })
        };
        assert!(batch(64, 64) && !batch(65, 65) && !batch(64, 63) && batch(1, 1));
        let posted = |payload, data| {
            is_valid(|config| {
                config.pcie.max_payload = Bytes::new(payload);
                config.pcie.completion_boundary = Bytes::new(16);
                config.pcie.posted_data = data;
            })
        };
        assert!(posted(256, 17) && !posted(256, 16) && posted(16, 2) && !posted(16, 1));
        let window = |bytes| is_valid(|config| config.host.window = Bytes::new(bytes));
        assert!(window(4 << 20) && !window((4 << 20) - 4096) && !window((4 << 20) + 1));
        // The computer may have less memory.
        assert_eq!(window(1 << 32), can_hold(8 << 32));
        assert!(!window((1 << 32) + 4096));
        let clock = |hz| is_valid(|config| config.nic.clock = Frequency::from_hz(hz));
        assert!(clock(1000) && !clock(999));
        let start = |ns| is_valid(|config| config.host.cpu_start = Span::from_ns(ns));
        assert!(start(1_000_000_000) && !start(1_000_000_001));
        assert!(is_valid(|config| config.pcie.coding = [1, 1 << 20]));
        assert!(!is_valid(|config| config.pcie.coding = [1, (1 << 20) + 1]));
    }

    /// A change of one parameter leaves its neighbours in the table as they are.
    #[test]
    fn changes_are_merged() {
        let config = Config::parse("[nic]\nmodule_cycles = 17\n").unwrap();
        let mut expected = Config::prototype();
        expected.nic.module_cycles = 17;
        assert!(config == expected);
    }
}
