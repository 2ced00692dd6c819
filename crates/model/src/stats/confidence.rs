//! The warm-up of a series, and the confidence in its mean: from batches of one long run, or from
//! independent seeds.

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

    /// Whether the whole interval lies above `bound`.
    pub fn is_above(&self, bound: f64) -> bool {
        self.mean - self.half_width > bound
    }

    /// Whether the whole interval lies below `bound`.
    pub fn is_below(&self, bound: f64) -> bool {
        self.mean + self.half_width < bound
    }
}

/// The greatest chance, at 95 %, of what happened in none of `tries` independent tries: 3 of
/// `tries` (the rule of three; 0.95 = 1 - (1 - p)^n).
pub fn bound_of_never(tries: u64) -> f64 {
    (3.0 / tries as f64).min(1.0)
}

/// Too few observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{have} observations give no interval, which takes {need}; run longer")]
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

/// Number of batches of one long run.
const BATCHES: usize = 20;

/// The mean of a settled series and its confidence, from the means of 20 equal batches.
/// These are nearly independent even if single observations are not.
///
/// # Errors
/// [`SeriesTooShort`] below 20 observations.
pub fn batch_means(series: &[f64]) -> Result<Estimate, SeriesTooShort> {
    if series.len() < BATCHES {
        return Err(SeriesTooShort { have: series.len(), need: BATCHES });
    }
    let size = series.len() / BATCHES;
    let means: Vec<f64> = series[series.len() - size * BATCHES..]
        .chunks_exact(size)
        .map(|batch| batch.iter().sum::<f64>() / size as f64)
        .collect();
    Ok(of_independent(&means))
}

/// Fewest seeds that give an interval.
pub const LEAST_SEEDS: usize = 8;

/// The mean of a value that was drawn once with each of several independent seeds, and its
/// confidence. Fewer than [`LEAST_SEEDS`] draws give an infinite interval.
pub fn over_seeds(draws: &[f64]) -> Estimate {
    if draws.len() >= LEAST_SEEDS {
        return of_independent(draws);
    }
    let mean = draws.iter().sum::<f64>() / draws.len().max(1) as f64;
    Estimate { mean, half_width: f64::INFINITY }
}

/// By how much each seed's draw of `more` exceeds that of `less`: the mean over the seeds and its
/// confidence. One order of the two holds if the interval does not reach zero.
pub fn excess(more: &[f64], less: &[f64]) -> Estimate {
    let differences: Vec<f64> = more.iter().zip(less).map(|(more, less)| more - less).collect();
    over_seeds(&differences)
}

/// The mean of independent observations, and the half-width of its interval by Student's t.
fn of_independent(observations: &[f64]) -> Estimate {
    let count = observations.len() as f64;
    let first = observations[0];
    // Equal observations have no variance, which rounding of their mean would hide.
    if observations.iter().all(|one| *one == first) {
        return Estimate { mean: first, half_width: 0.0 };
    }
    let mean = observations.iter().sum::<f64>() / count;
    let squares = observations.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
    let half_width = student_t(count - 1.0) * (squares / (count - 1.0) / count).sqrt();
    Estimate { mean, half_width }
}

/// Student's t at 97.5 %, from 7 degrees of freedom on, within a thousandth: the series of Fisher
/// and Cornish around the normal quantile (Abramowitz and Stegun 26.7.5).
fn student_t(degrees: f64) -> f64 {
    const Z: f64 = 1.959_964;
    let powers = [Z.powi(3), Z.powi(5), Z.powi(7)];
    let first = (powers[0] + Z) / 4.0;
    let second = (5.0 * powers[1] + 16.0 * powers[0] + 3.0 * Z) / 96.0;
    let third = (3.0 * powers[2] + 19.0 * powers[1] + 17.0 * powers[0] - 15.0 * Z) / 384.0;
    Z + first / degrees + second / degrees.powi(2) + third / degrees.powi(3)
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
    /// Student's t equals the tables' values, and eight seeds give the interval by hand.
    #[test]
    fn seeds_give_an_interval() {
        for (degrees, t) in [(7.0, 2.365), (9.0, 2.262), (19.0, 2.093), (30.0, 2.042), (1e9, 1.96)]
        {
            assert!(
                (student_t(degrees) / t - 1.0).abs() < 1e-3,
                "{degrees}: {}",
                student_t(degrees)
            );
        }
        // The sum of the series' four terms for one degree of freedom, by hand: 1.959964, 2.372271,
        // 2.822499 and 2.555850.
        assert!((student_t(1.0) - 9.710_584).abs() < 1e-5, "{}", student_t(1.0));
        let found = over_seeds(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert!((found.mean - 4.5).abs() < 1e-12 && (found.half_width - 2.048).abs() < 2e-3);
        assert_eq!(over_seeds(&[0.1; 9]), Estimate { mean: 0.1, half_width: 0.0 });
        assert_eq!(over_seeds(&[1.0; 7]).half_width, f64::INFINITY);
    }

    /// Draws that differ much from seed to seed can differ by the same amount with each.
    #[test]
    fn what_seeds_share_does_not_count() {
        let less = [1.0, 20.0, 3.0, 40.0, 5.0, 60.0, 7.0, 80.0];
        let found = excess(&less.map(|draw| draw + 2.0), &less);
        assert_eq!(found, Estimate { mean: 2.0, half_width: 0.0 });
    }

    /// The interval over eight seeds holds the true mean in about 95 of 100 runs.
    #[test]
    fn intervals_over_seeds_hold() {
        let mut random = Random::new(4);
        let held = (0..2_000)
            .filter(|_| {
                let draws: [f64; LEAST_SEEDS] = std::array::from_fn(|_| noise(&mut random));
                over_seeds(&draws).holds(-0.0005, 1.0)
            })
            .count();
        assert!((1_870..=1_930).contains(&held), "{held} of 2,000");
    }

    /// What happens with the bound's chance stays away in about 5 of 100 series of tries.
    #[test]
    fn never_has_a_bound() {
        let mut random = Random::new(5);
        let chance = crate::engine::Chance::new(bound_of_never(100));
        let silent = (0..4_000).filter(|_| !(0..100).any(|_| random.chance(chance))).count();
        assert!((150..=250).contains(&silent), "{silent} of 4,000");
        assert_eq!(bound_of_never(1), 1.0);
    }
}
