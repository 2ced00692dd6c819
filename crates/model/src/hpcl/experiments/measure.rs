//! The paper's two programs on the cluster, and their measurements.

use super::{SIZES, SMALL};
use crate::hpcl::config::Config;
use crate::hpcl::counters::Counters;
use crate::hpcl::machine::Machine;
use crate::hpcl::process::{Over, burst, ping_pong};
use crate::units::Span;

/// Round trips of a pingpong; the first ones do not count.
const ROUNDS: usize = 320;
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

/// Runs the paper's pingpong in a cluster of two nodes.
///
/// # Errors
/// The fault.
pub fn round_trip(config: &Config, over: Over, bytes: u32) -> Result<RoundTrip, String> {
    round_trip_among(&Config { nodes: 2, ..config.clone() }, over, bytes)
}

/// Round trips at all sizes of the figures, as points of a curve: bytes, microseconds.
///
/// # Errors
/// The fault.
pub fn round_trips(config: &Config, over: Over) -> Result<Vec<(f64, f64)>, String> {
    let point = |bytes| Ok((f64::from(bytes), round_trip(config, over, bytes)?.us));
    SIZES.into_iter().map(point).collect()
}

/// Runs the paper's pingpong between two nodes of a cluster with `config`'s number of nodes.
///
/// # Errors
/// The fault.
pub fn round_trip_among(config: &Config, over: Over, bytes: u32) -> Result<RoundTrip, String> {
    trips(Machine::new(config, 1)?, over, bytes, WARM_UP, ROUNDS)
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
) -> Result<RoundTrip, String> {
    let mut running = Machine::new(&Config { nodes: 2, ..config.clone() }, 1)?;
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

/// Runs the paper's burst between two nodes.
///
/// # Errors
/// The fault.
pub fn bandwidth(config: &Config, over: Over, bytes: u32) -> Result<Burst, String> {
    let count = match over {
        Over::Hpcl => BURST_MESSAGES,
        Over::Tcp => BURST_MESSAGES.max(BURST_BYTES / bytes as usize),
    };
    bandwidth_of(config, over, bytes, count)
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
) -> Result<Burst, String> {
    let config = &Config { nodes: 2, ..config.clone() };
    let mut running = Machine::new(config, 1)?;
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
