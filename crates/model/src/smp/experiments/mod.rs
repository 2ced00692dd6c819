//! The experiments of the paper, one file each. Each says what was calibrated, what the mechanism predicts, and what was published.
//!
//! Three constants are calibrated, on two published values, for all experiments together:
//!
//! | constant | value | fitted to |
//! |---|---|---|
//! | `layer_cycles` | 4 | 4.2(1): 148 ns for 16 DW, store-and-forward |
//! | `link_packet` | 15 ns | Fig. 6: 17 packets of 32 DW with 2 KB by default |
//! | `drain_gap_cycles` | 1 | the same |

mod bandwidth;
mod delay;
mod fig6;
mod fig7;
pub mod run_length;

use crate::experiment::{Experiment, Report};

/// All experiments, in the order of the paper.
pub const EXPERIMENTS: [Experiment; 4] = [
    Experiment {
        id: "bandwidth",
        title: "effective bandwidth before and after the optimisation",
        run: bandwidth::run,
    },
    Experiment { id: "fig5", title: "transfer delay against length", run: delay::run },
    Experiment { id: "fig6", title: "packets before a stall, one channel", run: fig6::run },
    Experiment {
        id: "fig7",
        title: "packets before a stall, two channels, and the recommended setting",
        run: fig7::run,
    },
];

/// Lengths in DW, the header counted with 4, that the delay and run-length experiments use.
const LENGTHS_DW: [usize; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
