//! The paper's experiments, one file each. Each states the calibrated, the predicted and the
//! published values.
//!
//! Two constants are calibrated, on one published value each, for all experiments together:
//!
//! | constant | value | fitted to |
//! |---|---|---|
//! | `layer_cycles` | 4 | 4.2(1): 148 ns for 16 DW, store-and-forward |
//! | `network_clock` | 243 MHz | Fig. 6: 17 packets of 32 DW with 2 KB by default |
//!
//! If `link_packet` is anything from 0 to 6 ns, these 17 packets need 240 to 244 MHz. All other
//! published results of Figs. 6 and 7 stay the same.

mod bandwidth;
mod delay;
mod fig6;
mod fig7;
pub mod run_length;

use crate::experiment::{Axis, Experiment, Report};

pub use delay::sensitivity;

/// What the paper publishes, by experiment.
const PUBLISHED: &str = include_str!("../published.toml");

/// All experiments, in the order of the paper.
pub const EXPERIMENTS: [Experiment; 4] =
    [bandwidth::EXPERIMENT, delay::EXPERIMENT, fig6::EXPERIMENT, fig7::EXPERIMENT];

/// Lengths in DW for the delay and run-length experiments; the header counts 4.
const LENGTHS_DW: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The horizontal axis of the paper's figures.
const LENGTH_AXIS: Axis = Axis::logarithmic("length of a packet", "DW");

/// The vertical axis of Figs. 6 and 7.
const RUN_AXIS: Axis = Axis::linear("packets before a stall, 65: for ever", "");
