//! The experiments of the paper, one file each. Each says what was calibrated, what the mechanism predicts, and what was published.
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

/// All experiments, in the order of the paper.
pub const EXPERIMENTS: [Experiment; 13] = [
    Experiment { id: "fig5", title: "Eq. 1 and Table 1 over five topologies", run: fig5::run },
    Experiment { id: "links", title: "controllers joined in six topologies", run: links::run },
    Experiment { id: "fig15", title: "peak bandwidth against MTU", run: fig15::run },
    Experiment { id: "eq2", title: "tags needed, formula and model", run: eq2::run },
    Experiment {
        id: "fig16",
        title: "bandwidth against payload, four primitives",
        run: fig16::run,
    },
    Experiment {
        id: "table3",
        title: "latency against payload, four primitives",
        run: table3::run,
    },
    Experiment { id: "fig17", title: "where the cycles of a byte go", run: fig17::run },
    Experiment {
        id: "fig18",
        title: "latency against throughput, five crossbars",
        run: fig18::run,
    },
    Experiment { id: "fig19", title: "shares of eight functions over time", run: fig19::run },
    Experiment { id: "start", title: "doorbell against descriptor start", run: start::run },
    Experiment {
        id: "protocol",
        title: "what longer headers and protocol conversion cost",
        run: protocol::run,
    },
    Experiment {
        id: "staged",
        title: "co-processors, directly and through hosts",
        run: staged::run,
    },
    Experiment { id: "table4", title: "place among networks", run: table4::run },
];
