//! The order of the measurements: size by size. Each size takes several rounds that measure
//! everything once, so that disturbances of the machine affect all measurements alike.

use super::arena::window;
use super::leader::Leader;
use super::limits::{Limits, Socket};
use super::order::Op;
use super::plan::Plan;
use super::statistics::median;
use crate::command::word;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// The results for one operation and size.
#[derive(Default)]
pub struct Figures {
    /// One-way times in nanoseconds.
    pub times_ns: Vec<f64>,
    /// Round trips timed as one.
    pub batch: u64,
    /// Messages per second of all pairs together, in each round.
    pub totals: Vec<f64>,
    /// Messages per second of each pair, in each round.
    pub shares: Vec<Vec<f64>>,
    /// One-way times of a cache line before and after each measurement.
    pub lines_ns: Vec<f64>,
    /// Messages compared byte by byte.
    pub compared: u64,
}

/// All results for one size.
pub struct Findings {
    /// Length of a message.
    pub bytes: usize,
    /// Bellwire's operations.
    pub ops: Vec<(Op, Figures)>,
    pub sockets: Vec<(Socket, Figures)>,
    /// Bytes per second of memcpy, in each round.
    pub memcpy: Vec<f64>,
}

/// Measures the whole plan, and beside it the machine's limits unless the device is simulated.
pub fn measure_all(
    plan: &Plan,
    leader: &mut Leader,
    limits: &mut Option<Limits>,
) -> Result<Vec<Findings>> {
    let sockets = if limits.is_some() { 2 } else { 0 };
    let steps = plan.sizes.len() * plan.rounds * (plan.ops.len() + sockets);
    // Hidden if standard error is no terminal.
    let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}");
    let bar = match leader.is_silent() {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(steps as u64).with_style(style.context("a template")?),
    };
    let mut all = Vec::new();
    for &bytes in &plan.sizes {
        let size = crate::units::bytes(bytes as u64);
        all.push(measure_size(plan, leader, limits, bytes, &bar).with_context(|| size)?);
    }
    bar.finish_and_clear();
    Ok(all)
}

fn measure_size(
    plan: &Plan,
    leader: &mut Leader,
    limits: &mut Option<Limits>,
    bytes: usize,
    bar: &ProgressBar,
) -> Result<Findings> {
    let begin = |what: &str| {
        bar.set_message(format!("{what}, {}", crate::units::bytes(bytes as u64)));
        bar.inc(1);
    };
    let mut findings = Findings { bytes, ops: vec![], sockets: vec![], memcpy: vec![] };
    let mut counts = Vec::new();
    for &op in &plan.ops {
        let compared = window(bytes);
        leader.verify(op, bytes, compared).with_context(|| format!("{} (verified)", word(&op)))?;
        let counted = Counts::find(plan, leader, op, bytes).with_context(|| word(&op))?;
        let compared = compared * u64::from(plan.pairs);
        findings.ops.push((op, Figures { compared, ..Figures::default() }));
        counts.push(counted);
    }
    let mut copies = 0;
    if let Some(limits) = limits {
        for socket in [Socket::Unix, Socket::Tcp] {
            counts.push(Counts::find_socket(plan, limits, socket, bytes)?);
            findings.sockets.push((socket, Figures { batch: 1, ..Figures::default() }));
        }
        copies = count_for(
            plan.sample,
            4,
            timed(|count| {
                limits.memcpy(bytes, count);
                Ok(())
            }),
        )?;
    }

    for _ in 0..plan.rounds {
        let mut counts = counts.iter();
        for (op, figures) in &mut findings.ops {
            begin(&word(op));
            let counts = counts.next().context("counts of every operation")?;
            figures.lines_ns.extend(line_ns(limits)?);
            let latency = leader.latency(*op, bytes, counts.round_trips, counts.short)?;
            figures.times_ns.extend(latency.times_ns);
            figures.batch = latency.batch;
            figures.lines_ns.extend(line_ns(limits)?);
            let stream = leader.stream(*op, bytes, counts.messages)?;
            figures.totals.push(stream.total);
            figures.shares.push(stream.rates);
            figures.lines_ns.extend(line_ns(limits)?);
        }
        let Some(limits) = limits else { continue };
        for (socket, figures) in &mut findings.sockets {
            begin(match socket {
                Socket::Unix => "Unix socket",
                Socket::Tcp => "TCP",
            });
            let counts = counts.next().context("counts of every socket")?;
            figures.times_ns.extend(limits.ping_pong(*socket, bytes, counts.round_trips)?);
            figures.totals.push(limits.stream(*socket, bytes, counts.messages)?);
        }
        findings.memcpy.push(limits.memcpy(bytes, copies));
    }
    Ok(findings)
}

fn line_ns(limits: &mut Option<Limits>) -> Result<Option<f64>> {
    limits.as_mut().map_or(Ok(None), Limits::line_ns)
}

/// Repetitions that fill a sample.
struct Counts {
    round_trips: u64,
    messages: u64,
    /// Whether round trips are so short that they are timed in batches.
    short: bool,
}

impl Counts {
    fn find(plan: &Plan, leader: &mut Leader, op: Op, bytes: usize) -> Result<Counts> {
        let mut one_way_ns = f64::MAX;
        // By the device's clock, so that a simulated device always takes the same count.
        let round_trips = count_for(plan.sample, 4, |count| {
            let start = leader.now();
            let times_ns = leader.latency(op, bytes, count, false)?.times_ns;
            one_way_ns = median(&times_ns).unwrap_or(one_way_ns);
            Ok(leader.now() - start)
        })?;
        let messages = count_for(plan.sample, window(bytes), |count| {
            let start = leader.now();
            leader.stream(op, bytes, count)?;
            Ok(leader.now() - start)
        })?;
        Ok(Counts { round_trips, messages, short: Leader::is_short(one_way_ns) })
    }

    fn find_socket(
        plan: &Plan,
        limits: &mut Limits,
        socket: Socket,
        bytes: usize,
    ) -> Result<Counts> {
        let ping_pong = timed(|count| limits.ping_pong(socket, bytes, count).map(drop));
        let round_trips = count_for(plan.sample, 4, ping_pong)?;
        let stream = timed(|count| limits.stream(socket, bytes, count).map(drop));
        let messages = count_for(plan.sample, 16, stream)?;
        Ok(Counts { round_trips, messages, short: false })
    }
}

/// Measures how long a number of repetitions takes.
fn timed(mut run: impl FnMut(u64) -> Result<()>) -> impl FnMut(u64) -> Result<Duration> {
    move |count| {
        let start = Instant::now();
        run(count)?;
        Ok(start.elapsed())
    }
}

/// Finds the number of repetitions that fills a sample: tries `first`, then more. `run` runs that
/// many and returns the time.
fn count_for(
    sample: Duration,
    first: u64,
    mut run: impl FnMut(u64) -> Result<Duration>,
) -> Result<u64> {
    const MOST: u64 = 1 << 26;
    let mut count = first;
    loop {
        let took = run(count)?.max(Duration::from_nanos(100));
        if took >= sample / 8 || count >= MOST {
            let scaled = count as f64 * sample.as_secs_f64() / took.as_secs_f64();
            return Ok((scaled as u64).clamp(first.min(4), MOST));
        }
        count *= 4;
    }
}
