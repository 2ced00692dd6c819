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
    Experiment { id: "start", title: "a start by PIO and by DMA", run: start::run },
    Experiment { id: "polling", title: "what polling costs the bus", run: polling::run },
    Experiment {
        id: "analysis",
        title: "storage, capacity and utilisation, counted",
        run: analysis::run,
    },
    Experiment { id: "fig9", title: "the run of 3.3", run: fig9::run },
    Experiment { id: "rate", title: "message rate against virtual ports", run: rate::run },
    Experiment {
        id: "policies",
        title: "grant policies: rate, fairness, latency",
        run: policies::run,
    },
    Experiment {
        id: "sweep",
        title: "message rate against depth, policy, read latency",
        run: sweep::run,
    },
    Experiment {
        id: "submission",
        title: "doorbell, damq-pd and ring in the cHPP interface",
        run: submission::run,
    },
];
