//! Random numbers whose sequence is part of the model's contract.

use bellwire_protocol::canary::planted;

/// A generator with a fixed algorithm: xoshiro256++ of Blackman and Vigna, seeded through their
/// SplitMix64. The same seed gives the same numbers on every machine, build and version. It draws
/// only whole numbers, so no float decides a result.
#[derive(Clone, Debug)]
pub struct Random {
    state: [u64; 4],
}

impl Random {
    /// The generator of a seed. Any seed is good, including zero.
    pub fn new(seed: u64) -> Random {
        // Canary: other draws everywhere. What changes then was drawn.
        let mut mixed = if planted("other-draws") { !seed } else { seed };
        let state = std::array::from_fn(|_| {
            mixed = mixed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(mixed)
        });
        Random { state }
    }

    /// An independent generator for one part of a model: draws of another part do not shift its
    /// sequence.
    pub fn fork(&mut self, part: u64) -> Random {
        Random::new(self.word() ^ mix(part))
    }

    /// 64 random bits.
    #[inline]
    pub fn word(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let shifted = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= shifted;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..limit`. Uniform up to one part in 2^64 / limit (a multiply instead of a
    /// division).
    ///
    /// # Panics
    /// In debug builds if `limit` is zero.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        debug_assert!(limit > 0);
        ((u128::from(self.word()) * u128::from(limit)) >> 64) as u64
    }

    /// True with the given chance.
    #[inline]
    pub fn chance(&mut self, chance: Chance) -> bool {
        self.word() < chance.0 || chance.0 == u64::MAX
    }

    /// An exponentially distributed number, with the mean 2^32.
    ///
    /// Von Neumann's comparison method (1951): the lengths of descending runs of uniform numbers
    /// decide. It needs no logarithm, whose last bit could differ between machines.
    pub fn exponential(&mut self) -> u64 {
        let mut whole = 0;
        loop {
            let first = self.word();
            let mut last = first;
            let mut odd = true;
            loop {
                let next = self.word();
                if next >= last {
                    break;
                }
                last = next;
                odd = !odd;
            }
            if odd {
                return (whole << 32) + (first >> 32);
            }
            whole += 1;
        }
    }

    /// An exponentially distributed whole number with this mean. Rounding down lowers the mean of
    /// the result by half a unit.
    pub fn exponential_of(&mut self, mean: u64) -> u64 {
        ((u128::from(self.exponential()) * u128::from(mean)) >> 32) as u64
    }

    /// Puts a slice in random order.
    pub fn shuffle<T>(&mut self, slice: &mut [T]) {
        for last in (1..slice.len()).rev() {
            slice.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

/// A probability, as a 64-bit fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Chance(u64);

impl Chance {
    /// Certain.
    pub const ALWAYS: Chance = Chance(u64::MAX);
    /// Impossible.
    pub const NEVER: Chance = Chance(0);

    /// From a probability in 0..=1; values outside are clamped.
    pub fn new(probability: f64) -> Chance {
        // The product is exact below 1, and a cast to an integer saturates.
        Chance((probability * 18_446_744_073_709_551_616.0) as u64)
    }
}

/// How many trials fail before one succeeds: whole numbers from zero, geometrically distributed.
#[derive(Clone, Copy, Debug)]
pub struct Failures {
    success: Chance,
    rate: f64,
}

impl Failures {
    /// Failures before a success of this chance.
    pub fn before(success: Chance) -> Failures {
        Failures { success, rate: success.rate() }
    }

    /// Draws one.
    pub fn draw(self, random: &mut Random) -> u64 {
        match self.success {
            Chance::ALWAYS => 0,
            Chance::NEVER => u64::MAX,
            // A geometric number is an exponential number of rate -ln(1 - p), rounded down.
            _ => (random.exponential() as f64 / 4_294_967_296.0 / self.rate) as u64,
        }
    }
}

impl Chance {
    /// -ln(1 - p), by halvings of 1 - p and the series in z = (1 - m) / (1 + m). m is in 1/2 to 1.
    /// Uses only basic operations, whose results IEEE 754 fixes to the last bit.
    fn rate(self) -> f64 {
        let mut rest = (u64::MAX - self.0).max(1) as f64 / 18_446_744_073_709_551_616.0;
        let mut halvings = 0.0;
        while rest < 0.5 {
            rest *= 2.0;
            halvings += 1.0;
        }
        let z = (1.0 - rest) / (1.0 + rest);
        let mut power = z;
        let mut sum = 0.0;
        for odd in 0..20 {
            sum += power / f64::from(2 * odd + 1);
            power *= z * z;
        }
        halvings * std::f64::consts::LN_2 + 2.0 * sum
    }
}

fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words equal those of the algorithm's authors; they are part of every trace hash.
    #[test]
    fn the_sequence_is_fixed() {
        let mut random = Random { state: [1, 2, 3, 4] };
        let words: [u64; 4] = std::array::from_fn(|_| random.word());
        assert_eq!(words, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
        let words: [u64; 3] = std::array::from_fn(|_| random.word());
        let next =
            [9_228_616_714_210_784_205, 9_973_669_472_204_895_162, 14_011_001_112_246_962_877];
        assert_eq!(words, next);
    }

    /// Seeds are mixed as SplitMix64 mixes them: its first three words for the seed 0.
    #[test]
    fn seeds_are_mixed() {
        let state = Random::new(0).state;
        let words = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!(state[..3], words);
    }

    /// The means of the distributions are right within five standard errors.
    #[test]
    fn means_are_right() {
        let mut random = Random::new(7);
        let draws = 200_000;
        let mean = |sum: u64| sum as f64 / f64::from(draws);
        let exponential = mean((0..draws).map(|_| random.exponential_of(1 << 20)).sum());
        assert!((exponential / f64::from(1 << 20) - 1.0).abs() < 5.0 / f64::from(draws).sqrt());
        for p in [0.999, 0.9, 0.3, 0.05, 0.001] {
            let failures =
                mean((0..draws).map(|_| Failures::before(Chance::new(p)).draw(&mut random)).sum());
            let expected = (1.0 - p) / p;
            let error = (1.0 - p).sqrt() / p / f64::from(draws).sqrt();
            assert!((failures - expected).abs() < 5.0 * error, "{p}: {failures} {expected}");
        }
        let below = mean((0..draws).map(|_| random.below(100)).sum());
        assert!((below - 49.5).abs() < 5.0 * 28.9 / f64::from(draws).sqrt());
    }

    /// Chances at and beyond the ends are certain or impossible.
    #[test]
    fn ends_of_chance() {
        crate::limit::limited(|| {
            let mut random = Random::new(3);
            assert!((0..1000).all(|_| random.chance(Chance::new(1.5))));
            assert!((0..1000).all(|_| !random.chance(Chance::new(-1.0))));
            assert_eq!(Failures::before(Chance::ALWAYS).draw(&mut random), 0);
            assert_eq!(Failures::before(Chance::NEVER).draw(&mut random), u64::MAX);
        });
    }
}
