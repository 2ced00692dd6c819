//! The secret of an endpoint, and what it derives from it: tokens, cookies and nonces.
//!
//! All are values of SipHash-2-4 (Aumasson, Bernstein, INDOCRYPT 2012) under one key. Some of them
//! reveal nothing about the others, unlike a generator whose state follows from its output.

use core::hash::Hasher;

use siphasher::sip::SipHasher24;

/// The key of an endpoint. It is drawn at random once and never leaves the process.
#[derive(Clone, Copy)]
pub struct Secret([u64; 2]);

/// What a derived value is for. Values for different purposes are unrelated.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    Token = 1,
    Cookie = 2,
    Nonce = 3,
}

impl Secret {
    /// The secret with these 128 bits, which must be random.
    pub fn new(key: [u64; 2]) -> Self {
        Secret(key)
    }

    /// A predictable secret, for simulations, models and tests, where a seed decides everything.
    pub fn from_seed(seed: u64) -> Self {
        Secret([seed, !seed])
    }

    /// The value that belongs to `words`. Without the key it is indistinguishable from a random
    /// number.
    pub(crate) fn derive(&self, purpose: Purpose, words: &[u64]) -> u64 {
        let mut hasher = SipHasher24::new_with_keys(self.0[0], self.0[1]);
        hasher.write_u64(purpose as u64);
        for &word in words {
            hasher.write_u64(word);
        }
        hasher.finish()
    }

    /// As [`derive`](Self::derive), but with another value in each span of 4.3 s, and never 0.
    pub(crate) fn derive_now(&self, purpose: Purpose, words: [u64; 6], now_ns: u64) -> u64 {
        self.derive_in_span(purpose, words, now_ns >> SPAN_SHIFT)
    }

    /// Whether `value` was derived in this span or the one before.
    pub(crate) fn is_fresh(
        &self,
        purpose: Purpose,
        words: [u64; 6],
        value: u64,
        now_ns: u64,
    ) -> bool {
        let span = now_ns >> SPAN_SHIFT;
        [span, span.wrapping_sub(1)]
            .into_iter()
            .any(|span| self.derive_in_span(purpose, words, span) == value)
    }

    fn derive_in_span(&self, purpose: Purpose, words: [u64; 6], span: u64) -> u64 {
        let [a, b, c, d, e, f] = words;
        self.derive(purpose, &[a, b, c, d, e, f, span]).max(1)
    }
}

/// Binary logarithm of the span of time, in ns, in which a derived value stays the same: 4.3 s.
const SPAN_SHIFT: u32 = 32;

impl core::fmt::Debug for Secret {
    /// Hides the key.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The function gives the reference value of SipHash-2-4 (its paper, Appendix A).
    #[test]
    fn the_function_is_siphash_2_4() {
        let key = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7]);
        let rest = u64::from_le_bytes([8, 9, 10, 11, 12, 13, 14, 15]);
        let mut hasher = SipHasher24::new_with_keys(key, rest);
        hasher.write(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        assert_eq!(hasher.finish(), 0xa129_ca61_49be_45e5);
    }

    /// A value holds for the rest of its span and the next one, and for nothing else.
    #[test]
    fn values_grow_old() {
        let secret = Secret::from_seed(7);
        let (words, now_ns) = ([1, 2, 3, 4, 5, 6], 9 << SPAN_SHIFT);
        let value = secret.derive_now(Purpose::Cookie, words, now_ns);
        let holds = |purpose, words, at_ns| secret.is_fresh(purpose, words, value, at_ns);
        assert!(holds(Purpose::Cookie, words, now_ns));
        assert!(holds(Purpose::Cookie, words, (11 << SPAN_SHIFT) - 1));
        assert!(!holds(Purpose::Cookie, words, 11 << SPAN_SHIFT));
        assert!(!holds(Purpose::Nonce, words, now_ns));
        assert!(!holds(Purpose::Cookie, [1, 2, 3, 4, 5, 7], now_ns));
        assert!(!Secret::from_seed(8).is_fresh(Purpose::Cookie, words, value, now_ns));
    }

    /// The key of a seed is the seed and its complement, and a secret does not print its key.
    #[test]
    fn a_seed_decides_the_key() {
        let (of_seed, of_key) = (Secret::from_seed(7), Secret::new([7, u64::MAX - 7]));
        assert_eq!(of_seed.derive(Purpose::Token, &[1]), of_key.derive(Purpose::Token, &[1]));
        assert_ne!(of_key.derive(Purpose::Token, &[1]), of_key.derive(Purpose::Token, &[2]));
        assert_eq!(alloc::format!("{of_key:?}"), "Secret");
    }
}
