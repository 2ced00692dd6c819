//! Write combining: a processor's stores of a descriptor leave as few bursts (D-12).

use super::config::BusConfig;

/// Lengths in bytes of the packets in which `bytes` of stores leave.
pub fn bursts(config: &BusConfig, bytes: u64) -> impl Iterator<Item = u64> + use<> {
    let burst = config.burst.count();
    (0..bytes.div_ceil(burst)).map(move |at| burst.min(bytes - at * burst))
}
