//! What a run measures.

mod confidence;
mod occupancy;
mod tally;

pub use confidence::{Estimate, SeriesTooShort, batch_means, warm_up};
pub use occupancy::{Imbalance, Occupancy};
pub use tally::Tally;
