//! Numbers that mark a run's packets as valid.

/// Draws nonces: a Weyl sequence behind a 64-bit mixer, started from a secret seed.
///
/// Every draw differs from all others of the same sequence, and is odd, hence never the zero of
/// fresh memory. The lane needs this: bytes that were written before a draw must not equal it. The
/// seed comes from the kernel's random source, so a program cannot choose its payload to match a
/// future nonce.
pub struct Nonces {
    state: u64,
}

impl Nonces {
    pub fn new(seed: u64) -> Self {
        Nonces { state: seed }
    }

    pub fn draw(&mut self) -> u64 {
        if !crate::canary::planted("stale-nonce") {
            self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        }
        let mut x = self.state;
        x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        x = (x ^ (x >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (x ^ (x >> 32)) | 1
    }
}
