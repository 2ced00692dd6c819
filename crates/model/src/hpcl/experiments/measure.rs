//! The paper's two programs on the cluster, and their measurements. The time of each system call is
//! drawn, so each figure is a mean over seeds.

use super::{SIZES, SMALL};
use crate::experiment::{draws, of_each_seed};
use crate::hpcl::config::Config;
use crate::hpcl::counters::Counters;
use crate::hpcl::machine::Machine;
use crate::hpcl::process::{Over, burst, ping_pong};
use crate::stats::{Estimate, excess, over_seeds};
use crate::units::Span;

/// Round trips of a pingpong with each seed; the first ones do not count.
const ROUNDS: usize = 60;
const WARM_UP: usize = 20;
/// Messages of an HPCL burst. TCP's burst has at least as many bytes as this number of 1 KiB
/// messages.
const BURST_MESSAGES: usize = 2000;
const BURST_BYTES: usize = BURST_MESSAGES << 10;
/// The time limit of a run, in virtual time.
const MOST: Span = Span::from_ns(60_000_000_000);

/// Results of a pingpong.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrip {
    /// Mean round trip in microseconds.
    pub us: f64,
    /// Counters of both nodes together, over all round trips.
    pub counters: Counters,
    /// Round trips.
    pub rounds: u64,
    /// The trace hash.
    pub trace_hash: u64,
}

impl RoundTrip {
    /// A count per round trip.
    pub fn each(&self, count: impl Fn(&Counters) -> u64) -> f64 {
        count(&self.counters) as f64 / self.rounds as f64
    }
}

/// Results of a burst.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// Payload bytes per second.
    pub bytes_per_second: f64,
    /// Counters of sender and receiver.
    pub counters: [Counters; 2],
    /// Messages.
    pub messages: u64,
    /// Share of the time that the line to the receiver was busy.
    pub line: f64,
    /// Shares of the time that the processors of sender and receiver were busy, polling included.
    pub processors: [f64; 2],
}

/// A size in bytes, and a run with each seed.
type OfSize<T> = (u32, Vec<T>);

/// The runs at each size of the figures.
pub(super) struct Curve<T>(Vec<OfSize<T>>);

impl<T> Curve<T> {
    /// Runs all sizes with each seed.
    pub(super) fn of(run: impl Fn(u32, u64) -> Result<T, String>) -> Result<Curve<T>, String> {
        let at = |bytes| Ok((bytes, of_each_seed(|seed| run(bytes, seed))?));
        SIZES.into_iter().map(at).collect::<Result<_, String>>().map(Curve)
    }

    /// The runs at one size.
    pub(super) fn at(&self, bytes: u32) -> &[T] {
        let found = self.0.iter().find(|(size, _)| *size == bytes);
        found.map_or(&[], |(_, runs)| runs)
    }

    /// A quantity against the size.
    pub(super) fn points(&self, of: impl Fn(&T) -> f64) -> Vec<(f64, Estimate)> {
        let point = |(bytes, runs): &OfSize<T>| (f64::from(*bytes), over_seeds(&draws(runs, &of)));
        self.0.iter().map(point).collect()
    }

    /// By how much a quantity exceeds that of the size before.
    pub(super) fn rises(&self, of: impl Fn(&T) -> f64) -> Vec<Estimate> {
        let draws = |at: &OfSize<T>| draws(&at.1, &of);
        self.0.windows(2).map(|pair| excess(&draws(&pair[1]), &draws(&pair[0]))).collect()
    }

    /// Whether a quantity exceeds that of another curve at each size.
    pub(super) fn exceeds(&self, other: &Curve<T>, of: impl Fn(&T) -> f64) -> bool {
        let more = |(more, less): (&OfSize<T>, &OfSize<T>)| {
            excess(&draws(&more.1, &of), &draws(&less.1, &of)).is_above(0.0)
        };
        self.0.iter().zip(&other.0).all(more)
    }
}

/// Runs the paper's pingpong in a cluster of two nodes.
///
/// # Errors
/// The fault.
pub fn round_trip(config: &Config, over: Over, bytes: u32, seed: u64) -> Result<RoundTrip, String> {
    round_trip_among(&Config { nodes: 2, ..config.clone() }, over, bytes, seed)
}

/// Round trips at all sizes of the figures.
///
/// # Errors
/// The fault.
pub(super) fn round_trips(config: &Config, over: Over) -> Result<Curve<RoundTrip>, String> {
    Curve::of(|bytes, seed| round_trip(config, over, bytes, seed))
}

/// Round trips of 128 B with each seed, in microseconds.
///
/// # Errors
/// The fault.
pub(super) fn small_us(config: &Config, over: Over) -> Result<Vec<f64>, String> {
    of_each_seed(|seed| Ok(round_trip(config, over, SMALL, seed)?.us))
}

/// Runs the paper's pingpong between two nodes of a cluster with `config`'s number of nodes.
///
/// # Errors
/// The fault.
pub fn round_trip_among(
    config: &Config,
    over: Over,
    bytes: u32,
    seed: u64,
) -> Result<RoundTrip, String> {
    trips(Machine::new(config, seed)?, over, bytes, WARM_UP, ROUNDS)
}

/// The same between two nodes whose NICs, once the nodes are linked, keep a minimum gap between
/// interrupts.
///
/// # Errors
/// The fault.
pub fn round_trip_with_gap(
    config: &Config,
    over: Over,
    bytes: u32,
    gap: Span,
    seed: u64,
) -> Result<RoundTrip, String> {
    let mut running = Machine::new(&Config { nodes: 2, ..config.clone() }, seed)?;
    for node in &mut running.model.nodes {
        node.nic.set_interrupt_gap(gap);
    }
    trips(running, over, bytes, WARM_UP, ROUNDS)
}

/// A pingpong of `rounds` round trips, of which the first `warm_up` do not count.
pub(in crate::hpcl) fn trips(
    mut running: Machine,
    over: Over,
    bytes: u32,
    warm_up: usize,
    rounds: usize,
) -> Result<RoundTrip, String> {
    running.begin(ping_pong(over, bytes, rounds));
    running.finish(MOST)?;
    running.settle(Span::from_ns(1_000_000));
    running.audit().map_err(|error| error.to_string())?;
    let (_, returned) = running.returned(0);
    let (first, last) = (returned[2 * warm_up - 1], returned[2 * rounds - 1]);
    let us = (last - first).as_ns() / 1e3 / (rounds - warm_up) as f64;
    Ok(RoundTrip {
        us,
        counters: running.counted(0).plus(&running.counted(1)),
        rounds: rounds as u64,
        trace_hash: running.schedule.trace_hash(),
    })
}

/// The time of three round trips of 128 B in a new cluster.
pub(super) fn few_round_trips(config: &Config, over: Over) -> Result<Span, String> {
    let mut running = Machine::new(config, 1)?;
    running.begin(ping_pong(over, SMALL, 3));
    running.finish(MOST)
}

/// The bandwidth of HPCL's burst with each seed, in bytes per second.
///
/// # Errors
/// The fault.
pub(super) fn bandwidths(config: &Config, bytes: u32) -> Result<Vec<f64>, String> {
    of_each_seed(|seed| Ok(bandwidth(config, Over::Hpcl, bytes, seed)?.bytes_per_second))
}

/// Runs the paper's burst between two nodes.
///
/// # Errors
/// The fault.
pub fn bandwidth(config: &Config, over: Over, bytes: u32, seed: u64) -> Result<Burst, String> {
    let count = match over {
        Over::Hpcl => BURST_MESSAGES,
        Over::Tcp => BURST_MESSAGES.max(BURST_BYTES / bytes as usize),
    };
    bandwidth_of(config, over, bytes, count, seed)
}

/// The same with this many messages. The time ends when the receiver's answer to the last is there.
///
/// # Errors
/// The fault.
pub fn bandwidth_of(
    config: &Config,
    over: Over,
    bytes: u32,
    count: usize,
    seed: u64,
) -> Result<Burst, String> {
    let config = &Config { nodes: 2, ..config.clone() };
    let mut running = Machine::new(config, seed)?;
    let busy = running.model.switch.line_busy(1);
    let at_work = [0, 1].map(|node: usize| running.model.nodes[node].busy());
    running.begin(burst(over, bytes, count));
    let time = running.finish(MOST)?;
    let line = (running.model.switch.line_busy(1) - busy).as_ns() / time.as_ns();
    let processors = [0, 1].map(|node: usize| {
        (running.model.nodes[node].busy() - at_work[node]).as_ns() / time.as_ns()
    });
    running.settle(Span::from_ns(1_000_000));
    running.audit().map_err(|error| error.to_string())?;
    Ok(Burst {
        bytes_per_second: count as f64 * f64::from(bytes) / (time.as_ns() / 1e9),
        counters: [running.counted(0), running.counted(1)],
        messages: count as u64,
        line,
        processors,
    })
}
