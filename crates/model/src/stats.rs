//! What a run measures.

mod confidence;
#[cfg(test)]
mod exact;
mod occupancy;
mod queue;
mod steady;
mod tally;

pub use confidence::{
    Estimate, LEAST_SEEDS, SeriesTooShort, batch_means, bound_of_never, excess, over_seeds, warm_up,
};
pub use occupancy::{Imbalance, Occupancy};
pub use queue::{Queue, QueueUse, Watched};
pub use steady::{Steady, Window};
pub use tally::Tally;

/// The ratio of the smallest to the largest amount delivered: 1 is perfectly fair.
pub(crate) fn fairness(delivered_from: &[u64]) -> f64 {
    let least = delivered_from.iter().min().copied().unwrap_or(0);
    let most = delivered_from.iter().max().copied().unwrap_or(0);
    if most == 0 { 1.0 } else { least as f64 / most as f64 }
}

/// Writes a hash as 16 hexadecimal digits: many JSON readers lose the low bits of large numbers.
pub(crate) fn hexadecimal<S: serde::Serializer>(
    hash: &u64,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{hash:016x}"))
}
