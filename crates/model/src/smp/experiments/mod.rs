//! The paper's experiments, one file each. Each states the calibrated, the predicted and the
//! published values.
//!
//! Three constants are calibrated for all experiments together:
//!
//! | constant | value | fitted to |
//! |---|---|---|
//! | `layer_cycles` | 4 | 4.2(1): 148 ns for 16 DW, store-and-forward |
//! | `network_clock` | 225.5 MHz | Fig. 6: 17 packets of 32 DW with 2 KB by default |
//! | `link_packet` | 16 ns | Fig. 7: 128 DW do not stop with 192 data credits |
//!
//! Which packets Fig. 6 counts was chosen knowing its 3 and 4 of 128 DW, so these are calibrated,
//! too.
//!
//! Link packets of up to 18 ns each have a clock (215 to 227 MHz) that gives these 17 packets.
//! Only from 16 ns on, more than 64 packets of 128 DW go with 192 data credits.

mod bandwidth;
mod delay;
mod fig6;
mod fig7;
pub mod perturbed;
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
const RUN_AXIS: Axis = Axis::linear("packets before a stall, 65: more than 64", "");
