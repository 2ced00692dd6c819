//! The machine under load: synthetic traffic from a TOML file, measured in its steady state, or a
//! program's schedule.
//!
//! - `plan`: the form of a file, and its errors;
//! - `traffic`: sources, destinations and times of messages;
//! - `report`: the results;
//! - `schedule`: runs message-passing programs (GOAL) instead; `blame` says why one does not end.

mod blame;
mod message;
mod plan;
mod report;
mod room;
mod schedule;
mod traffic;

pub use plan::{
    Arrival, Duration, EXAMPLE, Plan, PlanError, SCHEDULE_EXAMPLE, SchedulePlan, ScheduleSource,
    Sizes, Traffic,
};
pub use report::{Limit, Percentiles, Report};
pub use schedule::{Execution, MOST_EAGER_BYTES, Outcome};
pub use traffic::Workload;
