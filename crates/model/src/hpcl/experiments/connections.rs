//! One receive ring per peer (B-26), instead of one for the channel (H-22, H-23): memory, and polls
//! for a message.

use super::measure::round_trip_among;
use super::{Report, SMALL};
use crate::experiment::{Axis, Experiment, Origin};
use crate::hpcl::config::{Config, Rings};
use crate::hpcl::machine::Machine;
use crate::hpcl::process::Over;

const NODES: [u16; 4] = [2, 4, 8, 16];

/// Name and entry point.
pub const EXPERIMENT: Experiment = Experiment {
    id: "connections",
    title: "receive rings for each peer",
    rows: "H-23, B-26",
    published: super::PUBLISHED,
    run,
};

fn run(report: &mut Report) -> Result<(), String> {
    let mut memory = Vec::new();
    let mut looks = Vec::new();
    let mut times = Vec::new();
    let settings = [("of the channel", Rings::Channel), ("of each peer", Rings::Connection)];
    for (name, rings) in settings {
        let mut curves = [Vec::new(), Vec::new(), Vec::new()];
        for nodes in NODES {
            let mut config = Config { nodes, ..Config::paper() };
            config.hpcl.rings = rings;
            let trip = round_trip_among(&config, Over::Hpcl, SMALL)?;
            let bytes = Machine::new(&config, 1)?.model.nodes[0]
                .module
                .as_ref()
                .map_or(0, |module| module.bytes());
            // A poll that finds nothing has checked all rings.
            let look = trip.counters.checks as f64 / trip.counters.looks as f64;
            for (curve, y) in curves.iter_mut().zip([bytes as f64 / 1024.0, look, trip.us]) {
                curve.push((f64::from(nodes), y));
            }
        }
        let [of_memory, of_looks, of_times] = curves;
        for (what, unit, curve) in [
            ("fixed memory", "KiB", &of_memory),
            ("rings in a look", "1", &of_looks),
            ("128 B", "us", &of_times),
        ] {
            for at in [0, NODES.len() - 1] {
                let (nodes, y) = curve[at];
                report.value(format!("{name}, {nodes} nodes: {what}"), unit, y);
            }
        }
        memory.push(of_memory);
        looks.push(of_looks);
        times.push(of_times);
    }
    let constant = |curve: &[(f64, f64)]| curve.iter().all(|point| point.1 == curve[0].1);
    let grows = |curve: &[(f64, f64)]| curve.windows(2).all(|pair| pair[1].1 > 1.5 * pair[0].1);
    report.claim("of the channel: memory and looks do not grow with peers", {
        constant(&memory[0]) && constant(&looks[0])
    });
    report.claim("of each peer: memory grows with peers", grows(&memory[1]));
    report.claim("of each peer: waiting looks at each connection", grows(&looks[1]));
    for (title, unit, curves) in [
        ("B-26: fixed memory of a node", "KiB", memory),
        ("B-26: rings looked at in a look for a message", "", looks),
        ("B-26: round trip of 128 B", "us", times),
    ] {
        let figure =
            report.figure(title, Axis::linear("nodes", ""), Axis::linear("of a node", unit));
        for ((name, _), points) in settings.iter().zip(curves) {
            figure.series(*name, Origin::Model, points);
        }
    }
    Ok(())
}
