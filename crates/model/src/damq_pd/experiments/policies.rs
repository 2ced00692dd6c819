//! Three grant policies under four loads (D-14). Our copy lacks the paper's heuristic; this
//! comparison chose ours.

use super::measure::{Measured, Window, fairness, measure};
use crate::damq_pd::{Config, LONGEST, Load, POLICIES};
use crate::experiment::{Report, of_each_seed};
use crate::units::Span;

/// Ports of the comparison.
pub const PORTS: usize = 16;

/// The loads of [`PORTS`] ports, by name.
pub fn loads() -> [(&'static str, Vec<Load>); 4] {
    let open = |millions_s: f64, burst| Load {
        gap: Span::from_ps((1e6 / millions_s) as u64),
        burst,
        start: Span::ZERO,
        words: LONGEST,
        messages: u32::MAX,
    };
    let each = |millions_s: f64, burst| vec![open(millions_s / PORTS as f64, burst); PORTS];
    // One port posts as much as all others together.
    let mut skewed = vec![open(30.0 / (PORTS - 1) as f64, 1); PORTS];
    skewed[0] = open(30.0, 1);
    let saturated = Load { start: Span::from_ns(3000), ..Load::SATURATED };
    [
        ("balanced", each(100.0, 1)),
        ("skewed", skewed),
        ("bursty", each(80.0, 64)),
        ("saturated", vec![saturated; PORTS]),
    ]
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    for (name, loads) in loads() {
        for (policy_name, policy) in POLICIES {
            let mut config = Config::paper();
            config.nic.ports = loads.len();
            config.credits.policy = policy;
            let runs = of_each_seed(|seed| measure(&config, &loads, seed, Window::OPEN))?;
            let mut value = |quantity, unit, of: fn(&Measured) -> f64| {
                let draws: Vec<f64> = runs.iter().map(of).collect();
                report.drawn(format!("{name}, {policy_name}: {quantity}"), unit, &draws);
            };
            value("rate", "M/s", |run| run.rate);
            value("mean latency", "ns", |run| run.mean_ns);
            value("99th percentile", "ns", |run| run.p99_ns);
            value("by DMA", "%", |run| run.dma_share * 100.0);
            value("fairness", "1", |run| fairness(&run.by_port));
        }
    }
    Ok(())
}
