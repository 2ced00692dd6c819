//! The experiments of the paper, one file each. Each says what was calibrated, what the mechanism predicts, and what was published.
//!
//! Two constants are calibrated, on one published value each, for all experiments together:
//!
//! | constant | value | fitted to |
//! |---|---|---|
//! | `layer_cycles` | 4 | 4.2(1): 148 ns for 16 DW, store-and-forward |
//! | `network_clock` | 243 MHz | Fig. 6: 17 packets of 32 DW with 2 KB by default |
//!
//! With `link_packet` chosen otherwise, from nothing to 6 ns, the 17 want 240 to 244 MHz, and all else that is published of Figs. 6 and 7 stays.

mod bandwidth;
mod delay;
mod fig6;
mod fig7;
pub mod run_length;

use crate::experiment::{Axis, Experiment, Report};

/// All experiments, in the order of the paper.
pub const EXPERIMENTS: [Experiment; 4] =
    [bandwidth::EXPERIMENT, delay::EXPERIMENT, fig6::EXPERIMENT, fig7::EXPERIMENT];

/// Lengths in DW, the header counted with 4, that the delay and run-length experiments use.
const LENGTHS_DW: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];

/// The horizontal axis of the paper's figures.
const LENGTH_AXIS: Axis = Axis::logarithmic("length of a packet", "DW");

/// The vertical axis of Figs. 6 and 7.
const RUN_AXIS: Axis = Axis::linear("packets before a stall, 65: for ever", "");
