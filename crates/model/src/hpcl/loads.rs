//! Loads of the cluster, for trials with any parameters.

use serde::{Deserialize, Serialize};

use super::config::Config;
use super::experiments::measure::{RoundTrip, trips};
use super::machine::Machine;
use super::process::{Over, all_to_all, burst};
use crate::trial::{Load, Measured, Quantity, Trial, high, low, within};
use crate::units::{Bytes, Span};

/// The loads.
pub const LOADS: [Trial; 3] =
    [Trial::of::<RoundTrips>(), Trial::of::<Burst>(), Trial::of::<AllToAll>()];

/// The time limit of a run, in virtual time.
const MOST: Span = Span::from_ns(60_000_000_000);

/// The longest message that all transports carry.
const LONGEST_BYTES: u64 = 1 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RoundTrips {
    over: Over,
    bytes: Bytes,
    rounds: u64,
}

impl Default for RoundTrips {
    fn default() -> RoundTrips {
        RoundTrips { over: Over::Hpcl, bytes: Bytes::new(128), rounds: 50 }
    }
}

impl Load for RoundTrips {
    type System = Config;
    const NAME: &'static str = "round-trip";
    const TITLE: &'static str = "messages to and fro between two nodes, `over` hpcl or tcp";
    const QUANTITIES: &'static [Quantity] =
        &[low("round_trip_us", "mean time of a round trip, after the first ten")];

    fn base(_: &dyn Fn(&str) -> Option<String>) -> Result<Config, String> {
        Ok(two_nodes())
    }

    fn run(&self, system: &Config, seed: u64) -> Result<Measured, String> {
        /// Round trips that do not count.
        const WARM_UP: usize = 10;
        let bytes = message(self.bytes)?;
        within("rounds", self.rounds, 1, 100_000)?;
        let rounds = self.rounds as usize + WARM_UP;
        let RoundTrip { us, trace_hash, .. } =
            trips(Machine::new(system, seed)?, self.over, bytes, WARM_UP, rounds)?;
        Ok(Measured { figures: vec![us], trace_hash })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Burst {
    over: Over,
    bytes: Bytes,
    messages: u64,
}

impl Default for Burst {
    fn default() -> Burst {
        Burst { over: Over::Hpcl, bytes: Bytes::new(1196), messages: 300 }
    }
}

impl Load for Burst {
    type System = Config;
    const NAME: &'static str = "burst";
    const TITLE: &'static str =
        "messages one after another from node 0 to node 1, and an answer to the last";
    const QUANTITIES: &'static [Quantity] =
        &[high("bandwidth_MB_s", "bytes of messages per second, until the answer is there")];

    fn base(_: &dyn Fn(&str) -> Option<String>) -> Result<Config, String> {
        Ok(two_nodes())
    }

    fn run(&self, system: &Config, seed: u64) -> Result<Measured, String> {
        let bytes = message(self.bytes)?;
        within("messages", self.messages, 1, 100_000)?;
        let mut running = Machine::new(system, seed)?;
        running.begin(burst(self.over, bytes, self.messages as usize));
        let time = finish(&mut running)?;
        let moved = (self.messages * u64::from(bytes)) as f64;
        let figures = vec![moved * 1e3 / time.as_ns()];
        Ok(Measured { figures, trace_hash: running.trace_hash() })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AllToAll {
    bytes: Bytes,
    rounds: u64,
}

impl Default for AllToAll {
    fn default() -> AllToAll {
        AllToAll { bytes: Bytes::new(1196), rounds: 5 }
    }
}

impl Load for AllToAll {
    type System = Config;
    const NAME: &'static str = "all-to-all";
    const TITLE: &'static str = "each node sends a message to each other node, `rounds` times";
    const QUANTITIES: &'static [Quantity] = &[low("exchange_us", "until all messages are there")];

    fn base(_: &dyn Fn(&str) -> Option<String>) -> Result<Config, String> {
        Ok(Config { nodes: 4, ..Config::paper() })
    }

    fn run(&self, system: &Config, seed: u64) -> Result<Measured, String> {
        let bytes = message(self.bytes)?;
        within("rounds", self.rounds, 1, 10_000)?;
        let mut running = Machine::new(system, seed)?;
        running.begin(all_to_all(system.nodes, bytes, self.rounds as usize));
        let time = finish(&mut running)?;
        Ok(Measured { figures: vec![time.as_ns() / 1e3], trace_hash: running.trace_hash() })
    }
}

fn two_nodes() -> Config {
    Config { nodes: 2, ..Config::paper() }
}

fn message(bytes: Bytes) -> Result<u32, String> {
    within("bytes", bytes.count(), 1, LONGEST_BYTES)?;
    Ok(bytes.count() as u32)
}

/// Runs to the end, lets the last acknowledgements come, and checks the laws.
fn finish(running: &mut Machine) -> Result<Span, String> {
    let time = running.finish(MOST)?;
    running.settle(Span::from_ns(200_000_000));
    running.audit().map_err(|error| error.to_string())?;
    Ok(time)
}
