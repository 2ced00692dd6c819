//! How much of a figure's variance an axis explains alone.

use std::collections::BTreeMap;

/// Values of an axis that a continuous axis is divided into, at most.
const BINS: usize = 16;

/// The share of the variance of `figures` that `axis` explains alone, from 0 to 1: epsilon squared,
/// the correlation ratio without its bias (Kelley 1935). The rest is other axes, interactions and
/// seeds. An axis of many values is divided into bins of equally many points. Nothing if the
/// figures are all equal, or there are too few points.
pub fn effect(axis: &[f64], figures: &[f64]) -> Option<f64> {
    let mut points: Vec<(f64, f64)> = axis
        .iter()
        .copied()
        .zip(figures.iter().copied())
        .filter(|(at, figure)| at.is_finite() && figure.is_finite())
        .collect();
    points.sort_by(|one, two| one.0.total_cmp(&two.0));
    let distinct = 1 + points.windows(2).filter(|pair| pair[0].0 != pair[1].0).count();
    let groups: Vec<&[(f64, f64)]> = if distinct <= BINS {
        points.chunk_by(|one, two| one.0 == two.0).collect()
    } else {
        points.chunks(points.len().div_ceil(BINS)).collect()
    };
    let (count, groups_count) = (points.len() as f64, groups.len() as f64);
    let mean = |of: &[(f64, f64)]| of.iter().map(|point| point.1).sum::<f64>() / of.len() as f64;
    let all = mean(&points);
    let total: f64 = points.iter().map(|point| (point.1 - all).powi(2)).sum();
    let within: f64 = groups
        .iter()
        .map(|group| {
            let own = mean(group);
            group.iter().map(|point| (point.1 - own).powi(2)).sum::<f64>()
        })
        .sum();
    // Sums of equal floats may differ from zero by their last digits.
    if points.len() < 2 || total <= 1e-24 * all * all * count {
        return None;
    }
    let noise = if count > groups_count { within / (count - groups_count) } else { 0.0 };
    let between = total - within - (groups_count - 1.0) * noise;
    Some((between / total).clamp(0.0, 1.0))
}

/// Texts as numbers: their order is alphabetic, and has no meaning for [`effect`].
pub fn numbered<'a>(texts: impl Iterator<Item = &'a str> + Clone) -> Vec<f64> {
    let mut numbers: BTreeMap<&str, f64> = texts.clone().map(|text| (text, 0.0)).collect();
    for (at, number) in numbers.values_mut().enumerate() {
        *number = at as f64;
    }
    texts.map(|text| numbers[text]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of y = 3a + b over a full grid, a explains 9 parts and b one. Canary: with the axes
    /// exchanged it is the other way round.
    #[test]
    fn parts_of_a_sum_are_found() {
        let grid: Vec<(f64, f64)> =
            (0..64).map(|at| (f64::from(at / 8), f64::from(at % 8))).collect();
        let [a, b]: [Vec<f64>; 2] =
            [grid.iter().map(|of| of.0).collect(), grid.iter().map(|of| of.1).collect()];
        let y: Vec<f64> = grid.iter().map(|(a, b)| 3.0 * a + b).collect();
        let (of_a, of_b) = (effect(&a, &y).unwrap(), effect(&b, &y).unwrap());
        assert!((of_a - 0.9).abs() < 0.03 && of_b < 0.1, "{of_a} {of_b}");
        let y: Vec<f64> = grid.iter().map(|(a, b)| a + 3.0 * b).collect();
        assert!(effect(&a, &y).unwrap() < 0.1);
    }

    /// An axis that decides all has 1, a constant figure has none, and chance has about 0: also on
    /// an axis of as many values as points.
    #[test]
    fn nothing_is_found_in_chance() {
        let mut random = bellwire_model::engine::Random::new(3);
        let axis: Vec<f64> = (0..512).map(f64::from).collect();
        let chance: Vec<f64> = axis.iter().map(|_| random.below(1000) as f64).collect();
        assert!(effect(&axis, &chance).unwrap() < 0.05);
        let decided: Vec<f64> = axis.iter().map(|at| at * at).collect();
        assert!(effect(&axis, &decided).unwrap() > 0.95);
        assert_eq!(effect(&axis, &vec![5.0; 512]), None);
        assert_eq!(effect(&[], &[]), None);
    }

    /// Texts are numbered by their order.
    #[test]
    fn texts_are_numbered() {
        assert_eq!(numbered(["tcp", "hpcl", "tcp"].into_iter()), [1.0, 0.0, 1.0]);
    }
}
