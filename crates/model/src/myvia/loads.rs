//! Loads of two hosts, for trials with any parameters. The parameter `name` chooses among the
//! paper's systems.

use serde::{Deserialize, Serialize};

use super::Setup;
use super::machine::Machine;
use super::programs::{Lengths, PingPong, Places, window};
use crate::trial::{Load, Measured, Quantity, Trial, high, low, within};
use crate::units::{Bytes, Time};

/// The loads.
pub const LOADS: [Trial; 2] = [Trial::of::<PingPongs>(), Trial::of::<Stream>()];

/// The longest message.
const LONGEST_BYTES: u64 = 1 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PingPongs {
    bytes: Bytes,
    rounds: u64,
}

impl Default for PingPongs {
    fn default() -> PingPongs {
        PingPongs { bytes: Bytes::new(4), rounds: 20 }
    }
}

impl Load for PingPongs {
    type System = Setup;
    const NAME: &'static str = "ping-pong";
    const TITLE: &'static str = "a message to and fro between two hosts";
    const QUANTITIES: &'static [Quantity] = &[low("one_way_us", "half of the mean round trip")];

    fn base(changed: &dyn Fn(&str) -> Option<String>) -> Result<Setup, String> {
        setup(changed)
    }

    fn run(&self, system: &Setup, seed: u64) -> Result<Measured, String> {
        let bytes = message(self.bytes)?;
        within("rounds", self.rounds, 1, 100_000)?;
        let mut running = Machine::new(system, 2, seed).map_err(|error| error.to_string())?;
        let mut program = PingPong::begin(&mut running, Lengths::Fixed(bytes), self.rounds)?;
        running.run_program(&mut program, Time::NEVER);
        running.model.audit(running.schedule.now())?;
        let ended = program.ended.filter(|_| program.faults == 0);
        let ended = ended.ok_or("the ping-pong did not end")?;
        let one_way = ended.since(Time::ZERO) / (2 * self.rounds);
        Ok(Measured { figures: vec![one_way.as_ns() / 1e3], trace_hash: running.trace_hash() })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stream {
    bytes: Bytes,
    messages: u64,
}

impl Default for Stream {
    fn default() -> Stream {
        Stream { bytes: Bytes::new(32_768), messages: 100 }
    }
}

impl Load for Stream {
    type System = Setup;
    const NAME: &'static str = "stream";
    const TITLE: &'static str = "messages one after another from one host to the other";
    const QUANTITIES: &'static [Quantity] = &[
        high("bandwidth_MB_s", "bytes that came per second"),
        high("messages_k_s", "thousands of messages per second"),
    ];

    fn base(changed: &dyn Fn(&str) -> Option<String>) -> Result<Setup, String> {
        setup(changed)
    }

    fn run(&self, system: &Setup, seed: u64) -> Result<Measured, String> {
        let bytes = message(self.bytes)?;
        within("messages", self.messages, 1, 100_000)?;
        let flow = window(system, Lengths::Fixed(bytes), Places::Reused, self.messages, seed)?;
        let figures = vec![flow.megabytes_per_second, flow.messages_per_second / 1e3];
        Ok(Measured { figures, trace_hash: flow.running.trace_hash() })
    }
}

fn setup(changed: &dyn Fn(&str) -> Option<String>) -> Result<Setup, String> {
    let name = changed("name").unwrap_or_else(|| "myvia-b".to_owned());
    Setup::paper(&name).map_err(|error| error.to_string())
}

fn message(bytes: Bytes) -> Result<u32, String> {
    within("bytes", bytes.count(), 1, LONGEST_BYTES)?;
    Ok(bytes.count() as u32)
}
