//! An interface with a doorbell, as small as a model can be: one file, one parameter file.
//!
//! ```text
//! processor -> doorbell -> DMA engine -> read request -> memory
//!                              |  <---- packets of data ----+
//!                              v
//!                            wire -> far DMA engine -> far memory, then its completion
//! ```
//!
//! Each unit that serves one thing at a time is a [`Server`]. A packet's end of service is the
//! beginning at the next unit, so packets follow each other without a loop that polls.

use bellwire_model::engine::{Event, Model, Schedule, Server, Simulation};
use bellwire_model::form::{self, ParameterError};
use bellwire_model::sensitivity::Parameters;
use bellwire_model::units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

/// The parameters of both nodes and the wire between them.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub host: Host,
    pub pcie: Pcie,
    pub nic: Nic,
    pub wire: Wire,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    pub post: Span,
    pub memory: Span,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pcie {
    pub rate: Rate,
    pub latency: Span,
    pub payload: Bytes,
    pub header: Bytes,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Nic {
    pub engine: Span,
}

#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Wire {
    pub rate: Rate,
    pub latency: Span,
    pub header: Bytes,
}

impl Config {
    pub fn paper() -> Config {
        form::read(Config::FILE).expect("a test reads the file")
    }

    pub fn check(&self) -> Result<(), ParameterError> {
        let payload = self.pcie.payload.count();
        form::within([("pcie.payload", payload, 8..=4096)])
    }
}

impl Parameters for Config {
    const FILE: &'static str = include_str!("nic.toml");

    fn refusal(&self) -> Option<String> {
        self.check().err().map(|why| why.to_string())
    }
}

/// Everything that can happen. The number is that of the message.
#[derive(Clone, Copy, Debug)]
pub enum NicEvent {
    /// The processor begins to post it.
    Post(u32),
    /// The doorbell reaches the interface.
    Doorbell(u32),
    /// The read request reaches the memory.
    Read(u32),
    /// A packet of this many bytes of data reaches the interface.
    Data(u32, u32),
    /// The packet has crossed the wire.
    Arrival(u32, u32),
    /// The packet is in the far memory.
    Written(u32, u32),
}

impl Event for NicEvent {
    fn trace(self) -> u64 {
        let (kind, message, bytes) = match self {
            NicEvent::Post(message) => (0, message, 0),
            NicEvent::Doorbell(message) => (1, message, 0),
            NicEvent::Read(message) => (2, message, 0),
            NicEvent::Data(message, bytes) => (3, message, bytes),
            NicEvent::Arrival(message, bytes) => (4, message, bytes),
            NicEvent::Written(message, bytes) => (5, message, bytes),
        };
        kind << 60 | u64::from(bytes) << 32 | u64::from(message)
    }
}

/// A message, from its post to its completion.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    pub bytes: u32,
    pub left: u32,
    pub posted: Time,
    pub completed: Option<Time>,
}

/// Both nodes. Data goes one way, so each unit stands where it is needed.
pub struct Hardware {
    config: Config,
    processor: Server,
    /// Wires between host and interface: to the interface, and from it.
    to_nic: Server,
    from_nic: Server,
    engine: Server,
    wire: Server,
    far_engine: Server,
    to_far_host: Server,
    pub messages: Vec<Message>,
}

impl Hardware {
    fn new(config: &Config) -> Hardware {
        Hardware {
            config: *config,
            processor: Server::default(),
            to_nic: Server::default(),
            from_nic: Server::default(),
            engine: Server::default(),
            wire: Server::default(),
            far_engine: Server::default(),
            to_far_host: Server::default(),
            messages: Vec::new(),
        }
    }

    /// The time of a packet with `bytes` of data on the wires to a host.
    fn on_pcie(&self, bytes: u32) -> Span {
        let Pcie { rate, header, .. } = self.config.pcie;
        rate.time(Bytes::new(header.count() + u64::from(bytes)))
    }

    fn on_wire(&self, bytes: u32) -> Span {
        let Wire { rate, header, .. } = self.config.wire;
        rate.time(Bytes::new(header.count() + u64::from(bytes)))
    }

    /// The memory answers a read: the data leaves in packets.
    fn answer(&mut self, message: u32, schedule: &mut Schedule<NicEvent>) {
        let ready = schedule.now() + self.config.host.memory;
        let payload = self.config.pcie.payload.count() as u32;
        let mut left = self.messages[message as usize].bytes;
        while left > 0 {
            let bytes = left.min(payload);
            let sent = self.to_nic.reserve(ready, self.on_pcie(bytes)).ends;
            schedule.at(sent + self.config.pcie.latency, NicEvent::Data(message, bytes));
            left -= bytes;
        }
    }
}

impl Model for Hardware {
    type Event = NicEvent;

    fn handle(&mut self, event: NicEvent, schedule: &mut Schedule<NicEvent>) {
        let now = schedule.now();
        let Config { host, pcie, nic, wire } = self.config;
        match event {
            NicEvent::Post(message) => {
                self.messages[message as usize].posted = now;
                let posted = self.processor.reserve(now, host.post).ends;
                let sent = self.to_nic.reserve(posted, self.on_pcie(8)).ends;
                schedule.at(sent + pcie.latency, NicEvent::Doorbell(message));
            }
            NicEvent::Doorbell(message) => {
                let asked = self.engine.reserve(now, nic.engine).ends;
                let sent = self.from_nic.reserve(asked, self.on_pcie(0)).ends;
                schedule.at(sent + pcie.latency, NicEvent::Read(message));
            }
            NicEvent::Read(message) => self.answer(message, schedule),
            NicEvent::Data(message, bytes) => {
                let packed = self.engine.reserve(now, nic.engine).ends;
                let sent = self.wire.reserve(packed, self.on_wire(bytes)).ends;
                schedule.at(sent + wire.latency, NicEvent::Arrival(message, bytes));
            }
            NicEvent::Arrival(message, bytes) => {
                let unpacked = self.far_engine.reserve(now, nic.engine).ends;
                let sent = self.to_far_host.reserve(unpacked, self.on_pcie(bytes)).ends;
                schedule.at(sent + pcie.latency, NicEvent::Written(message, bytes));
            }
            NicEvent::Written(message, bytes) => {
                let message = &mut self.messages[message as usize];
                message.left -= bytes;
                // The far program polls the last byte, so it sees the message with its last packet.
                if message.left == 0 {
                    message.completed = Some(now);
                }
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.messages.iter().all(|message| message.completed.is_some())
    }
}

/// The two nodes and their time.
pub type Machine = Simulation<Hardware>;

/// Two idle nodes.
pub fn machine(config: &Config, seed: u64) -> Machine {
    let schedule = Schedule::new(seed, Span::from_ns(4));
    Simulation { model: Hardware::new(config), schedule }
}

/// Posts a message of `bytes` now.
pub fn post(machine: &mut Machine, bytes: u32) {
    let (number, now) = (machine.model.messages.len() as u32, machine.now());
    machine.model.messages.push(Message { bytes, left: bytes, posted: now, completed: None });
    machine.schedule.at(now, NicEvent::Post(number));
}
