//! Short measurements of switches and links, of a configuration that may have been changed:
//! `perturbed.toml` says what must follow. Beats count where they are delivered.

use super::{
    Allocation, Arrival, Duration, Experiment, FabricConfig, Pattern, Report, Select, Sizes,
    Topology, Traffic,
};
use crate::engine::Policy;
use crate::perturbed::{Probe, exact, within};

/// What must follow from each change.
pub const EXPECTED: &str = include_str!("perturbed.toml");

/// Ports of the crossbar under uniform traffic.
const PORTS: usize = 16;

/// Beats of the packet that is alone under way.
const BEATS: u16 = 8;

/// The measurements.
pub const PROBES: [Probe<FabricConfig>; 6] = [
    Probe {
        experiment: "crossbar",
        figures: &[within(2.0, "crossbar: full load, one queue", "of the line")],
        base: || one_queue(1),
        run: |config| Ok(vec![full_load(config)?]),
    },
    Probe {
        experiment: "crossbar",
        figures: &[within(2.0, "crossbar: full load, a queue for each output", "of the line")],
        base: each_output,
        run: |config| Ok(vec![full_load(config)?]),
    },
    Probe {
        experiment: "crossbar",
        figures: &[within(5.0, "crossbar: load 0.8, a queue for each output", "cycles")],
        base: each_output,
        run: |config| {
            let run = run(config, crossbar(PORTS), Traffic::uniform(0.8, 1), 60_000)?;
            Ok(vec![run.latency_cycles.mean])
        },
    },
    Probe {
        experiment: "link",
        figures: &[within(0.1, "link: full load", "of the line")],
        base: || FabricConfig {
            buffer_beats: 4,
            link_cycles: 4,
            credit_cycles: 2,
            ..FabricConfig::default()
        },
        run: |config| {
            let traffic = to_the_other(Arrival::Saturated, 1);
            Ok(vec![run(config, pair(), traffic, 10_000)?.throughput.mean])
        },
    },
    Probe {
        experiment: "link",
        figures: &[exact("link: one packet of 8 beats", "ns")],
        base: || FabricConfig { link_cycles: 2, pipeline_cycles: 3, ..FabricConfig::default() },
        run: |config| {
            let traffic = to_the_other(Arrival::Closed { window: 1 }, BEATS);
            let run = run(config, pair(), traffic, 10_000)?;
            Ok(vec![run.latency_cycles.mean * config.cycle().as_ns()])
        },
    },
    Probe {
        experiment: "hot-spot",
        figures: &[within(3.0, "hot spot: share of input 0", "1")],
        base: || FabricConfig {
            allocation: Allocation::Policy(Policy::Weighted),
            weights: vec![3, 1, 1, 1],
            ..FabricConfig::default()
        },
        run: |config| {
            let hot = Traffic {
                pattern: Pattern::HotSpot { terminal: 0, share: 1.0 },
                arrival: Arrival::Saturated,
                sizes: Sizes::Beats(1),
            };
            let from = run(config, crossbar(4), hot, 20_000)?.delivered_from;
            Ok(vec![from[0] as f64 / from.iter().sum::<u64>() as f64])
        },
    },
];

/// Inputs with this many virtual channels, without limit and without delay.
fn one_queue(vcs: u8) -> FabricConfig {
    FabricConfig { vcs, buffer_beats: 0, pipeline_cycles: 0, ..FabricConfig::default() }
}

/// Virtual output queues.
fn each_output() -> FabricConfig {
    FabricConfig { select: Select::Destination, ..one_queue(PORTS as u8) }
}

fn crossbar(ports: usize) -> Topology {
    Topology::crossbar(ports).expect("it has a port or more")
}

/// Two routers with a terminal each, and a link.
fn pair() -> Topology {
    Topology::from_links("pair", 2, 1, &[(0, 1)]).expect("the link joins both")
}

/// Packets from each terminal to the next.
fn to_the_other(arrival: Arrival, beats: u16) -> Traffic {
    Traffic { pattern: Pattern::Shift(1), arrival, sizes: Sizes::Beats(beats) }
}

/// The throughput of a crossbar whose inputs always have a beat for some output.
fn full_load(config: &FabricConfig) -> Result<f64, String> {
    let traffic = Traffic { arrival: Arrival::Saturated, ..Traffic::uniform(1.0, 1) };
    Ok(run(config, crossbar(PORTS), traffic, 60_000)?.throughput.mean)
}

fn run(
    config: &FabricConfig,
    topology: Topology,
    traffic: Traffic,
    cycles: u64,
) -> Result<Report, String> {
    let duration = Duration { cycles, warm_up_cycles: Some(cycles / 4) };
    Experiment::new(topology, config.clone(), traffic, duration, 1)
        .map_err(|error| error.to_string())?
        .run()
        .map_err(|error| error.to_string())
}
