//! All 16 nodes send to all others at once (H-30).

use super::{LARGE, Report, SMALL};
use crate::experiment::{Experiment, draws, of_each_seed};
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

/// An exchange with one seed.
struct Exchange {
    seconds: f64,
    dropped: u64,
    timeouts: u64,
    /// Whether every message came, once, in order and whole.
    whole: bool,
}

fn exchange(config: &Config, bytes: u32, seed: u64) -> Result<Exchange, String> {
    let nodes = config.nodes;
    let mut running = Machine::new(config, seed)?;
    running.begin(all_to_all(nodes, bytes, ROUNDS));
    let time = running.finish(MOST)?;
    running.settle(Span::from_ns(200_000_000));
    running.audit().map_err(|error| error.to_string())?;
    let counted = (0..nodes)
        .map(|node| running.counted(node))
        .fold(Counters::default(), |sum, node| sum.plus(&node));
    let all = messages(config);
    let timeouts = running.model.nodes.iter_mut().filter_map(|node| {
        let channel = node.channel()?;
        Some(channel.endpoint.counters().timeouts)
    });
    Ok(Exchange {
        seconds: time.as_ns() / 1e9,
        timeouts: timeouts.sum(),
        dropped: running.model.switch.dropped,
        whole: counted.sent == all && counted.received == all && counted.mismatches == 0,
    })
}

/// All messages of an exchange.
fn messages(config: &Config) -> u64 {
    let nodes = u64::from(config.nodes);
    nodes * (nodes - 1) * ROUNDS as u64
}

fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::paper();
    let all = messages(&config);
    for bytes in [SMALL, LARGE] {
        let runs = of_each_seed(|seed| exchange(&config, bytes, seed))?;
        let of = |what: &str| format!("{bytes} B: {what}");
        report.drawn(of("the exchange"), "ms", &draws(&runs, |run| run.seconds * 1e3));
        let of_a_node = all as f64 * f64::from(bytes) / f64::from(config.nodes);
        let each = draws(&runs, |run| of_a_node / run.seconds);
        report.drawn(of("sent and received by a node"), "B/s", &each);
        let dropped = draws(&runs, |run| run.dropped as f64);
        report.drawn(of("dropped by the switch"), "1", &dropped);
        report.drawn(of("timeouts"), "1", &draws(&runs, |run| run.timeouts as f64));
        let sent = all * runs.len() as u64;
        let what = format!("all {sent} messages have come, once, in order and whole");
        let broken = runs.iter().filter(|run| !run.whole).count();
        report.claim_of(of(&what), broken as f64, broken == 0).tries = Some(runs.len() as u64);
    }
    Ok(())
}
