//! The output arbiter: round-robin among the ports whose next descriptor is whole (D-07, D-08).

use super::word::Way;
use crate::engine::first_from;

/// One bit per eligible port, and the port that was granted last.
#[derive(Clone, Debug, Default)]
pub struct OutputArbiter {
    /// The eligible ports, one bit each.
    pub eligible: u64,
    /// One bit per port whose eligible list is its DMA list.
    by_dma: u64,
    next: u32,
}

impl OutputArbiter {
    /// Makes a port eligible with one of its lists, or not eligible.
    #[inline]
    pub fn set(&mut self, port: u8, way: Way, eligible: bool) {
        self.eligible = self.eligible & !(1 << port) | u64::from(eligible) << port;
        self.by_dma = self.by_dma & !(1 << port) | (way as u64) << port;
    }

    /// Grants the next port and its list. The port goes last in the round and is not eligible until
    /// the next `set`.
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

    /// Whether a port is eligible.
    #[inline]
    pub fn has(&self, port: u8) -> bool {
        self.eligible >> port & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ports 2, 5 and 63 take turns with their lists, and are out until they are set again.
    #[test]
    fn eligible_ports_take_turns() {
        let mut arbiter = OutputArbiter::default();
        assert_eq!(arbiter.grant(), None);
        for (port, way) in [(63, Way::Dma), (5, Way::Pio), (2, Way::Dma)] {
            arbiter.set(port, way, true);
            arbiter.set(port, way, true);
        }
        assert!(arbiter.has(2) && arbiter.has(5) && arbiter.has(63));
        assert!(!arbiter.has(3) && !arbiter.has(0));
        assert_eq!(arbiter.grant(), Some((2, Way::Dma)));
        assert!(!arbiter.has(2));
        arbiter.set(2, Way::Pio, true);
        assert_eq!(arbiter.grant(), Some((5, Way::Pio)));
        assert_eq!(arbiter.grant(), Some((63, Way::Dma)));
        assert_eq!(arbiter.grant(), Some((2, Way::Pio)));
        arbiter.set(7, Way::Dma, true);
        arbiter.set(7, Way::Dma, false);
        assert_eq!(arbiter.grant(), None);
    }
}
