//! Write combining: a processor's stores of a descriptor leave in few bursts (D-12).

use super::config::BusConfig;

/// Lengths of the packets that carry `bytes` of stores, in bytes.
pub fn bursts(config: &BusConfig, bytes: u64) -> impl Iterator<Item = u64> + use<> {
    let burst = config.burst.count();
    (0..bytes.div_ceil(burst)).map(move |at| burst.min(bytes - at * burst))
}
