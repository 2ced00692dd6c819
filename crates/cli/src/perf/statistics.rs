//! Order statistics.

use serde::Serialize;

/// Minimum, median and 99th percentile of many times.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    pub min: f64,
    /// Half of them are at or below this.
    pub p50: f64,
    /// 99 of 100 are at or below this.
    pub p99: f64,
}

impl Spread {
    /// `None` if there are no values.
    pub fn of(values: &[f64]) -> Option<Spread> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let min = *sorted.first()?;
        Some(Spread { min, p50: rank(&sorted, 0.5), p99: rank(&sorted, 0.99) })
    }
}

/// The median; `None` if there are no values.
pub fn median(values: &[f64]) -> Option<f64> {
    Spread::of(values).map(|spread| spread.p50)
}

/// The `q` quantile of the sorted, non-empty values (nearest rank: always a measured value).
fn rank(sorted: &[f64], q: f64) -> f64 {
    let place = (q * sorted.len() as f64).ceil() as usize;
    sorted[place.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Percentiles are measured values, in any order of input.
    #[test]
    fn percentiles_are_values_that_occurred() {
        let values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(Spread::of(&values), Some(Spread { min: 1.0, p50: 50.0, p99: 99.0 }));
        assert_eq!(Spread::of(&[3.0]), Some(Spread { min: 3.0, p50: 3.0, p99: 3.0 }));
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    }
}
