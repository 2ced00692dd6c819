//! An event ring in host memory as the interface sees it: base and size told at initialisation (C-15), a position that advances by
//! one with each event, and a counter that keeps it from overtaking the software (C-16).

use core::num::NonZeroU64;

use bellwire_wire::event::{EVENT_BYTES, phase};

/// The writer's side of a ring.
pub struct EventRing {
    base: u64,
    entries: NonZeroU64,
    written: u64,
    consumed: u64,
}

/// Where the next event goes.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Global address of the record.
    pub address: u64,
    /// Its phase bit.
    pub phase: bool,
}

impl EventRing {
    /// An empty ring of `entries` records (at least 1) at `base`.
    pub fn new(base: u64, entries: u64) -> EventRing {
        let entries = NonZeroU64::new(entries).unwrap_or(NonZeroU64::MIN);
        EventRing { base, entries, written: 0, consumed: 0 }
    }

    /// Records that may be written before software consumes any.
    pub fn room(&self) -> u64 {
        self.entries.get() - (self.written - self.consumed)
    }

    /// The next record, if there is room.
    pub fn take(&mut self) -> Option<Place> {
        if self.room() == 0 {
            return None;
        }
        let index = self.written % self.entries;
        let place = Place {
            address: self.base + index * EVENT_BYTES as u64,
            phase: phase(self.written, self.entries),
        };
        self.written += 1;
        Some(place)
    }

    /// Software says how many records it has consumed since the beginning. What cannot be true is ignored.
    pub fn consumed(&mut self, count: u64) {
        if (self.consumed..=self.written).contains(&count) {
            self.consumed = count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring gives out each record once per lap with the phase of the lap, stops when it is full, and goes on when software has
    /// consumed; a software that claims too much changes nothing.
    // shows: C-16
    #[test]
    fn a_full_ring_waits() {
        let mut ring = EventRing::new(0x1000, 2);
        assert!(ring.take().is_some_and(|place| place.address == 0x1000 && place.phase));
        assert!(ring.take().is_some_and(|place| place.address == 0x1020 && place.phase));
        assert!(ring.take().is_none());
        ring.consumed(3);
        assert!(ring.take().is_none());
        ring.consumed(1);
        assert!(ring.take().is_some_and(|place| place.address == 0x1000 && !place.phase));
        assert!(ring.take().is_none());
    }
}
