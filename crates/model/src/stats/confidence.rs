//! The warm-up of a series, and the confidence in its mean.

/// A mean with the half-width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// In 95 of 100 runs the interval holds the true mean. Infinite (null in JSON) if the run is
    /// too short.
    pub half_width: f64,
}

impl Estimate {
    /// Whether `value` lies within `widths` half-widths.
    pub fn holds(&self, value: f64, widths: f64) -> bool {
        (value - self.mean).abs() <= widths * self.half_width
    }
}

/// Too few observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{have} observations cannot make {need} batches; run longer")]
pub struct SeriesTooShort {
    /// The number of observations.
    pub have: usize,
    /// The number needed.
    pub need: usize,
}

/// How many of the first observations belong to the warm-up: MSER-5 (White 1997). Observations are
/// averaged in fives; the cut minimises the standard error of the mean of the rest. `None` if the
/// cut is in the second half: the series has not settled, and the run must be longer.
pub fn warm_up(series: &[f64]) -> Option<usize> {
    let fives: Vec<f64> =
        series.chunks_exact(5).map(|five| five.iter().sum::<f64>() / 5.0).collect();
    let mut best = (f64::INFINITY, 0);
    let (mut sum, mut squares) = (0.0, 0.0);
    for (at, &value) in fives.iter().enumerate().rev() {
        sum += value;
        squares += value * value;
        let count = (fives.len() - at) as f64;
        if count < 5.0 {
            continue;
        }
        let error = (squares - sum * sum / count).max(0.0) / (count * count);
        if error <= best.0 {
            best = (error, at);
        }
    }
    (best.0.is_finite() && best.1 * 2 <= fives.len()).then_some(best.1 * 5)
}

/// The mean of a settled series and its confidence, from the means of 20 equal batches. These are
/// nearly independent even if single observations are not.
///
/// # Errors
/// [`SeriesTooShort`] below 20 observations.
pub fn batch_means(series: &[f64]) -> Result<Estimate, SeriesTooShort> {
    const BATCHES: usize = 20;
    /// Student's t for 19 degrees of freedom at 97.5 %.
    const T: f64 = 2.093;
    if series.len() < BATCHES {
        return Err(SeriesTooShort { have: series.len(), need: BATCHES });
    }
    let size = series.len() / BATCHES;
    let means: Vec<f64> = series[series.len() - size * BATCHES..]
        .chunks_exact(size)
        .map(|batch| batch.iter().sum::<f64>() / size as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / BATCHES as f64;
    let variance =
        means.iter().map(|batch| (batch - mean).powi(2)).sum::<f64>() / (BATCHES - 1) as f64;
    Ok(Estimate { mean, half_width: T * (variance / BATCHES as f64).sqrt() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Random;

    fn noise(random: &mut Random) -> f64 {
        random.below(1000) as f64 / 1000.0 - 0.5
    }

    /// A decaying start-up is cut off, and the rest has the right mean.
    #[test]
    fn warm_up_is_found() {
        let mut random = Random::new(2);
        let series: Vec<f64> =
            (0..2000).map(|at| 10.0 + noise(&mut random) + 20.0 * 0.99_f64.powi(at)).collect();
        let cut = warm_up(&series).expect("it settles");
        assert!((200..900).contains(&cut), "{cut}");
        let estimate = batch_means(&series[cut..]).unwrap();
        assert!(estimate.holds(10.0, 3.0), "{estimate:?}");
    }

    /// Canary: a series that never settles is not reported as settled.
    #[test]
    fn a_ramp_never_settles() {
        let series: Vec<f64> = (0..2000).map(f64::from).collect();
        assert_eq!(warm_up(&series), None);
    }

    /// The interval holds the true mean in about 95 of 100 runs.
    #[test]
    fn intervals_hold() {
        let mut random = Random::new(3);
        let held = (0..400)
            .filter(|_| {
                let series: Vec<f64> = (0..200).map(|_| noise(&mut random)).collect();
                batch_means(&series).unwrap().holds(-0.0005, 1.0)
            })
            .count();
        assert!((360..=395).contains(&held), "{held} of 400");
        assert_eq!(batch_means(&[1.0; 19]), Err(SeriesTooShort { have: 19, need: 20 }));
    }
}
