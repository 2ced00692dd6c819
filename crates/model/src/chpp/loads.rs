//! Loads of the machine, for trials with any parameters.

use serde::{Deserialize, Serialize};

use super::Config;
use super::experiments::Kind;
use super::experiments::single::single_of;
use super::workload::{Arrival, Duration, Plan, Sizes, Traffic};
use crate::network::Pattern;
use crate::trial::{Load, Measured, Quantity, Trial, high, low};
use crate::units::{Bytes, Rate, Span};

/// The loads.
pub const LOADS: [Trial; 2] = [Trial::of::<Operation>(), Trial::of::<UnderTraffic>()];

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
