//! The experiments of the paper, one file each. Each names what is calibrated, what the mechanism
//! predicts, and what the paper publishes.
//!
//! Three constants are calibrated, on three published values, for all experiments together:
//!
//! | constant | value | fitted to |
//! |---|---|---|
//! | `nic.module_cycles` | 4 | Fig. 17: 35 engine cycles of an immediate NAP |
//! | `host.memory_latency` | 148 ns | section 5.3: a memory read takes 130 cycles |
//! | `pcie.latency` | 166 ns | Table 3: 1.242 us for an immediate NAP of 1 B |

mod eq2;
mod fig15;
mod fig16;
mod fig17;
pub mod fig18;
pub mod fig19;
pub mod fig5;
mod links;
mod loaded;
mod protocol;
pub mod saturated;
pub mod single;
mod staged;
mod start;
pub mod stream;
mod table3;
mod table4;

use crate::experiment::Experiment;

pub use single::Kind;
pub use table3::sensitivity;

/// What the paper publishes, by experiment.
const PUBLISHED: &str = include_str!("../published.toml");

/// All experiments, in the order of the paper.
pub const EXPERIMENTS: [Experiment; 13] = [
    fig5::EXPERIMENT,
    links::EXPERIMENT,
    fig15::EXPERIMENT,
    eq2::EXPERIMENT,
    fig16::EXPERIMENT,
    table3::EXPERIMENT,
    fig17::EXPERIMENT,
    fig18::EXPERIMENT,
    fig19::EXPERIMENT,
    start::EXPERIMENT,
    protocol::EXPERIMENT,
    staged::EXPERIMENT,
    table4::EXPERIMENT,
];
