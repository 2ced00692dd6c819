//! The steady state of a run in windows of equal length: its beginning, and its means.

use super::{Estimate, batch_means, warm_up};

/// Sums over one window of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Window {
    /// How many items ended in it.
    pub count: u64,
    /// Sum of their latencies.
    pub latency: u64,
    /// Sum of their sizes.
    pub amount: u64,
}

/// The statistics of the windows.
#[derive(Clone, Copy, Debug)]
pub struct Steady {
    /// Mean latency of an item.
    pub latency: Estimate,
    /// Mean amount of a window.
    pub amount: Estimate,
    /// Windows of the warm-up, which are not counted.
    pub warm_up: usize,
    /// Whether there is a steady state. If not, the means are those of the second half, and mean
    /// little.
    pub settled: bool,
}

impl Steady {
    /// Finds the steady state; `known` is the number of warm-up windows, if given.
    pub fn of(windows: &[Window], known: Option<usize>) -> Steady {
        let latency: Vec<f64> = windows
            .iter()
            .filter(|window| window.count > 0)
            .map(|window| window.latency as f64 / window.count as f64)
            .collect();
        let amount: Vec<f64> = windows.iter().map(|window| window.amount as f64).collect();
        let found =
            known.or_else(|| warm_up(&latency).zip(warm_up(&amount)).map(|(a, b)| a.max(b)));
        let settled = found.is_some() && !latency.is_empty();
        let cut = found.unwrap_or(windows.len() / 2).min(windows.len());
        let tail = &windows[cut..];
        let (latency, amount) = match (batch_ratio(tail), batch_means(&amount[cut..])) {
            (Some(latency), Ok(amount)) => (latency, amount),
            _ => {
                let mean = |sum: u64, count: u64| Estimate {
                    mean: sum as f64 / count.max(1) as f64,
                    half_width: f64::INFINITY,
                };
                let sum = |of: fn(&Window) -> u64| tail.iter().map(of).sum();
                (
                    mean(sum(|window| window.latency), sum(|window| window.count)),
                    mean(sum(|window| window.amount), tail.len() as u64),
                )
            }
        };
        Steady { latency, amount, warm_up: cut, settled }
    }
}

/// Latency of an item with its confidence, from batches of windows; each batch is the ratio of its
/// sums.
fn batch_ratio(windows: &[Window]) -> Option<Estimate> {
    let size = windows.len() / 20;
    if size == 0 {
        return None;
    }
    let sums = |windows: &[Window]| {
        let count: u64 = windows.iter().map(|window| window.count).sum();
        let latency: u64 = windows.iter().map(|window| window.latency).sum();
        (count > 0).then(|| latency as f64 / count as f64)
    };
    let ratios: Vec<f64> =
        windows[windows.len() - size * 20..].chunks_exact(size).filter_map(sums).collect();
    let estimate = batch_means(&ratios).ok()?;
    Some(Estimate { mean: sums(windows)?, ..estimate })
}
