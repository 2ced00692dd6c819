//! The output arbiter: round-robin among the ports that have a whole descriptor whose turn it is (D-07, D-08).

use crate::engine::first_from;

/// A bit for each port that takes part, and who was last.
#[derive(Clone, Debug, Default)]
pub struct OutputArbiter {
    eligible: u64,
    next: u32,
}

impl OutputArbiter {
    /// Lets a port take part, or not.
    #[inline]
    pub fn set(&mut self, port: u8, eligible: bool) {
        self.eligible = self.eligible & !(1 << port) | u64::from(eligible) << port;
    }

    /// The next port, which becomes the last in turn.
    #[inline]
    pub fn grant(&mut self) -> Option<u8> {
        if self.eligible == 0 {
            return None;
        }
        let port = first_from(self.eligible, self.next);
        self.next = (port as u32 + 1) & 63;
        Some(port as u8)
    }

    /// The ports that take part, as bits.
    pub fn eligible(&self) -> u64 {
        self.eligible
    }
}
