//! The parameters, read from TOML; `damq_pd.toml` is the paper's interface and says where each
//! value comes from.

use bellwire_protocol::GrantPolicy;
use serde::{Deserialize, Serialize};

pub use crate::form::ParameterError as ConfigError;
use crate::form::{read, within};
use crate::sensitivity::Parameters;
use crate::units::{Bytes, Frequency, Rate, Span};

/// The paper's interface.
pub const PAPER: &str = include_str!("damq_pd.toml");

/// Words of the longest descriptor: 128 B.
pub const LONGEST: u16 = 4;

/// All parameters of an interface with its host.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The network interface.
    pub nic: NicConfig,
    /// The credit manager.
    pub credits: CreditConfig,
    /// The bus between host and interface.
    pub bus: BusConfig,
    /// Processes and their queues.
    pub host: HostConfig,
}

/// The network interface.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NicConfig {
    /// Clock of all blocks.
    pub clock: Frequency,
    /// Bytes in a word.
    pub word: Bytes,
    /// Words of the data memory for descriptors that come by PIO.
    pub depth: usize,
    /// Virtual ports, 1..=64.
    pub ports: usize,
    /// Organisation of the buffer.
    pub organisation: Organisation,
    /// Minimum cycles between the starts of two descriptors in the send engine.
    pub engine_cycles: u64,
    /// Words of the data memory for descriptors that come by DMA.
    pub landing: usize,
    /// Tags for descriptor reads: the most in flight.
    pub tags: usize,
    /// The most reads of message data in flight.
    pub data_reads: usize,
}

/// Organisation of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Organisation {
    /// One buffer for all ports.
    DamqPd,
    /// An equal part for each port, each with its own credits (B-09).
    Samq,
    /// One buffer whose pointers are a cycle late (B-10).
    DamqPf,
}

/// The credit manager.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct CreditConfig {
    /// How many words a grant has.
    #[serde(with = "PolicyForm")]
    pub policy: GrantPolicy,
    /// Words in the smallest grant.
    pub least: u16,
}

/// The policies, by their names in a configuration.
pub const POLICIES: [(&str, GrantPolicy); 3] = [
    ("all", GrantPolicy::All),
    ("half-of-free", GrantPolicy::HalfOfFree),
    ("history", GrantPolicy::History),
];

#[derive(Deserialize, Serialize)]
#[serde(remote = "GrantPolicy", rename_all = "kebab-case")]
enum PolicyForm {
    All,
    HalfOfFree,
    History,
}

/// The bus.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BusConfig {
    /// Rate in each direction.
    pub rate: Rate,
    /// Header bytes of each packet.
    pub header: Bytes,
    /// The most bytes of stores that write combining puts into one packet (D-12).
    pub burst: Bytes,
    /// From the last byte of a packet on the wires until the other end takes it.
    pub one_way: Span,
    /// From a processor's read of the interface to its answer.
    pub pio_read: Span,
    /// From a read of host memory to its data.
    pub dma_read: Span,
}

/// Processes and their queues.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// How descriptors are submitted.
    pub submission: Submission,
    /// Descriptors in a port's queue in host memory (D-20).
    pub queue: usize,
    /// Processor time to write a descriptor.
    pub store: Span,
}

/// How descriptors are submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Submission {
    /// By PIO while credits last, else by DMA (D-16).
    PioAndDma,
    /// Only by PIO: without credits a process polls (B-11).
    Pio,
    /// Only by DMA (B-12).
    Dma,
}

impl Config {
    /// The paper's interface.
    pub fn paper() -> Config {
        Config::parse(PAPER).expect("the paper's interface is checked by a test")
    }

    /// Reads and checks a configuration.
    ///
    /// # Errors
    /// [`ConfigError::Form`] with line and column for unknown keys, missing keys and wrong types;
    /// those of [`Config::check`].
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        let config: Config = read(text)?;
        config.check()?;
        Ok(config)
    }

    /// Refuses impossible values.
    ///
    /// # Errors
    /// The first impossible value.
    pub fn check(&self) -> Result<(), ConfigError> {
        let Config { nic, credits, bus, host } = self;
        let longest = u64::from(LONGEST);
        // A descriptor must fit what one port can be granted.
        let slice = match nic.organisation {
            Organisation::Samq => nic.depth / nic.ports.max(1),
            Organisation::DamqPd | Organisation::DamqPf => nic.depth,
        } as u64;
        let ranges = [
            ("nic.ports", nic.ports as u64, 1..=64),
            ("nic.depth", nic.depth as u64, longest..=32_768),
            ("nic.depth for each port", slice, longest..=32_768),
            ("nic.landing", nic.landing as u64, longest..=16_384),
            ("nic.engine_cycles", nic.engine_cycles, 1..=1_000_000),
            ("nic.tags", nic.tags as u64, 1..=4096),
            ("nic.data_reads", nic.data_reads as u64, 1..=65_536),
            ("nic.word", nic.word.count(), 8..=4096),
            ("credits.least", u64::from(credits.least), longest..=slice),
            ("bus.burst", bus.burst.count(), 1..=4096),
            ("bus.header", bus.header.count(), 0..=4096),
            ("bus.pio_read (ps)", bus.pio_read.ps(), 2 * bus.one_way.ps()..=1 << 40),
            ("bus.dma_read (ps)", bus.dma_read.ps(), 2 * bus.one_way.ps()..=1 << 40),
            ("host.queue", host.queue as u64, 1..=65_536),
        ];
        within(ranges)
    }
}

impl Parameters for Config {
    const FILE: &'static str = PAPER;

    fn refusal(&self) -> Option<String> {
        self.check().err().map(|why| why.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of a port must hold the least grant, and a read takes the way there and back.
    #[test]
    fn limits_belong_to_what_is_possible() {
        let of = |change: fn(&mut Config)| {
            let mut config = Config::paper();
            change(&mut config);
            config.is_valid()
        };
        assert!(of(|it| (it.nic.organisation, it.credits.least) = (Organisation::Samq, 256)));
        assert!(!of(|it| (it.nic.organisation, it.credits.least) = (Organisation::Samq, 257)));
        assert!(of(|it| it.credits.least = 257));
        assert!(of(|it| it.bus.dma_read = Span::from_ns(500)));
        assert!(!of(|it| it.bus.dma_read = Span::from_ns(499)));
    }
}
