//! The experiments of the paper, one file each. Each says what was calibrated, what the mechanism predicts, and what was published.
//!
//! Three constants are calibrated, on three published values, for all experiments together:
//!
//! | constant | value | fitted to |
//! |---|---|---|
//! | `nic.module_cycles` | 4 | Fig. 17: 35 engine cycles of an immediate NAP |
//! | `host.memory_latency` | 148 ns | section 5.3: a memory read takes 130 cycles |
//! | `pcie.latency` | 166 ns | Table 3: 1.242 us for an immediate NAP of 1 B |

mod fig17;
pub mod report;
pub mod single;
mod table3;

pub use report::Report;
pub use single::Kind;

/// An experiment: its name, what it is, and how to run it.
pub struct Experiment {
    /// Name, as the command takes it.
    pub id: &'static str,
    /// What it is.
    pub title: &'static str,
    /// Runs it; a sentence if it cannot be run.
    pub run: fn() -> Result<Report, String>,
}

/// All experiments, in the order of the paper.
pub const EXPERIMENTS: [Experiment; 2] = [
    Experiment {
        id: "table3",
        title: "latency against payload, four primitives",
        run: table3::run,
    },
    Experiment { id: "fig17", title: "where the cycles of a byte go", run: fig17::run },
];
