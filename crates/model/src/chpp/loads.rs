//! Loads of the machine, for trials with any parameters.

use serde::{Deserialize, Serialize};

use super::Config;
use super::experiments::Kind;
use super::experiments::single::single_of;
use super::workload::{Arrival, Duration, Execution, Plan, Sizes, Traffic};
use crate::goal::Schedule;
use crate::network::Pattern;
use crate::trial::{Load, Measured, Quantity, Trial, high, low, neither};
use crate::units::{Bytes, Rate, Span};

/// The loads.
pub const LOADS: [Trial; 3] =
    [Trial::of::<Operation>(), Trial::of::<UnderTraffic>(), Trial::of::<Program>()];

/// Messages of a program up to this length are eager, if nothing else is said.
pub(crate) const EAGER: Bytes = Bytes::new(1024);

/// The prototype with a node for each rank of a program, as far as it can have so many.
pub(crate) fn machine_of(ranks: usize) -> Config {
    let mut config = Config::prototype();
    config.crossbar.ports = ranks.clamp(2, 16);
    config.crossbar.channels = 4;
    config
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Operation {
    operation: Kind,
    bytes: Bytes,
}

impl Default for Operation {
    fn default() -> Operation {
        Operation { operation: Kind::Put, bytes: Bytes::new(64) }
    }
}

impl Load for Operation {
    type System = Config;
    const NAME: &'static str = "operation";
    const TITLE: &'static str = "one operation between two idle nodes";
    const QUANTITIES: &'static [Quantity] =
        &[low("latency_ns", "from the processor's start to the receiver's event")];

    fn base(_: &dyn Fn(&str) -> Option<String>) -> Result<Config, String> {
        Ok(Config::prototype())
    }

    fn run(&self, system: &Config, seed: u64) -> Result<Measured, String> {
        let (single, machine) =
            single_of(system, self.operation, self.bytes.count(), seed, |_| {})?;
        let figures = vec![single.latency.as_ns()];
        Ok(Measured { figures, trace_hash: machine.trace_hash() })
    }
}

/// The tables `traffic` and `run` of a plan, in one.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnderTraffic {
    operation: Kind,
    pattern: Pattern,
    arrival: Arrival,
    sizes: Sizes,
    time: Span,
    warm_up: Span,
}

impl Default for UnderTraffic {
    fn default() -> UnderTraffic {
        UnderTraffic {
            operation: Kind::Put,
            pattern: Pattern::Uniform,
            arrival: Arrival::Random { load: Rate::from_bytes_per_second(400_000_000) },
            sizes: Sizes::Bytes(Bytes::new(1024)),
            time: Span::from_ns(100_000),
            warm_up: Span::from_ns(20_000),
        }
    }
}

impl Load for UnderTraffic {
    type System = Config;
    const NAME: &'static str = "traffic";
    const TITLE: &'static str = "traffic as in a plan of `bellwire model run`";
    const QUANTITIES: &'static [Quantity] = &[
        low("latency_ns", "mean time from a message's posting to its final event"),
        low("p99_ns", "99th percentile of that time"),
        high("throughput_GB_s", "bytes of messages delivered per second, for each sending node"),
        high("fairness", "least through most bytes delivered from a node"),
    ];

    fn base(_: &dyn Fn(&str) -> Option<String>) -> Result<Config, String> {
        Ok(Config::prototype())
    }

    fn run(&self, system: &Config, seed: u64) -> Result<Measured, String> {
        let UnderTraffic { operation, pattern, arrival, sizes, time, warm_up } = self;
        let traffic = Traffic {
            operation: *operation,
            pattern: pattern.clone(),
            arrival: arrival.clone(),
            sizes: sizes.clone(),
        };
        let run = Duration { time: *time, warm_up: Some(*warm_up) };
        let plan = Plan { chpp: toml::Table::new(), traffic, run, seed };
        let report = plan.prepare(system)?.run(|_| {})?;
        let figures = vec![
            report.latency_ns.mean,
            report.percentiles_ns.p99.unwrap_or(f64::NAN),
            report.throughput_gb_s.mean,
            report.fairness(),
        ];
        Ok(Measured { figures, trace_hash: report.trace_hash })
    }
}

/// A program's schedule. Its text is the setting, so a sweep is whole in one file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    goal: String,
    eager: Bytes,
}

impl Program {
    /// A message from one rank to another.
    const EXAMPLE: &'static str =
        "num_ranks 2 rank 0 { send 4096b to 1 } rank 1 { recv 4096b from 0 }";

    fn schedule(goal: &str) -> Result<Schedule, String> {
        Schedule::read(goal).map_err(|error| format!("`load.goal`, {error}"))
    }
}

impl Default for Program {
    fn default() -> Program {
        Program { goal: Program::EXAMPLE.to_owned(), eager: EAGER }
    }
}

impl Load for Program {
    type System = Config;
    const NAME: &'static str = "program";
    const TITLE: &'static str =
        "a program's schedule to its end; `goal` is its text in GOAL, with a node for each rank";
    const QUANTITIES: &'static [Quantity] = &[
        low("time_us", "until the last operation ended"),
        neither("eager_messages", "messages that went as NAPs"),
        neither(
            "rendezvous_messages",
            "messages that went as PUTs, after a question and an answer",
        ),
        low("unexpected_messages", "messages at most that waited at a rank for a receive"),
    ];

    fn base(changed: &dyn Fn(&str) -> Option<String>) -> Result<Config, String> {
        let goal = changed("load.goal");
        let schedule = Program::schedule(goal.as_deref().unwrap_or(Program::EXAMPLE))?;
        Ok(machine_of(schedule.ranks.len()))
    }

    fn run(&self, system: &Config, seed: u64) -> Result<Measured, String> {
        let schedule = Program::schedule(&self.goal)?;
        let outcome = Execution::new(system, schedule, self.eager.count(), seed)?.run(|_| {})?;
        let figures = vec![
            outcome.time.as_ns() / 1e3,
            outcome.eager as f64,
            outcome.rendezvous as f64,
            outcome.most_unexpected as f64,
        ];
        Ok(Measured { figures, trace_hash: outcome.trace_hash })
    }
}
