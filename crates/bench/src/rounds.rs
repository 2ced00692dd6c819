//! The measurement: rounds in which every contender runs every row once, in short samples one after
//! the other. So disturbances of the machine affect all contenders alike. A probe between two
//! samples brackets both.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};

use crate::contenders::Contender;
use crate::distance::{Distance, PROBE_ROUND_TRIPS};
use crate::op::{Op, Row, TAIL_MESSAGES, Wire};
use crate::session::Session;

/// A contender under measurement.
pub struct Runner {
    pub contender: &'static Contender,
    wire: Wire,
    session: Option<Session>,
    /// Messages of a sample in each row, once determined.
    counts: BTreeMap<Row, u64>,
}

impl Runner {
    /// A contender that has been started over a wire.
    pub fn new(contender: &'static Contender, wire: Wire, session: Session) -> Runner {
        Runner { contender, wire, session: Some(session), counts: BTreeMap::new() }
    }
}

/// The results of all rounds.
#[derive(Default)]
pub struct Findings {
    /// Rounds that were run, for shared memory and for the network together.
    pub rounds: usize,
    /// Samples in each class of distance.
    pub samples: BTreeMap<Distance, usize>,
    /// The probes' own figures, one-way, by the class of the bracket that they opened.
    pub probes: BTreeMap<Distance, Vec<f64>>,
    /// All figures of the classes that are reported.
    pub figures: BTreeMap<(Row, &'static str, Distance), Vec<f64>>,
    /// Messages from each sender over all fan-ins.
    pub shares: BTreeMap<&'static str, Vec<u64>>,
    /// Contenders that stopped during the run, and the reason.
    pub stopped: Vec<(&'static str, String)>,
}

/// Fewest rounds, however long they take.
const LEAST_ROUNDS: usize = 3;

/// Measures `rows` for about `time`, with `probe` as the line ping-pong between the samples, and
/// adds to `findings`.
pub fn measure(
    runners: &mut [Runner],
    rows: &[Row],
    probe: &mut Session,
    time: Duration,
    findings: &mut Findings,
) -> Result<()> {
    if runners.is_empty() {
        return Ok(());
    }
    let bar = ProgressBar::new(time.as_millis() as u64).with_style(
        ProgressStyle::with_template("{bar:30} {percent:>3} %  {wide_msg}").expect("a template"),
    );
    let start = Instant::now();
    let mut rounds = 0;
    while rounds < LEAST_ROUNDS || start.elapsed() < time {
        let mut before_ns = one_way_ns(probe)?;
        for &row in rows.iter().filter(|row| row.op != Op::Idle) {
            for turn in 0..runners.len() {
                // Every round begins with another contender, so that none always follows the same
                // one.
                let place = (turn + rounds) % runners.len();
                before_ns = sample(&mut runners[place], row, probe, before_ns, findings)?;
            }
            bar.set_position(start.elapsed().as_millis() as u64);
            bar.set_message(format!("round {}: {}", rounds + 1, row.title()));
        }
        rounds += 1;
    }
    bar.finish_and_clear();
    findings.rounds += rounds;
    // An idle row takes seconds, and needs no repetition.
    for &row in rows.iter().filter(|row| row.op == Op::Idle) {
        for runner in &mut *runners {
            let before_ns = one_way_ns(probe)?;
            sample(runner, row, probe, before_ns, findings)?;
        }
    }
    Ok(())
}

/// Takes one sample and the probe after it, and returns the probe's figure. A contender that fails
/// is reported and dropped.
fn sample(
    runner: &mut Runner,
    row: Row,
    probe: &mut Session,
    before_ns: f64,
    findings: &mut Findings,
) -> Result<f64> {
    let name = runner.contender.name;
    let fits = |session: &&mut Session| session.ops.contains(&row.op) && runner.wire == row.wire;
    let Some(session) = runner.session.as_mut().filter(fits) else {
        return Ok(before_ns);
    };
    let mut before_ns = before_ns;
    let outcome = match runner.counts.get(&row) {
        Some(&count) => session.run(row.op, row.bytes, count).map(|outcome| (count, outcome)),
        None => find_count(session, row).and_then(|count| {
            runner.counts.insert(row, count);
            before_ns = one_way_ns(probe)?;
            session.run(row.op, row.bytes, count).map(|outcome| (count, outcome))
        }),
    };
    let (count, outcome) = match outcome {
        Ok(outcome) => outcome,
        Err(why) => {
            findings.stopped.push((name, format!("stopped at \"{}\": {why:#}", row.title())));
            runner.session = None;
            return one_way_ns(probe);
        }
    };
    if !matches!(row.op, Op::Idle | Op::Tail) && outcome.time_ns < row.sample_ns() / 2 {
        // The count was determined during a disturbance, or far, and now we are near.
        runner.counts.insert(row, scaled(count, row.sample_ns(), outcome.time_ns));
    }
    let after_ns = one_way_ns(probe)?;
    let distance = Distance::bracketed(before_ns, after_ns);
    *findings.samples.entry(distance).or_default() += 1;
    findings.probes.entry(distance).or_default().push(before_ns);
    if distance != Distance::Unclear {
        let figure = row.op.figure(row.bytes, count, outcome.time_ns);
        findings.figures.entry((row, name, distance)).or_default().push(figure);
    }
    if !outcome.shares.is_empty() {
        let shares = findings.shares.entry(name).or_insert_with(|| vec![0; outcome.shares.len()]);
        for (sum, share) in shares.iter_mut().zip(&outcome.shares) {
            *sum += share;
        }
    }
    Ok(after_ns)
}

/// Determines how many messages fill a sample.
fn find_count(session: &mut Session, row: Row) -> Result<u64> {
    let target_ns = row.sample_ns();
    match row.op {
        Op::Idle => return Ok(target_ns / 1_000_000),
        Op::Tail => return Ok(TAIL_MESSAGES),
        _ => {}
    }
    let mut count = 1;
    loop {
        // The least of a few: an interrupted trial would make all samples too short.
        let mut time_ns = u64::MAX;
        for _ in 0..3 {
            time_ns = time_ns.min(session.run(row.op, row.bytes, count)?.time_ns.max(1));
            if time_ns < target_ns / 4 {
                break;
            }
        }
        if time_ns >= target_ns / 4 || count >= MOST_MESSAGES {
            return Ok(scaled(count, target_ns, time_ns));
        }
        count *= 4;
    }
}

/// The number of messages that take `target_ns` if `count` take `time_ns`.
fn scaled(count: u64, target_ns: u64, time_ns: u64) -> u64 {
    let scaled = u128::from(count) * u128::from(target_ns) / u128::from(time_ns.max(1));
    scaled.clamp(1, u128::from(MOST_MESSAGES)) as u64
}

const MOST_MESSAGES: u64 = 1 << 30;

fn one_way_ns(probe: &mut Session) -> Result<f64> {
    let outcome = probe.run(Op::Latency, 8, PROBE_ROUND_TRIPS).context("the probe failed")?;
    Ok(Op::Latency.figure(8, PROBE_ROUND_TRIPS, outcome.time_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of messages follows their time, and stays within its bounds.
    #[test]
    fn count_follows_time() {
        assert_eq!(scaled(100, 4_000, 1_000), 400);
        assert_eq!(scaled(100, 4_000, 1_000_000), 1);
        assert_eq!(scaled(MOST_MESSAGES, u64::MAX, 0), MOST_MESSAGES);
    }
}
