//! Short measurements of every experiment, of a configuration that may have been changed:
//! `perturbed.toml` says what must follow. Messages count when their receiver has them: a round
//! trip and a burst end with its answer.

use super::all_to_all::MOST;
use super::measure::{RoundTrip, bandwidth_of, trips};
use super::{LARGE, SMALL};
use crate::hpcl::config::{Buffers, Config, HandOver, Receive, Rings};
use crate::hpcl::machine::Machine;
use crate::hpcl::process::{Over, all_to_all};
use crate::perturbed::{Probe, exact, within};
use crate::units::Span;

/// What must follow from each change.
pub const EXPECTED: &str = include_str!("../perturbed.toml");

/// Messages of a burst over HPCL, and over TCP/IP.
const MESSAGES: [usize; 2] = [300, 1000];

/// Messages from each node to each other node.
const ROUNDS: usize = 5;

/// Round trips that do not count.
const WARM_UP: usize = 20;

/// Lengths of the cable of a round trip in which loops poll, and how much each is longer than the
/// last: a frame then comes at eight moments of the longest look at rings, a microsecond.
const PHASES: u64 = 8;
const PHASE: Span = Span::from_ns(60);

/// Percent by which the mean over these moves, though nothing but the moments changes.
const REAPED: f64 = 1.3;

/// The measurements.
pub const PROBES: [Probe<Config>; 11] = [
    Probe {
        experiment: "fig7",
        figures: &[within(REAPED, "round trip: HPCL", "us")],
        base: Config::paper,
        run: |config| Ok(vec![reaped(config, 2)?.us]),
    },
    Probe {
        experiment: "fig7",
        figures: &[within(0.1, "round trip: TCP/IP", "us")],
        base: Config::paper,
        run: |config| round_trip_us(config, Over::Tcp),
    },
    Probe {
        experiment: "fig7",
        figures: &[within(0.5, "round trip: TCP/IP, interrupts at once", "us")],
        base: at_once,
        run: |config| round_trip_us(config, Over::Tcp),
    },
    Probe {
        experiment: "fig8",
        figures: &[within(0.5, "bandwidth: HPCL, 1196 B", "MB/s")],
        base: Config::paper,
        run: |config| megabytes_per_second(config, Over::Hpcl, LARGE),
    },
    Probe {
        experiment: "fig8",
        figures: &[within(2.0, "bandwidth: HPCL, 128 B", "MB/s")],
        base: Config::paper,
        run: |config| megabytes_per_second(config, Over::Hpcl, SMALL),
    },
    Probe {
        experiment: "fig8",
        figures: &[within(8.0, "bandwidth: TCP/IP, 1196 B", "MB/s")],
        base: Config::paper,
        run: |config| megabytes_per_second(config, Over::Tcp, LARGE),
    },
    Probe {
        experiment: "reaping",
        figures: &[within(0.5, "round trip: by interrupts at once", "us")],
        base: || {
            let mut config = at_once();
            config.hpcl.receive = Receive::Interrupt;
            config
        },
        run: |config| round_trip_us(config, Over::Hpcl),
    },
    Probe {
        experiment: "soft-interrupt",
        figures: &[within(REAPED, "round trip: by soft interrupt", "us")],
        base: || {
            let mut config = Config::paper();
            config.hpcl.hand_over = HandOver::SoftInterrupt;
            config
        },
        run: |config| Ok(vec![reaped(config, 2)?.us]),
    },
    Probe {
        experiment: "buffers",
        figures: &[
            within(REAPED, "round trip: dynamic buffers", "us"),
            exact("copies of a message", "1"),
        ],
        base: || {
            let mut config = Config::paper();
            config.hpcl.buffers = Buffers::Dynamic;
            config
        },
        run: |config| {
            let trip = reaped(config, 2)?;
            let copies = trip.each(|counters| {
                counters.copies_from_user + counters.copies_to_ring + counters.copies_to_user
            });
            Ok(vec![trip.us, copies / 2.0])
        },
    },
    Probe {
        experiment: "connections",
        figures: &[
            within(REAPED, "round trip: rings of each peer, 8 nodes", "us"),
            within(3.0, "rings in a look, 8 nodes", "1"),
            exact("memory: rings of each peer, 8 nodes", "KiB"),
        ],
        base: || {
            let mut config = Config { nodes: 8, ..Config::paper() };
            config.hpcl.rings = Rings::Connection;
            config
        },
        run: |config| {
            let trip = reaped(config, config.nodes)?;
            let machine = Machine::new(config, 1)?;
            let module = machine.model.nodes[0].module.as_ref();
            let bytes = module.map_or(0, |module| module.bytes());
            let looks = trip.counters.checks as f64 / trip.counters.looks as f64;
            Ok(vec![trip.us, looks, bytes as f64 / 1024.0])
        },
    },
    Probe {
        experiment: "all-to-all",
        figures: &[within(3.0, "all to all: 4 nodes, 1196 B", "us")],
        base: || Config { nodes: 4, ..Config::paper() },
        run: |config| {
            let mut running = Machine::new(config, 1)?;
            running.begin(all_to_all(config.nodes, LARGE, ROUNDS));
            let time = running.finish(MOST)?;
            running.settle(Span::from_ns(200_000_000));
            running.audit().map_err(|error| error.to_string())?;
            Ok(vec![time.as_ns() / 1e3])
        },
    },
];

/// The paper's cluster with interrupts that are not moderated.
fn at_once() -> Config {
    let mut config = Config::paper();
    config.nic.interrupt_gap = Span::ZERO;
    config
}

/// The mean of round trips of HPCL among so many nodes, whose loops meet at all moments.
fn reaped(config: &Config, nodes: u16) -> Result<RoundTrip, String> {
    let mut mean: Option<RoundTrip> = None;
    for phase in 0..PHASES {
        let mut config = Config { nodes, ..config.clone() };
        config.wire.cable += PHASE * phase;
        let machine = Machine::new(&config, 1)?;
        let trip = trips(machine, Over::Hpcl, SMALL, WARM_UP, 3 * WARM_UP)?;
        mean = Some(match mean {
            None => RoundTrip { us: trip.us / PHASES as f64, ..trip },
            Some(sum) => RoundTrip {
                us: sum.us + trip.us / PHASES as f64,
                counters: sum.counters.plus(&trip.counters),
                rounds: sum.rounds + trip.rounds,
                ..sum
            },
        });
    }
    Ok(mean.expect("eight phases"))
}

fn round_trip_us(config: &Config, over: Over) -> Result<Vec<f64>, String> {
    let machine = Machine::new(&Config { nodes: 2, ..config.clone() }, 1)?;
    Ok(vec![trips(machine, over, SMALL, WARM_UP, 16 * WARM_UP)?.us])
}

fn megabytes_per_second(config: &Config, over: Over, bytes: u32) -> Result<Vec<f64>, String> {
    let burst = bandwidth_of(config, over, bytes, MESSAGES[over as usize], 1)?;
    Ok(vec![burst.bytes_per_second / 1e6])
}
