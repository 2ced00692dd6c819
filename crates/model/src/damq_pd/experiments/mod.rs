//! The experiments of the paper, and those by which our choices were made. Nothing is calibrated: every value of the model is predicted from
//! the parameters that the paper prints.

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

/// All experiments, in the order of the paper; the last three are our own.
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
