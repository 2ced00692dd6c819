//! An event ring in host memory, as the interface sees it. Its base and size are set at
//! initialisation (C-15), and each event advances its position by one. A counter keeps the
//! interface from overtaking the software (C-16).

use bellwire_wire::event::EVENT_BYTES;

use crate::stats::Queue;
use crate::units::Time;

/// The writer's side of a ring.
pub struct EventRing {
    position: Position,
    consumed: u64,
    /// Records that software has not reported as consumed.
    pub full: Queue<()>,
}

/// A position in a ring, with the phase bit of its lap as in `bellwire_wire::event::phase`.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    base: u64,
    entries: u64,
    index: u64,
    phase: bool,
}

/// The place of an event.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Global address of the record.
    pub address: u64,
    pub phase: bool,
}

impl EventRing {
    /// An empty ring of `entries` records (at least 1) at `base`.
    pub fn new(base: u64, entries: u64) -> EventRing {
        EventRing { position: Position::new(base, entries), consumed: 0, full: Queue::default() }
    }

    /// Records that may be written before software consumes any.
    pub fn room(&self) -> u64 {
        self.position.entries - self.full.len() as u64
    }

    /// The next record, if there is room.
    pub fn take(&mut self, now: Time) -> Option<Place> {
        if self.room() == 0 {
            return None;
        }
        let place = self.position.place();
        self.position.advance();
        self.full.push(now, ());
        Some(place)
    }

    /// Software reports how many records it has consumed since the beginning. Implausible counts
    /// are ignored.
    pub fn consumed(&mut self, count: u64, now: Time) {
        if (self.consumed..=self.consumed + self.full.len() as u64).contains(&count) {
            for _ in self.consumed..count {
                self.full.pop(now);
            }
            self.consumed = count;
        }
    }
}

impl Position {
    /// The first record of a ring of `entries` (at least 1) at `base`.
    pub fn new(base: u64, entries: u64) -> Position {
        Position { base, entries: entries.max(1), index: 0, phase: true }
    }

    /// The place of this position.
    #[inline]
    pub fn place(&self) -> Place {
        Place { address: self.base + self.index * EVENT_BYTES as u64, phase: self.phase }
    }

    /// Advances to the next record.
    #[inline]
    pub fn advance(&mut self) {
        self.index += 1;
        if self.index == self.entries {
            (self.index, self.phase) = (0, !self.phase);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The phase equals that of the format, lap by lap.
    #[test]
    fn phases_are_those_of_the_format() {
        for entries in [1u64, 2, 7] {
            let mut position = Position::new(64, entries);
            let divisor = core::num::NonZeroU64::new(entries).unwrap();
            for at in 0..5 * entries {
                let Place { address, phase } = position.place();
                assert_eq!(phase, bellwire_wire::event::phase(at, divisor));
                assert_eq!(address, 64 + at % entries * EVENT_BYTES as u64);
                position.advance();
            }
        }
    }

    /// A ring returns each record once per lap with the phase of the lap, and stops while it is
    /// full. A report of too many consumed records changes nothing.
    // shows: C-16
    #[test]
    fn a_full_ring_waits() {
        let mut ring = EventRing::new(0x1000, 2);
        assert!(ring.take(Time::ZERO).is_some_and(|place| place.address == 0x1000 && place.phase));
        assert!(ring.take(Time::ZERO).is_some_and(|place| place.address == 0x1020 && place.phase));
        assert!(ring.take(Time::ZERO).is_none());
        ring.consumed(3, Time::ZERO);
        assert!(ring.take(Time::ZERO).is_none());
        ring.consumed(1, Time::ZERO);
        assert!(ring.take(Time::ZERO).is_some_and(|place| place.address == 0x1000 && !place.phase));
        assert!(ring.take(Time::ZERO).is_none());
    }
}
