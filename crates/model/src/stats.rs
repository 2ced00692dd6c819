//! What a run measures.

mod confidence;
mod occupancy;
mod steady;
mod tally;

pub use confidence::{Estimate, SeriesTooShort, batch_means, warm_up};
pub use occupancy::{Imbalance, Occupancy};
pub use steady::{Steady, Window};
pub use tally::Tally;

/// Writes a hash as 16 hexadecimal digits, because numbers of JSON lose its last bits in many readers.
pub(crate) fn hexadecimal<S: serde::Serializer>(
    hash: &u64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{hash:016x}"))
}
