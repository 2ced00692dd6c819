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

mod bounded;
mod eq2;
mod fig15;
mod fig16;
mod fig17;
pub mod fig18;
pub mod fig19;
pub mod fig5;
mod links;
pub mod perturbed;
mod protocol;
pub mod saturated;
pub mod single;
mod staged;
mod start;
pub mod stream;
mod table3;
mod table4;

use crate::experiment::{Experiment, Report};

pub use single::Kind;
pub use table3::sensitivity;

/// All experiments, in the order of the paper.
pub const EXPERIMENTS: [Experiment; 13] = [
    experiment("fig5", "Eq. 1 and Table 1 over five topologies", "C-51, B-07", fig5::run),
    experiment("links", "controllers joined in six topologies", "C-02, B-07", links::run),
    experiment("fig15", "peak bandwidth against MTU", "C-45, C-47", fig15::run),
    experiment("eq2", "tags needed, formula and model", "C-46", eq2::run),
    experiment("fig16", "bandwidth against payload, four primitives", "C-48", fig16::run),
    experiment("table3", "latency against payload, four primitives", "C-49", table3::run),
    experiment("fig17", "where the cycles of a byte go", "C-50", fig17::run),
    experiment("fig18", "latency against throughput, five crossbars", "C-44", fig18::run),
    experiment("fig19", "shares of eight functions over time", "C-41, C-40", fig19::run),
    experiment("start", "doorbell against descriptor start", "B-01, C-31", start::run),
    experiment(
        "protocol",
        "what longer headers and protocol conversion cost",
        "B-04, B-05",
        protocol::run,
    ),
    experiment("staged", "co-processors, directly and through hosts", "B-08, C-01", staged::run),
    experiment("table4", "place among networks", "C-52, B-06", table4::run),
];

const fn experiment(
    id: &'static str,
    title: &'static str,
    rows: &'static str,
    run: fn(&mut Report) -> Result<(), String>,
) -> Experiment {
    Experiment { id, title, rows, published: include_str!("../published.toml"), run }
}
