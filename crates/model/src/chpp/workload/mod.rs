//! The machine under load: synthetic traffic from a TOML file, measured in its steady state.
//!
//! - `plan`: what a file says, and what is wrong with it;
//! - `traffic`: who sends what to whom, and when;
//! - `report`: what came of it.

mod plan;
mod report;
mod traffic;

pub use plan::{Arrival, Duration, EXAMPLE, Operation, Plan, PlanError, Sizes, Traffic};
pub use report::{Percentiles, Report};
pub use traffic::Workload;
