//! From findings to the report: medians and spread, ratios, goals; as JSON and as Markdown.

mod goals;
mod markdown;
mod network_goals;

use serde::Serialize;

pub use goals::Goal;
pub use markdown::markdown;

use crate::contenders::{CONTENDERS, Kind};
use crate::distance::{Distance, FAR_ABOVE_NS, NEAR_BELOW_NS};
use crate::machine::Machine;
use crate::op::{MEMORY_ROWS, NETWORK_ROWS, Op, Row, Unit};
use crate::rounds::Findings;
use crate::statistics::Summary;

#[derive(Serialize)]
pub struct Report {
    /// The command that makes this report.
    pub command: String,
    pub machine: Machine,
    pub rounds: usize,
    /// How many samples were near, far, and neither.
    pub distances: Distances,
    /// Every measured row and contender.
    pub rows: Vec<Line>,
    /// Bellwire's goals, and whether they are met.
    pub goals: Vec<Goal>,
    /// Contenders without figures, or that stopped, and the reason.
    pub not_measured: Vec<NotMeasured>,
}

/// The classes of the samples.
#[derive(Serialize)]
pub struct Distances {
    /// Bounds of the classes, one-way.
    pub near_below_ns: f64,
    /// See `near_below_ns`.
    pub far_above_ns: f64,
    /// Samples with both probes near.
    pub near_samples: usize,
    /// Samples with both probes far.
    pub far_samples: usize,
    /// Samples that were not used.
    pub unclear_samples: usize,
    /// The probes of near samples, one-way ns.
    pub near_line: Option<Summary>,
    /// The probes of far samples, one-way ns.
    pub far_line: Option<Summary>,
}

/// One contender in one row.
#[derive(Serialize)]
pub struct Line {
    #[serde(flatten)]
    pub row: Row,
    pub contender: &'static str,
    pub kind: Kind,
    /// Its description, with its version if the set-up knows it.
    pub about: String,
    pub unit: Unit,
    pub near: Option<Summary>,
    pub far: Option<Summary>,
    /// In a fan-in, each sender's share of all messages (1 / number of senders is fair).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<f64>,
}

impl Line {
    pub fn at(&self, distance: Distance) -> Option<Summary> {
        match distance {
            Distance::Near => self.near,
            Distance::Far => self.far,
            Distance::Unclear => None,
        }
    }
}

/// A contender without figures, or with a part of them.
#[derive(Serialize)]
pub struct NotMeasured {
    pub contender: &'static str,
    pub why: String,
}

impl Report {
    /// Summarizes a run. `absent` are the contenders that could not be started; `version` knows the
    /// versions of peers.
    pub fn new(
        command: String,
        machine: Machine,
        findings: &Findings,
        absent: Vec<(&'static str, String)>,
        version: impl Fn(&str) -> Option<String>,
    ) -> Report {
        let mut rows = Vec::new();
        for &row in MEMORY_ROWS.iter().chain(NETWORK_ROWS) {
            for contender in CONTENDERS {
                let summary = |distance| {
                    Summary::of(findings.figures.get(&(row, contender.name, distance))?)
                };
                let (near, far) = (summary(Distance::Near), summary(Distance::Far));
                if near.is_none() && far.is_none() {
                    continue;
                }
                let about = match version(contender.name) {
                    Some(version) => format!("{} ({version})", contender.about),
                    None => contender.about.to_string(),
                };
                let shares = findings.shares.get(contender.name).filter(|_| row.op == Op::FanIn);
                rows.push(Line {
                    row,
                    contender: contender.name,
                    kind: contender.kind,
                    about,
                    unit: row.op.unit(),
                    near,
                    far,
                    shares: shares.map(|counts| parts(counts)).unwrap_or_default(),
                });
            }
        }
        let samples = |distance| findings.samples.get(&distance).copied().unwrap_or(0);
        let probes = |distance| Summary::of(findings.probes.get(&distance)?);
        let distances = Distances {
            near_below_ns: NEAR_BELOW_NS,
            far_above_ns: FAR_ABOVE_NS,
            near_samples: samples(Distance::Near),
            far_samples: samples(Distance::Far),
            unclear_samples: samples(Distance::Unclear),
            near_line: probes(Distance::Near),
            far_line: probes(Distance::Far),
        };
        let not_measured = absent
            .into_iter()
            .chain(findings.stopped.iter().cloned())
            .map(|(contender, why)| NotMeasured { contender, why })
            .collect();
        let goals = goals::judge(&rows);
        Report { command, machine, rounds: findings.rounds, distances, rows, goals, not_measured }
    }
}

/// The best median among `lines` of a row in a class, and its contender.
fn best(
    lines: &[Line],
    row: Row,
    distance: Distance,
    among: impl Fn(&Line) -> bool,
) -> Option<(f64, &'static str)> {
    let medians = lines
        .iter()
        .filter(|line| line.row == row && among(line))
        .filter_map(|line| Some((line.at(distance)?.median, line.contender)));
    medians.reduce(|best, next| if row.op.unit().better(next.0, best.0) { next } else { best })
}

/// Counts as fractions of their sum.
fn parts(counts: &[u64]) -> Vec<f64> {
    let sum: u64 = counts.iter().sum();
    counts.iter().map(|&count| count as f64 / sum.max(1) as f64).collect()
}
