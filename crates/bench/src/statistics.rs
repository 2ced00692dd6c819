//! Order statistics of samples.

use serde::Serialize;

/// Median and spread of the figures of one row, contender and distance.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub median: f64,
    /// A quarter of the figures are at or below this.
    pub p25: f64,
    /// Three quarters of the figures are at or below this.
    pub p75: f64,
    pub min: f64,
    pub max: f64,
    /// How many figures there are.
    pub samples: usize,
}

impl Summary {
    /// Summarizes `figures`; `None` if there are none.
    pub fn of(figures: &[f64]) -> Option<Summary> {
        let mut sorted = figures.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        Some(Summary {
            median: quantile(&sorted, 0.5),
            p25: quantile(&sorted, 0.25),
            p75: quantile(&sorted, 0.75),
            min,
            max,
            samples: sorted.len(),
        })
    }
}

/// The quantile `q` (0 to 1) of sorted, non-empty figures, interpolated between neighbours.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let place = q * (sorted.len() - 1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (sorted[high] - sorted[low]) * (place - low as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Median and quartiles are correct for any order of the samples.
    #[test]
    fn quartiles() {
        let summary = Summary::of(&[5.0, 1.0, 3.0, 2.0, 4.0]).expect("five samples");
        assert_eq!((summary.min, summary.p25, summary.median), (1.0, 2.0, 3.0));
        assert_eq!((summary.p75, summary.max, summary.samples), (4.0, 5.0, 5));
        assert_eq!(Summary::of(&[1.0, 2.0]).expect("two samples").median, 1.5);
        assert_eq!(Summary::of(&[]), None);
    }
}
