//! Short measurements of the experiments, of a configuration that may have been changed:
//! `perturbed.toml` says what must follow. Bytes count with the receiver's event.

use super::Kind;
use super::fig15::{with_mtu, with_slow_reads};
use super::fig18::{self, point};
use super::fig19::shares_of;
use super::links;
use super::single::single;
use super::staged::{DIRECT, STAGED, transfer};
use super::start;
use super::stream::stream;
use crate::chpp::Config;
use crate::chpp::config::Start;
use crate::network::Shape;
use crate::perturbed::{Probe, exact, within};
use crate::units::Span;

/// What must follow from each change.
pub const EXPECTED: &str = include_str!("../perturbed.toml");

/// Bytes of one operation.
const BYTES: u64 = 64;

/// The measurements.
pub const PROBES: [Probe<Config>; 13] = [
    Probe {
        experiment: "table3",
        figures: &[
            exact("64 B: NAP immediate", "ns"),
            exact("64 B: NAP indirect", "ns"),
            exact("64 B: PUT", "ns"),
            exact("64 B: GET", "ns"),
        ],
        base: Config::prototype,
        run: |config| Kind::ALL.into_iter().map(|kind| latency(config, kind)).collect(),
    },
    Probe {
        experiment: "fig16",
        figures: &[within(0.5, "64 KB: PUTs", "GB/s")],
        base: Config::prototype,
        run: puts,
    },
    Probe {
        experiment: "fig15",
        figures: &[within(0.5, "MTU 256 B: PUTs", "GB/s")],
        base: || with_mtu(256),
        run: puts,
    },
    Probe {
        experiment: "fig15",
        // Tags are the bottleneck, so that some cycles of 1670 hardly count.
        figures: &[within(3.0, "slow reads, MTU 256 B: PUTs", "GB/s")],
        base: with_slow_reads,
        run: puts,
    },
    Probe {
        experiment: "eq2",
        figures: &[within(0.5, "one tag: a read", "cycles")],
        base: || {
            let mut config = Config::prototype();
            config.nic.tags = 1;
            config
        },
        run: |config| Ok(vec![stream(config, Kind::Put, 4096, 1, 1)?.round_trip_cycles]),
    },
    Probe {
        experiment: "fig18",
        figures: &[within(4.0, "full load: 4 ports", "of the peak")],
        base: || fig18::config(4, 2),
        run: |config| {
            let seeds = [1, 2, 3];
            let run = |seed| Ok(point(config, 1.0, Span::from_ns(120_000), seed)?.throughput);
            let runs = seeds.into_iter().map(run).collect::<Result<Vec<f64>, String>>()?;
            Ok(vec![runs.iter().sum::<f64>() / runs.len() as f64])
        },
    },
    Probe {
        experiment: "fig19",
        // Lengths are drawn, and each function has only a dozen in so short a run.
        figures: &[within(50.0, "always busy: share of function 0", "%")],
        base: Config::prototype,
        run: |config| Ok(vec![shares_of(config, &[60_000], true, 5)?[0][0]]),
    },
    Probe {
        experiment: "staged",
        figures: &[
            within(0.2, "co-processors, 4 KB: direct", "ns"),
            within(0.2, "co-processors, 4 KB: staged", "ns"),
        ],
        base: Config::prototype,
        run: |config| {
            [DIRECT, STAGED].into_iter().map(|way| transfer(config, way, 4096, 4096, 1)).collect()
        },
    },
    Probe {
        experiment: "start",
        figures: &[exact("stored descriptor: PUT, 64 B", "ns")],
        base: || start::with(Start::Descriptor, 1),
        run: |config| Ok(vec![latency(config, Kind::Put)?]),
    },
    Probe {
        experiment: "start",
        figures: &[exact("stored descriptor: PUT, 64 B, shared buffer", "ns")],
        base: || start::with(Start::DamqPd, 1),
        run: |config| Ok(vec![latency(config, Kind::Put)?]),
    },
    Probe {
        experiment: "start",
        figures: &[exact("stored descriptor: PUT, 64 B, own ring", "ns")],
        base: || start::with(Start::Ring, 1),
        run: |config| Ok(vec![latency(config, Kind::Put)?]),
    },
    Probe {
        experiment: "start",
        figures: &[within(1.0, "stored descriptors: 4 threads", "op/us")],
        base: || start::with(Start::Descriptor, 4),
        run: |config| Ok(vec![start::many_of(config, 4, Span::from_ns(40_000), 1)?.per_us]),
    },
    Probe {
        experiment: "links",
        figures: &[exact("linked controllers: PUT, 64 B", "ns")],
        base: || links::config(Shape::Ring { routers: 4 }, 1),
        run: |config| Ok(vec![latency(config, Kind::Put)?]),
    },
];

/// The bandwidth of PUTs of 64 KB, four of them at a time.
fn puts(config: &Config) -> Result<Vec<f64>, String> {
    Ok(vec![stream(config, Kind::Put, 64 << 10, 4, 12)?.gigabytes_s])
}

fn latency(config: &Config, kind: Kind) -> Result<f64, String> {
    Ok(single(config, kind, BYTES)?.latency.as_ns())
}
