//! The parameters of a link, read from TOML; `smp.toml` has the paper's values and their sources.

use serde::{Deserialize, Serialize};

pub use crate::form::ParameterError as ConfigError;
use crate::form::{demand as of, read};
use crate::sensitivity::Parameters;
use crate::units::{Bytes, Frequency, Span};

/// The paper's link with the recommended setting.
pub const RECOMMENDED: &str = include_str!("smp.toml");

/// Credits of the packet types that are never sent: header and data, for non-posted requests and
/// for completions.
const OTHER_TYPES: u16 = 4;

/// When the receiver starts to forward a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receive {
    /// When the whole packet is in its buffer (S-20).
    StoreAndForward,
    /// When the header is in its buffer (S-21).
    CutThrough,
}

/// Form of the network header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Header {
    /// 4 DW in the payload (S-10).
    Standard,
    /// 2 DW in the address of the TLP (S-11).
    Optimised,
}

/// All parameters of a link; both ends have the same.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Clock of the layers.
    pub clock: Frequency,
    /// Clock of the network layer, which takes packets out of the transport layer.
    pub network_clock: Frequency,
    /// Bytes that the layers move per cycle.
    pub path: Bytes,
    /// Cycles from the input to the output of a layer, for a packet.
    pub layer_cycles: u64,
    /// Extra time of a link-layer packet beyond wires and Serdes, both ends together.
    pub link_packet: Span,
    /// Lanes: 1, 2, 4 or 8.
    pub lanes: u8,
    /// Coded bits per second of a lane.
    pub lane_rate: Frequency,
    /// Data bits, and the coded bits that carry them.
    pub coding: [u64; 2],
    /// Delay of the Serdes at each side.
    pub serdes: Span,
    /// Store-and-forward or cut-through.
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
    /// Packets per channel that the transport layer queues to send.
    pub send_packets: usize,
    /// Packets per channel that the network layer queues for its user.
    pub network_packets: usize,
    /// The longest delay of an acknowledgement, with 8 lanes at full speed.
    pub acknowledge_after: Span,
    /// Time without an acknowledgement before a replay, with 8 lanes at full speed.
    pub replay_after: Span,
    /// Time before a credit update is repeated.
    pub update_again_after: Span,
    /// Number of repetitions, if no packet arrives.
    pub updates_repeated: u32,
    /// Duration of recovery.
    pub retrain: Span,
    /// Bit error rate.
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
        let power = |value: u64| value.is_power_of_two();
        let positive = |span: Span| span > Span::ZERO;
        of(
            "path",
            &self.path,
            power(self.path.count()) && self.path.count() <= 64,
            "a power of two up to 64 B",
        )?;
        of("layer_cycles", &self.layer_cycles, self.layer_cycles <= 1000, "at most 1000")?;
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

    /// Default credits of posted writes, in a receive buffer divided among all types of packets
    /// (S-25, B-20; 4.2(2)): 4 headers and 24 data credits per KB.
    pub fn with_default_credits(self, kilobytes: u8) -> Config {
        Config { headers: 4 * kilobytes, data: 24 * u16::from(kilobytes), ..self }
    }

    /// Credits of posted writes when all other types have the minimum: one header and one data
    /// credit each for non-posted requests and completions (S-26; 4.2(2)). Data credits get the
    /// rest of the buffer beside `headers`, 16 B each.
    pub fn with_optimised_credits(self, kilobytes: u16, headers: u8) -> Config {
        let credits = kilobytes * 1024 / 16 - OTHER_TYPES;
        Config { headers, data: credits - u16::from(headers), ..self }
    }

    /// Bytes of receive buffer behind a channel's credits, with the minimum for the other types.
    pub fn receive_buffer(&self) -> Bytes {
        Bytes::new(16 * (u64::from(self.headers) + u64::from(self.data) + u64::from(OTHER_TYPES)))
    }

    /// The clock period.
    pub fn cycle(&self) -> Span {
        self.clock.period()
    }

    /// Delay of a layer for a packet.
    pub fn layer(&self) -> Span {
        self.cycle() * self.layer_cycles
    }

    /// Cycles to move this many bytes over the path.
    pub fn beats(&self, bytes: usize) -> u64 {
        (bytes as u64).div_ceil(self.path.count())
    }

    /// Time for the network layer to move this many bytes.
    pub fn pass(&self, bytes: usize) -> Span {
        self.network_clock.period() * self.beats(bytes)
    }
}

impl Parameters for Config {
    const FILE: &'static str = RECOMMENDED;

    fn refusal(&self) -> Option<String> {
        self.check().err().map(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl FnOnce(&mut Config)) -> bool {
        let mut config = Config::recommended();
        change(&mut config);
        assert_eq!(config.check().is_ok(), config.is_valid());
        config.is_valid()
    }

    /// 2 KiB are 128 credits of 16 B. Other types have 4 of them, and 40 headers leave 84 for data.
    #[test]
    fn data_gets_the_rest_of_the_buffer() {
        let config = Config::recommended().with_optimised_credits(2, 40);
        assert_eq!((config.headers, config.data), (40, 84));
        assert_eq!(config.receive_buffer(), Bytes::new(2048));
    }

    /// Each limit holds, and what lies beside it does not.
    #[test]
    fn limits_are_exact() {
        let path = |bytes| with(|config| config.path = Bytes::new(bytes));
        assert_eq!([1, 64, 48, 128, 0].map(path), [true, true, false, false, false]);
        let lanes = |lanes| with(|config| config.lanes = lanes);
        assert_eq!([1, 8, 6, 16, 0].map(lanes), [true, true, false, false, false]);
        let coding = |data, coded| with(|config| config.coding = [data, coded]);
        assert!(coding(8, 10) && coding(8, 8) && coding(1, 256) && coding(256, 256));
        assert!(!coding(0, 10) && !coding(11, 10) && !coding(8, 257) && !coding(0, 0));
        assert!(with(|config| config.layer_cycles = 1000));
        assert!(!with(|config| config.layer_cycles = 1001));
        for change in [
            (|config| config.acknowledge_after = config.replay_after) as fn(&mut Config),
            |config| config.update_again_after = Span::ZERO,
            |config| config.retrain = Span::ZERO,
            |config| config.channels = 3,
        ] {
            assert!(!with(change));
        }
        assert!(with(|config| config.acknowledge_after = config.replay_after - Span::from_ps(1)));
        assert!(with(|config| config.retrain = Span::from_ps(1)));
    }

    /// Default credits are 4 headers and 24 data credits per KB. Optimised ones are all 16 B of the
    /// buffer, but for four of other types.
    #[test]
    fn credits_divide_the_buffer() {
        let config = Config::recommended();
        let default = config.clone().with_default_credits(3);
        assert_eq!((default.headers, default.data), (12, 72));
        let optimised = config.with_optimised_credits(2, 32);
        assert_eq!((optimised.headers, optimised.data), (32, 2 * 64 - 4 - 32));
        assert_eq!(optimised.receive_buffer(), Bytes::new(2048));
        assert_eq!(default.receive_buffer(), Bytes::new(16 * (12 + 72 + 4)));
    }
}
