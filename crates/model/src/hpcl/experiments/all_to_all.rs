//! All 16 nodes send to all others at once (H-30).

use super::{LARGE, Report, SMALL};
use crate::experiment::Experiment;
use crate::hpcl::config::Config;
use crate::hpcl::counters::Counters;
use crate::hpcl::machine::Machine;
use crate::hpcl::process::all_to_all;
use crate::units::Span;

pub(super) const EXPERIMENT: Experiment = Experiment {
    id: "all-to-all",
    title: "all with all among 16 nodes",
    rows: "H-11, H-23, H-30",
    published: super::PUBLISHED,
    run,
};

/// Messages from each node to each other node.
const ROUNDS: usize = 20;
/// The time limit of the exchange, in virtual time.
pub(super) const MOST: Span = Span::from_ns(60_000_000_000);

fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::paper();
    let nodes = config.nodes;
    let all = u64::from(nodes) * u64::from(nodes - 1) * ROUNDS as u64;
    for bytes in [SMALL, LARGE] {
        let mut running = Machine::new(&config, 1)?;
        running.begin(all_to_all(nodes, bytes, ROUNDS));
        let time = running.finish(MOST)?;
        running.settle(Span::from_ns(200_000_000));
        running.audit().map_err(|error| error.to_string())?;
        let counted = (0..nodes)
            .map(|node| running.counted(node))
            .fold(Counters::default(), |sum, node| sum.plus(&node));
        let seconds = time.as_ns() / 1e9;
        let each = all as f64 * f64::from(bytes) / seconds / f64::from(nodes);
        let of = |what: &str| format!("{bytes} B: {what}");
        report.value(of("the exchange"), "ms", seconds * 1e3);
        report.value(of("sent and received by a node"), "B/s", each);
        let dropped = running.model.switch.dropped as f64;
        report.value(of("dropped by the switch"), "1", dropped);
        let timeouts: u64 = (0..nodes)
            .filter_map(|node| {
                let node = &mut running.model.nodes[usize::from(node)];
                Some(node.channel()?.endpoint.counters().timeouts)
            })
            .sum();
        report.value(of("timeouts"), "1", timeouts as f64);
        report.claim(
            of(&format!("all {all} messages have come, once, in order and whole")),
            counted.sent == all && counted.received == all && counted.mismatches == 0,
        );
    }
    Ok(())
}
