//! The parameters of a link, read from TOML; `smp.toml` is the paper's and says where each value comes from.

use serde::{Deserialize, Serialize};

pub use crate::form::ParameterError as ConfigError;
use crate::form::{demand as of, read};
use crate::units::{Bytes, Frequency, Span};

/// The link of the paper in the setting that it recommends.
pub const RECOMMENDED: &str = include_str!("smp.toml");

/// Credits of the types that are never sent: header and data, for requests that want an answer and for answers.
const OTHER_TYPES: u16 = 4;

/// When the receiver begins to pass a packet on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receive {
    /// When all of it is in its buffer (S-20).
    StoreAndForward,
    /// When its header is (S-21).
    CutThrough,
}

/// The form of the network header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Header {
    /// 4 DW in the payload (S-10).
    Standard,
    /// 2 DW in the address of the TLP (S-11).
    Optimised,
}

/// All parameters of a link, the same for both ends.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Frequency of the layers.
    pub clock: Frequency,
    /// Frequency of the network layer, which moves packets into and out of the transport layer.
    pub network_clock: Frequency,
    /// Bytes that the layers move in a cycle.
    pub path: Bytes,
    /// Cycles from the input of a layer to its output, for a packet.
    pub layer_cycles: u64,
    /// What a packet of the link layer takes beside wires and Serdes, at both ends together.
    pub link_packet: Span,
    /// Cycles of the network layer between packets at the exit of the receive buffer.
    pub drain_gap_cycles: u64,
    /// Lanes: 1, 2, 4 or 8.
    pub lanes: u8,
    /// Bits that a lane carries in a second, coded.
    pub lane_rate: Frequency,
    /// Data bits per coded bits.
    pub coding: [u64; 2],
    /// Delay of the Serdes at each side.
    pub serdes: Span,
    /// The receiver's policy.
    pub receive: Receive,
    /// The network header's form.
    pub header: Header,
    /// Virtual channels in use: 1 or 2.
    pub channels: u8,
    /// Bytes of the replay buffer.
    pub replay_buffer: Bytes,
    /// Posted header credits of each channel.
    pub headers: u8,
    /// Posted data credits of each channel, of 4 DW each.
    pub data: u16,
    /// Packets of a channel that wait in the transport layer to be sent.
    pub send_packets: usize,
    /// Packets of a channel that wait in the network layer for their user.
    pub network_packets: usize,
    /// How long an acknowledgement may wait for others, with 8 lanes at full speed.
    pub acknowledge_after: Span,
    /// After how long without one all is sent again, with 8 lanes at full speed.
    pub replay_after: Span,
    /// After how long credits are said again.
    pub update_again_after: Span,
    /// How often they are said again if no packet comes.
    pub updates_repeated: u32,
    /// How long recovery takes.
    pub retrain: Span,
    /// Chance that a bit is received wrong.
    pub bit_errors: f64,
}

impl Config {
    /// The recommended setting (S-30).
    pub fn recommended() -> Config {
        Config::read(RECOMMENDED).expect("the file that is built in is right")
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
        let power = |value: u64| value.is_power_of_two();
        let positive = |span: Span| span > Span::ZERO;
        of(
            "path",
            &self.path,
            power(self.path.count()) && self.path.count() <= 64,
            "a power of two up to 64 B",
        )?;
        of("layer_cycles", &self.layer_cycles, self.layer_cycles <= 1000, "at most 1000")?;
        of(
            "drain_gap_cycles",
            &self.drain_gap_cycles,
            self.drain_gap_cycles <= 1000,
            "at most 1000",
        )?;
        of("lanes", &self.lanes, self.lanes <= 8 && power(self.lanes.into()), "1, 2, 4 or 8")?;
        let rate = self.lane_rate.hz();
        of(
            "lane_rate",
            &self.lane_rate,
            (1_000_000_000..=100_000_000_000).contains(&rate),
            "1 to 100 GHz",
        )?;
        let [data, coded] = self.coding;
        of(
            "coding",
            &format!("{data}/{coded}"),
            0 < data && data <= coded && coded <= 256,
            "at most 1, like [8, 10]",
        )?;
        of("channels", &self.channels, matches!(self.channels, 1 | 2), "1 or 2")?;
        let replay = self.replay_buffer.count();
        let longest = bellwire_wire::link::tlp::MAX_TLP_BYTES as u64;
        of(
            "replay_buffer",
            &self.replay_buffer,
            (longest..=1 << 20).contains(&replay),
            "532 B to 1 MiB",
        )?;
        of("headers", &self.headers, (1..128).contains(&self.headers), "1 to 127")?;
        of(
            "data",
            &self.data,
            (32..2048).contains(&self.data),
            "32 to 2047, as the longest packet takes 32",
        )?;
        of(
            "send_packets",
            &self.send_packets,
            (1..=1024).contains(&self.send_packets),
            "1 to 1024",
        )?;
        of(
            "network_packets",
            &self.network_packets,
            (1..=1024).contains(&self.network_packets),
            "1 to 1024",
        )?;
        of(
            "acknowledge_after",
            &self.acknowledge_after,
            self.acknowledge_after < self.replay_after,
            "less than replay_after",
        )?;
        of(
            "update_again_after",
            &self.update_again_after,
            positive(self.update_again_after),
            "more than 0",
        )?;
        of("retrain", &self.retrain, positive(self.retrain), "more than 0")?;
        of(
            "bit_errors",
            &self.bit_errors,
            (0.0..0.01).contains(&self.bit_errors),
            "0 to 0.01, or no frame ever passes",
        )
    }

    /// The credits that posted writes get by default in a receive buffer that is divided among all types of packets (S-25, B-20;
    /// 4.2(2)): 4 headers and 24 data credits for each KB.
    pub fn with_default_credits(self, kilobytes: u8) -> Config {
        Config { headers: 4 * kilobytes, data: 24 * u16::from(kilobytes), ..self }
    }

    /// The credits that posted writes get when all other types are held at the minimum, one header and one data credit each for
    /// requests that want an answer and for answers (S-26; 4.2(2)): the rest of the buffer beside `headers`, at 16 B a credit.
    pub fn with_optimised_credits(self, kilobytes: u16, headers: u8) -> Config {
        let credits = kilobytes * 1024 / 16 - OTHER_TYPES;
        Config { headers, data: credits - u16::from(headers), ..self }
    }

    /// Bytes of receive buffer that a channel's credits stand for, the minimum of the other types included.
    pub fn receive_buffer(&self) -> Bytes {
        Bytes::new(16 * (u64::from(self.headers) + u64::from(self.data) + u64::from(OTHER_TYPES)))
    }

    /// Length of a cycle.
    pub fn cycle(&self) -> Span {
        self.clock.period()
    }

    /// Delay of a layer for a packet.
    pub fn layer(&self) -> Span {
        self.cycle() * self.layer_cycles
    }

    /// How long the network layer needs to move this many bytes.
    pub fn pass(&self, bytes: usize) -> Span {
        self.network_clock.period() * (bytes as u64).div_ceil(self.path.count())
    }

    /// How long the exit of the receive buffer stands still between two packets.
    pub fn drain_gap(&self) -> Span {
        self.network_clock.period() * self.drain_gap_cycles
    }
}
