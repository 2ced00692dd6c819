//! A seeded random number generator.

/// Splitmix64 (Steele, Lea, Flood, OOPSLA 2014): each state follows from the one before, so a seed
/// determines all numbers.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// The generator with this seed.
    pub fn new(seed: u64) -> Self {
        Chance(seed)
    }

    /// 64 bits, uniformly distributed.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        scatter(self.0)
    }

    /// A number below `limit` (which is below 2^32); 0 if `limit` is 0.
    #[inline]
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.bits() >> 32).wrapping_mul(limit) >> 32
    }

    /// A number from `low` to `high`, both included.
    #[inline]
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True with a probability of `per_mille` in a thousand.
    #[inline]
    pub fn hits(&mut self, per_mille: u64) -> bool {
        self.below(1000) < per_mille
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// Turns neighbouring numbers into unrelated ones.
#[inline]
pub fn scatter(number: u64) -> u64 {
    let mut z = number;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
