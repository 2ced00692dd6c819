//! The bus: wires in each direction, and the packets on them.
//!
//! A packet occupies the wires for its own bytes and its header's. Packets go one after another in
//! the order in which they are sent. The other end takes a packet `one_way` after its last byte.

use bellwire_protocol::canary::planted;

use super::config::BusConfig;
use crate::engine::{Server, Service};
use crate::units::{Bytes, Span, Time};

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Words of a descriptor that a process writes.
    PioWrite,
    /// A doorbell.
    Doorbell,
    /// A process reads credits from the interface; request and answer.
    PioRead,
    /// The interface reads a descriptor; request and answer.
    DescriptorRead,
    /// The interface reads message data; request and answer.
    DataRead,
    /// The interface writes a port's status line in host memory.
    Status,
}

/// The wires of one direction.
#[derive(Clone, Debug, Default)]
pub struct Wires {
    server: Server,
    packets: [u64; 6],
    bytes: [u64; 6],
}

/// Both directions.
#[derive(Clone, Debug)]
pub struct Bus {
    config: BusConfig,
    /// From host to interface.
    pub down: Wires,
    /// From interface to host.
    pub up: Wires,
}

/// The times of one packet.
#[derive(Clone, Copy, Debug)]
pub struct Passage {
    /// When its first byte goes onto the wires.
    pub begins: Time,
    /// When the other end takes it.
    pub arrives: Time,
}

impl Wires {
    /// Packets of one kind.
    pub fn packets(&self, traffic: Traffic) -> u64 {
        self.packets[traffic as usize]
    }

    /// Bytes of packets of one kind, headers included.
    pub fn bytes(&self, traffic: Traffic) -> u64 {
        self.bytes[traffic as usize]
    }

    fn transmit(&mut self, config: &BusConfig, now: Time, traffic: Traffic, bytes: u64) -> Passage {
        let bytes = bytes + config.header.count();
        let Service { begins, ends } =
            self.server.reserve(now, config.rate.time(Bytes::new(bytes)));
        self.packets[traffic as usize] += 1;
        self.bytes[traffic as usize] += bytes;
        // Canary: the latency is charged at both ends.
        let again = if planted("damq-pd-latency-twice") { config.one_way } else { Span::ZERO };
        Passage { begins, arrives: ends + config.one_way + again }
    }
}

impl Bus {
    /// A bus with idle wires.
    pub fn new(config: &BusConfig) -> Bus {
        Bus { config: config.clone(), down: Wires::default(), up: Wires::default() }
    }

    /// Sends a packet of `bytes` to the interface, now.
    pub fn send_down(&mut self, now: Time, traffic: Traffic, bytes: u64) -> Passage {
        self.down.transmit(&self.config, now, traffic, bytes)
    }

    /// Sends a packet of `bytes` to the host, now.
    pub fn send_up(&mut self, now: Time, traffic: Traffic, bytes: u64) -> Passage {
        if planted("damq-pd-shared-wires") {
            // Canary: both directions have the same wires.
            self.up.server.close_until(self.down.server.free_at());
        }
        self.up.transmit(&self.config, now, traffic, bytes)
    }
}
