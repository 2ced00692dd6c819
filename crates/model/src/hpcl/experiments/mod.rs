//! The paper's experiments, one file each. Each states the calibrated, the predicted and the
//! published values.
//!
//! Two constants are set from two published values, for all experiments together:
//!
//! | constant | value | fitted to |
//! |---|---|---|
//! | `host.driver_frame` | 700 ns | 5, Fig. 7: HPCL's 2.54E-05 s at 128 B |
//! | `nic.interrupt_gap` | 241 us | 5, Fig. 7: half of TCP/IP's 4.82E-04 s at 128 B |
//!
//! The second is an input: TCP/IP's round trip is twice the gap, whatever else changes.

mod all_to_all;
mod bandwidth;
mod buffers;
mod connections;
pub mod measure;
pub mod perturbed;
mod reaping;
mod round_trip;
mod soft_interrupt;

use crate::experiment::{Axis, Experiment, Report};

pub use round_trip::sensitivity;

/// What the paper publishes, by experiment.
pub const PUBLISHED: &str = include_str!("../published.toml");

/// All experiments: the paper's figures, the gain of each mechanism, and the whole cluster.
pub const EXPERIMENTS: [Experiment; 7] = [
    round_trip::EXPERIMENT,
    bandwidth::EXPERIMENT,
    reaping::EXPERIMENT,
    soft_interrupt::EXPERIMENT,
    buffers::EXPERIMENT,
    connections::EXPERIMENT,
    all_to_all::EXPERIMENT,
];

/// Message sizes in bytes. The paper reports 128 and 1196, where its test ends.
const SIZES: [u32; 9] = [8, 16, 32, 64, 128, 256, 512, 1024, 1196];
/// The size of the paper's round trips.
pub const SMALL: u32 = 128;
/// The size of the paper's bandwidth.
pub const LARGE: u32 = 1196;

const MESSAGE: Axis = Axis::logarithmic("message", "B");
