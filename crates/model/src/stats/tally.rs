//! Sums over observations.

use serde::ser::SerializeStruct;

/// Count, mean, variance and extremes of whole-number observations (picoseconds, cycles, bytes).
///
/// The sums are exact integers, so they do not depend on the order of the observations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    count: u64,
    sum: u128,
    squares: u128,
    least: Option<u64>,
    most: u64,
}

impl serde::Serialize for Tally {
    /// Count, mean, minimum and maximum.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Tally", 4)?;
        fields.serialize_field("count", &self.count())?;
        fields.serialize_field("mean", &self.mean())?;
        fields.serialize_field("least", &self.least())?;
        fields.serialize_field("most", &self.most())?;
        fields.end()
    }
}

impl Tally {
    /// Adds an observation. Squares of up to 2^64 observations below 2^32 fit; beyond that the
    /// variance saturates.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += u128::from(value);
        self.squares = self.squares.saturating_add(u128::from(value) * u128::from(value));
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.most = self.most.max(value);
    }

    /// Adds all observations of another tally.
    pub fn merge(&mut self, other: &Tally) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares = self.squares.saturating_add(other.squares);
        self.least = [self.least, other.least].into_iter().flatten().min();
        self.most = self.most.max(other.most);
    }

    /// Their number.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Their mean; zero if there are none.
    pub fn mean(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.sum as f64 / self.count as f64 }
    }

    /// Their sample variance; zero if there are fewer than two.
    pub fn variance(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let mean = self.mean();
        ((self.squares as f64 - self.sum as f64 * mean) / (self.count - 1) as f64).max(0.0)
    }

    /// The minimum; zero if there are none.
    pub fn least(&self) -> u64 {
        self.least.unwrap_or(0)
    }

    /// The maximum; zero if there are none.
    pub fn most(&self) -> u64 {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sums equal those computed by hand, in one tally or merged from two.
    #[test]
    fn sums_are_right() {
        let mut whole = Tally::default();
        let mut halves = [Tally::default(); 2];
        for value in [2, 4, 4, 4, 5, 5, 7, 9] {
            whole.add(value);
            halves[usize::from(value > 4)].add(value);
        }
        assert_eq!((whole.count(), whole.mean(), whole.least(), whole.most()), (8, 5.0, 2, 9));
        assert!((whole.variance() - 32.0 / 7.0).abs() < 1e-12);
        let [mut merged, other] = halves;
        merged.merge(&other);
        assert_eq!(merged, whole);
    }
}
