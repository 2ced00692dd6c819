//! The paper's experiments, and those that decided our own choices. Nothing is calibrated: the
//! model predicts every value from the parameters that the paper prints.

pub mod analysis;
pub mod fig9;
pub mod measure;
pub mod policies;
pub mod polling;
pub mod rate;
pub mod start;
pub mod submission;
mod sweep;
pub mod waveform;

use crate::experiment::Experiment;

pub use rate::sensitivity;

/// What the paper publishes, by experiment.
const PUBLISHED: &str = include_str!("../published.toml");

/// All experiments, in the order of the paper; the last three are ours.
pub const EXPERIMENTS: [Experiment; 8] = [
    start::EXPERIMENT,
    polling::EXPERIMENT,
    analysis::EXPERIMENT,
    fig9::EXPERIMENT,
    rate::EXPERIMENT,
    policies::EXPERIMENT,
    sweep::EXPERIMENT,
    submission::EXPERIMENT,
];
