//! A machine in its steady state: rates, latencies, fairness.

use crate::damq_pd::{Config, Load, Machine};
use crate::units::Time;

/// Results between warm-up and end.
pub struct Measured {
    /// Descriptors that left, in millions per second.
    pub rate: f64,
    /// The same per port.
    pub by_port: Vec<f64>,
    /// Share of these descriptors that came by DMA.
    pub dma_share: f64,
    /// Mean time from post to leaving, in ns.
    pub mean_ns: f64,
    /// The 99th percentile of that time, in ns.
    pub p99_ns: f64,
    /// The trace hash.
    pub trace_hash: u64,
}

/// A run's length, in ns of virtual time.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Warm-up, not counted.
    pub warm_up_ns: u64,
    /// Counted time.
    pub counted_ns: u64,
}

impl Window {
    /// Long enough for saturated ports: about forty rounds of credits.
    pub const SATURATED: Window = Window { warm_up_ns: 20_000, counted_ns: 100_000 };
    /// Long enough for rare bursts.
    pub const OPEN: Window = Window { warm_up_ns: 50_000, counted_ns: 500_000 };
}

/// Runs `loads` and counts what leaves in the window.
pub fn measure(
    config: &Config,
    loads: &[Load],
    seed: u64,
    window: Window,
) -> Result<Measured, String> {
    let mut machine = Machine::new(config, loads, seed).map_err(|error| error.to_string())?;
    let ns = |ns| Time::from_ps(ns * 1000);
    machine.run_before(ns(window.warm_up_ns)).map_err(|stalled| stalled.to_string())?;
    let (before, first) = (machine.model.ports.clone(), machine.model.latencies_ns.len());
    machine
        .run_before(ns(window.warm_up_ns + window.counted_ns))
        .map_err(|stalled| stalled.to_string())?;
    machine.model.check()?;
    let ports = machine.model.ports.iter().zip(&before);
    let left: Vec<[u64; 2]> =
        ports.map(|(now, before)| [0, 1].map(|way| now.left[way] - before.left[way])).collect();
    let all: u64 = left.iter().flatten().sum();
    let by_dma: u64 = left.iter().map(|ways| ways[1]).sum();
    let mut latencies = machine.model.latencies_ns[first..].to_vec();
    latencies.sort_unstable();
    let place = latencies.len().saturating_sub(1) * 99 / 100;
    let per_us = |count: u64| count as f64 * 1e3 / window.counted_ns as f64;
    let sum: u64 = latencies.iter().map(|&ns| u64::from(ns)).sum();
    Ok(Measured {
        rate: per_us(all),
        by_port: left.iter().map(|ways| per_us(ways[0] + ways[1])).collect(),
        dma_share: by_dma as f64 / all.max(1) as f64,
        mean_ns: sum as f64 / latencies.len().max(1) as f64,
        p99_ns: latencies.get(place).copied().unwrap_or(0).into(),
        trace_hash: machine.trace_hash(),
    })
}

/// Jain's index of fairness: 1 if all shares are equal, 1/n if one port has everything.
pub fn fairness(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    if squares == 0.0 { 1.0 } else { sum * sum / (shares.len() as f64 * squares) }
}
