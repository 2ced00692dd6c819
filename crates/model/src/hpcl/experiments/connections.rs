//! One receive ring per peer (B-26), instead of one for the channel (H-22, H-23): memory, and polls
//! for a message.

use super::measure::{RoundTrip, round_trip_among};
use super::{Report, SMALL};
use crate::experiment::{Axis, Experiment, Origin, draws, of_each_seed};
use crate::hpcl::config::{Config, Rings};
use crate::hpcl::machine::Machine;
use crate::hpcl::process::Over;
use crate::stats::{Estimate, excess, over_seeds};

const NODES: [u16; 4] = [2, 4, 8, 16];

/// Name and entry point.
pub const EXPERIMENT: Experiment = Experiment {
    id: "connections",
    title: "receive rings for each peer",
    rows: "H-23, B-26",
    published: super::PUBLISHED,
    run,
};

/// What a channel with one kind of rings costs, by the number of nodes.
#[derive(Default)]
struct Cost {
    /// Fixed memory of a node in KiB, which no draw decides.
    memory: Vec<(f64, f64)>,
    /// Rings that a look for a message checks, with each seed.
    looks: Vec<(f64, Vec<f64>)>,
    /// Round trips of 128 B in microseconds, with each seed.
    times: Vec<(f64, Vec<f64>)>,
}

impl Cost {
    fn of(rings: Rings) -> Result<Cost, String> {
        let mut cost = Cost::default();
        for nodes in NODES {
            let mut config = Config { nodes, ..Config::paper() };
            config.hpcl.rings = rings;
            let trips = of_each_seed(|seed| round_trip_among(&config, Over::Hpcl, SMALL, seed))?;
            let bytes = Machine::new(&config, 1)?.model.nodes[0]
                .module
                .as_ref()
                .map_or(0, |module| module.bytes());
            let nodes = f64::from(nodes);
            cost.memory.push((nodes, bytes as f64 / 1024.0));
            // A poll that finds nothing has checked all rings.
            let look = |trip: &RoundTrip| trip.counters.checks as f64 / trip.counters.looks as f64;
            cost.looks.push((nodes, draws(&trips, look)));
            cost.times.push((nodes, draws(&trips, |trip| trip.us)));
        }
        Ok(cost)
    }
}

fn run(report: &mut Report) -> Result<(), String> {
    let names = ["of the channel", "of each peer"];
    let costs = [Cost::of(Rings::Channel)?, Cost::of(Rings::Connection)?];
    for (name, cost) in names.into_iter().zip(&costs) {
        for at in [0, NODES.len() - 1] {
            let of = |what: &str| format!("{name}, {} nodes: {what}", NODES[at]);
            report.value(of("fixed memory"), "KiB", cost.memory[at].1);
            report.drawn(of("rings in a look"), "1", &cost.looks[at].1);
            report.drawn(of("128 B"), "us", &cost.times[at].1);
        }
    }
    let [channel, peer] = &costs;
    report.claim("of the channel: memory and looks do not grow with peers", {
        channel.memory.iter().all(|point| point.1 == channel.memory[0].1)
            && channel.looks.iter().all(|point| point.1 == channel.looks[0].1)
    });
    let memory = peer.memory.windows(2).all(|pair| pair[1].1 > 1.5 * pair[0].1);
    report.claim("of each peer: memory grows with peers", memory);
    let looks = peer.looks.windows(2).all(|pair| {
        let fewer: Vec<f64> = pair[0].1.iter().map(|looks| 1.5 * looks).collect();
        excess(&pair[1].1, &fewer).is_above(0.0)
    });
    report.claim("of each peer: waiting looks at each connection", looks);
    let x = Axis::linear("nodes", "");
    let y = |unit| Axis::linear("of a node", unit);
    let memory = report.figure("B-26: fixed memory of a node", x, y("KiB"));
    for (name, cost) in names.into_iter().zip(&costs) {
        memory.series(name, Origin::Model, cost.memory.iter().copied());
    }
    let means = |of: &[(f64, Vec<f64>)]| -> Vec<(f64, Estimate)> {
        of.iter().map(|(nodes, draws)| (*nodes, over_seeds(draws))).collect()
    };
    let looks = report.figure("B-26: rings looked at in a look for a message", x, y(""));
    for (name, cost) in names.into_iter().zip(&costs) {
        looks.drawn(name, means(&cost.looks));
    }
    let times = report.figure("B-26: round trip of 128 B", x, y("us"));
    for (name, cost) in names.into_iter().zip(&costs) {
        times.drawn(name, means(&cost.times));
    }
    Ok(())
}
