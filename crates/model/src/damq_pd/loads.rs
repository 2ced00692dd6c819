//! The load of the descriptor interface, for trials with any parameters.

use serde::{Deserialize, Serialize};

use super::experiments::perturbed::{Window, measure};
use super::{Config, Load as OfPort};
use crate::trial::{Load, Measured, Quantity, Trial, high, low, neither, within};
use crate::units::Span;

/// The loads.
pub const LOADS: [Trial; 1] = [Trial::of::<Ports>()];

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Ports {
    gap: Span,
    burst: u64,
    words: u64,
    warm_up: Span,
    counted: Span,
}

impl Default for Ports {
    fn default() -> Ports {
        Ports {
            gap: Span::ZERO,
            burst: 1,
            words: OfPort::SATURATED.words.into(),
            warm_up: Span::from_ns(15_000),
            counted: Span::from_ns(60_000),
        }
    }
}

impl Load for Ports {
    type System = Config;
    const NAME: &'static str = "ports";
    const TITLE: &'static str =
        "all ports post messages: always another one, or with a mean `gap` between bursts";
    const QUANTITIES: &'static [Quantity] = &[
        high("rate_M_s", "millions of descriptors that left per second"),
        low("mean_ns", "mean time from post to leaving"),
        low("p99_ns", "99th percentile of that time"),
        neither("dma_share", "share of these descriptors that came by DMA"),
    ];

    fn base(_: &dyn Fn(&str) -> Option<String>) -> Result<Config, String> {
        Ok(Config::paper())
    }

    fn run(&self, system: &Config, seed: u64) -> Result<Measured, String> {
        /// Longer runs take minutes.
        const LONGEST_NS: u64 = 100_000_000;
        let ns = |span: Span| span.ps() / 1000;
        within("burst", self.burst, 1, 4096)?;
        within("words", self.words, 0, OfPort::SATURATED.words.into())?;
        within("warm_up in ns", ns(self.warm_up), 0, LONGEST_NS)?;
        within("counted in ns", ns(self.counted), 1, LONGEST_NS)?;
        let load = OfPort {
            gap: self.gap,
            burst: self.burst as u32,
            words: self.words as u16,
            start: Span::from_ns(3000),
            ..OfPort::SATURATED
        };
        let window = Window { warm_up_ns: ns(self.warm_up), counted_ns: ns(self.counted) };
        let run = measure(system, &vec![load; system.nic.ports], seed, window)?;
        let figures = vec![run.rate, run.mean_ns, run.p99_ns, run.dma_share];
        Ok(Measured { figures, trace_hash: run.trace_hash })
    }
}
