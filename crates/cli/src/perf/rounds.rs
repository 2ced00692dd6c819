//! The order of the measurements: size by size, and for each size several rounds in which everything is measured once, so that
//! whatever the machine does meanwhile meets all alike.

use super::data::window;
use super::leader::Leader;
use super::limits::{Limits, Socket};
use super::order::Op;
use super::plan::Plan;
use super::statistics::median;
use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use std::time::{Duration, Instant};

/// What was found for one operation and size.
#[derive(Default)]
pub struct Figures {
    /// One-way times in nanoseconds.
    pub times_ns: Vec<f64>,
    /// Round trips that were timed as one.
    pub batch: u64,
    /// Messages a second, all pairs together, of each round.
    pub totals: Vec<f64>,
    /// Messages a second of each pair, of each round.
    pub shares: Vec<Vec<f64>>,
    /// One-way times of a cache line before and after each measurement.
    pub lines_ns: Vec<f64>,
    /// Messages whose every byte was compared.
    pub compared: u64,
}

/// Everything that was found of one size.
pub struct Findings {
    /// Length of a message.
    pub bytes: usize,
    /// Ours.
    pub ops: Vec<(Op, Figures)>,
    /// The sockets.
    pub sockets: Vec<(Socket, Figures)>,
    /// Bytes a second that memcpy moves, of each round.
    pub memcpy: Vec<f64>,
}

/// Measures everything that was planned.
pub fn measure_all(plan: &Plan, leader: &mut Leader, limits: &mut Limits) -> Result<Vec<Findings>> {
    let steps = plan.sizes.len() * plan.rounds * (plan.ops.len() + 2);
    // Hidden by itself if standard error is no terminal.
    let bar = ProgressBar::new(steps as u64).with_style(
        ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}").context("a template")?,
    );
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
    limits: &mut Limits,
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
        leader.verify(op, bytes, compared).with_context(|| format!("{} (verified)", op.word()))?;
        let counted = Counts::find(plan, leader, op, bytes).with_context(|| op.word())?;
        let compared = compared * u64::from(plan.pairs);
        findings.ops.push((op, Figures { compared, ..Figures::default() }));
        counts.push(counted);
    }
    for socket in [Socket::Unix, Socket::Tcp] {
        counts.push(Counts::find_socket(plan, limits, socket, bytes)?);
        findings.sockets.push((socket, Figures { batch: 1, ..Figures::default() }));
    }
    let copies = count_for(plan.sample, 4, |count| {
        limits.memcpy(bytes, count);
        Ok(())
    })?;

    for _ in 0..plan.rounds {
        let mut counts = counts.iter();
        for (op, figures) in &mut findings.ops {
            begin(op.word());
            let counts = counts.next().context("counts of every operation")?;
            figures.lines_ns.extend(limits.line_ns()?);
            let latency = leader.latency(*op, bytes, counts.round_trips, counts.short)?;
            figures.times_ns.extend(latency.times_ns);
            figures.batch = latency.batch;
            figures.lines_ns.extend(limits.line_ns()?);
            let stream = leader.stream(*op, bytes, counts.messages)?;
            figures.totals.push(stream.total);
            figures.shares.push(stream.rates);
            figures.lines_ns.extend(limits.line_ns()?);
        }
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

/// How many make a sample.
struct Counts {
    round_trips: u64,
    messages: u64,
    /// Whether round trips are so short that they are timed in batches.
    short: bool,
}

impl Counts {
    fn find(plan: &Plan, leader: &mut Leader, op: Op, bytes: usize) -> Result<Counts> {
        let mut one_way_ns = f64::MAX;
        let round_trips = count_for(plan.sample, 4, |count| {
            let times_ns = leader.latency(op, bytes, count, false)?.times_ns;
            one_way_ns = median(&times_ns).unwrap_or(one_way_ns);
            Ok(())
        })?;
        let messages = count_for(plan.sample, window(bytes), |count| {
            leader.stream(op, bytes, count).map(drop)
        })?;
        Ok(Counts { round_trips, messages, short: Leader::is_short(one_way_ns) })
    }

    fn find_socket(
        plan: &Plan,
        limits: &mut Limits,
        socket: Socket,
        bytes: usize,
    ) -> Result<Counts> {
        let round_trips =
            count_for(plan.sample, 4, |count| limits.ping_pong(socket, bytes, count).map(drop))?;
        let messages =
            count_for(plan.sample, 16, |count| limits.stream(socket, bytes, count).map(drop))?;
        Ok(Counts { round_trips, messages, short: false })
    }
}

/// Finds how many of something take about as long as a sample should, by doing it `first` times and then more.
fn count_for(sample: Duration, first: u64, mut run: impl FnMut(u64) -> Result<()>) -> Result<u64> {
    const MOST: u64 = 1 << 26;
    let mut count = first;
    loop {
        let start = Instant::now();
        run(count)?;
        let took = start.elapsed().max(Duration::from_nanos(100));
        if took >= sample / 8 || count >= MOST {
            let scaled = count as f64 * sample.as_secs_f64() / took.as_secs_f64();
            return Ok((scaled as u64).clamp(first.min(4), MOST));
        }
        count *= 4;
    }
}
