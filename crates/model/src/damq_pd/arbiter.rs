//! The output arbiter: round-robin among the ports that have a whole descriptor whose turn it is (D-07, D-08).

use super::word::Way;
use crate::engine::first_from;

/// A bit for each port that takes part, and who was last.
#[derive(Clone, Debug, Default)]
pub struct OutputArbiter {
    eligible: u64,
    /// Whether it does with the list of what came by DMA.
    by_dma: u64,
    next: u32,
}

impl OutputArbiter {
    /// Lets a port take part with one of its lists, or not.
    #[inline]
    pub fn set(&mut self, port: u8, way: Way, eligible: bool) {
        self.eligible = self.eligible & !(1 << port) | u64::from(eligible) << port;
        self.by_dma = self.by_dma & !(1 << port) | (way as u64) << port;
    }

    /// The next port and its list. It becomes the last in turn, and takes no part until it is set anew.
    #[inline]
    pub fn grant(&mut self) -> Option<(u8, Way)> {
        if self.eligible == 0 {
            return None;
        }
        let port = first_from(self.eligible, self.next) as u8;
        self.next = (u32::from(port) + 1) & 63;
        self.eligible &= !(1 << port);
        let way = if self.by_dma >> port & 1 == 1 { Way::Dma } else { Way::Pio };
        Some((port, way))
    }

    /// Whether a port takes part.
    #[inline]
    pub fn has(&self, port: u8) -> bool {
        self.eligible >> port & 1 == 1
    }

    /// The ports that take part, as bits.
    pub fn eligible(&self) -> u64 {
        self.eligible
    }
}
