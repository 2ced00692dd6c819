//! The duration of the papers' experiments, two at a time.

use std::num::NonZero;
use std::time::Instant;

use anyhow::{Result, ensure};
use bellwire_papers::Paper;
use bellwire_papers::experiments::{MODELLED, Modelled, run_all};
use serde::Serialize;

/// A finished set of experiments.
#[derive(Clone, Debug, Serialize)]
pub struct Run {
    pub what: String,
    pub experiments: usize,
    /// Wall-clock time, in seconds.
    pub seconds: f64,
    /// Longest time allowed by the goal, in seconds.
    pub goal_seconds: f64,
}

/// Runs each paper's experiments, and Table 3 of cHPP alone.
pub fn all() -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    for &(paper, experiments) in MODELLED.iter() {
        let goal = if paper == Paper::ChppNic { 60.0 } else { 30.0 };
        runs.push(run(paper.name().to_owned(), (paper, experiments), goal)?);
        if let Some(at) = experiments.iter().position(|experiment| experiment.id == "table3") {
            let alone = (paper, &experiments[at..=at]);
            runs.push(run(format!("{}, Table 3 alone", paper.name()), alone, 1.0)?);
        }
    }
    Ok(runs)
}

fn run(what: String, modelled: Modelled, goal_seconds: f64) -> Result<Run> {
    let two = NonZero::new(2).expect("it is not zero");
    let began = Instant::now();
    let ran = run_all(&[modelled], two, |_, _| {});
    let seconds = began.elapsed().as_secs_f64();
    let failures: usize = ran.iter().map(|paper| paper.failures.len()).sum();
    ensure!(failures == 0, "{failures} experiments of {what} could not be run");
    let experiments = modelled.1.len();
    Ok(Run { what, experiments, seconds, goal_seconds })
}
