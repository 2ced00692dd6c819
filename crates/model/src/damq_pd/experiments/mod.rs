//! The paper's experiments, and those that decided our own choices. Nothing is calibrated: the
//! model predicts every value from the parameters that the paper prints.

mod analysis;
pub mod fig9;
mod measure;
pub mod perturbed;
mod policies;
mod polling;
mod rate;
pub mod start;
pub mod submission;
mod sweep;
pub mod waveform;

use crate::experiment::{Experiment, Run};

pub use rate::sensitivity;

/// What the paper publishes, by experiment.
const PUBLISHED: &str = include_str!("../published.toml");

/// All experiments, in the order of the paper; the last three are ours.
pub const EXPERIMENTS: [Experiment; 8] = [
    of("start", "a start by PIO and by DMA", "D-10, D-11, D-12, D-30", start::run),
    of("polling", "what polling costs the bus", "D-31, B-11, B-12", polling::run),
    of("analysis", "storage, capacity and utilisation, counted", "D-23, D-24, D-25", analysis::run),
    of("fig9", "the run of 3.3", "D-04, D-05, D-06, D-07, D-08, D-26", fig9::run),
    of("rate", "message rate against virtual ports", "D-27, D-28, D-29, B-13", rate::run),
    of("policies", "grant policies: rate, fairness, latency", "D-14, D-16, D-18", policies::run),
    of("sweep", "message rate against depth, policy, read latency", "D-14, D-15", sweep::run),
    of(
        "submission",
        "doorbell, damq-pd and ring in the cHPP interface",
        "D-10, D-11, D-16, D-30",
        submission::run,
    ),
];

const fn of(id: &'static str, title: &'static str, rows: &'static str, run: Run) -> Experiment {
    Experiment { id, title, rows, published: PUBLISHED, run }
}
