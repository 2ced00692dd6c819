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
    use crate::cycle::event_ring::{self, COUNT_BITS, In};
    use crate::engine::Random;

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

    /// The block `cycle::event_ring` gives each event the same place and phase, and has the same
    /// room in each cycle. It ignores the same reports, over random events and reports of some
    /// rings. Its counts wrap meanwhile.
    // shows: C-15, C-16
    #[test]
    fn gates_give_the_same_places() {
        let bases = [0x1000, 0x2_0000, 0x88_0000_0000, 0xff_fffe_0000];
        for (sizes, count_bits, seed) in
            [([64, 64, 4096, 4096], COUNT_BITS, 1), ([1, 2, 6, 5], 3, 2), ([1, 1, 2, 2], 2, 3)]
        {
            let mut random = Random::new(seed);
            let mut gates = event_ring::EventRing::new(4, count_bits);
            let mut rings: [EventRing; 4] =
                std::array::from_fn(|at| EventRing::new(bases[at], sizes[at]));
            for ring in 0..4 {
                gates.cycle(In {
                    host_valid: true,
                    host_opens: true,
                    host_ring: ring,
                    host_base: bases[usize::from(ring)] / EVENT_BYTES as u64,
                    host_count: sizes[usize::from(ring)] as u16,
                    ..In::default()
                });
            }
            // What the cycle before has left behind, and what happened in all.
            let (mut place, mut is_ignored) = (None, false);
            let (mut waits, mut ignored, mut written) = (0, 0, [0; 4]);
            for cycle in 0..200_000 {
                let now = Time::from_ps(4000 * cycle);
                let [to, about, asked] = [(); 3].map(|()| random.below(4) as usize);
                let comes = random.below(4) > 0;
                // Software stops reading now and then, and at times reports one too many.
                let reports = cycle & 8192 == 0 && random.below(4) == 0;
                let most = rings[about].full.len() as u64 + u64::from(random.below(8) == 0);
                let count = rings[about].consumed + random.below(most + 1);
                let out = gates.cycle(In {
                    host_valid: reports,
                    host_ring: about as u8,
                    host_count: (count % (1 << count_bits)) as u16,
                    in_valid: comes,
                    in_ring: to as u8,
                    ask_ring: asked as u8,
                    out_ready: true,
                    ..In::default()
                });
                let offered = out.out_valid.then(|| (out.out_address, out.out_event[3] >> 63 > 0));
                assert_eq!((offered, out.refused), (place, is_ignored), "cycle {cycle}");
                assert_eq!(u64::from(out.ask_room), rings[asked].room(), "cycle {cycle}");
                let has_room = rings[to].room() > 0;
                assert_eq!((out.in_ready, out.lacks_place), (has_room, !has_room), "cycle {cycle}");

                // A report counts from the next cycle on, for an event, too.
                if reports {
                    rings[about].consumed(count, now);
                }
                is_ignored = reports && rings[about].consumed != count;
                let taken = if comes && has_room { rings[to].take(now) } else { None };
                place = taken.map(|Place { address, phase }| (address, phase));
                written[to] += u64::from(taken.is_some());
                waits += u64::from(comes && !has_room);
                ignored += u64::from(is_ignored);
            }
            assert!(waits > 1000 && ignored > 100, "{waits} waited, {ignored} were ignored");
            assert!(written.iter().all(|&it| it > 2 << count_bits), "{written:?}");
        }
    }
}
