//! `event_ring`: the interface's side of the event rings in host memory (C-13 to C-16; cHPP
//! sections 4 and 4.2), as `hardware/event_ring` builds it.
//!
//! An event gets the next place of its ring and the phase of the lap. It does not enter while
//! software has consumed too few records. Reports of software come as counts that wrap.

use std::num::NonZeroU64;

use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::event::{EVENT_BYTES, phase};

/// Bits of the number of a ring: two rings for each of 4 queue pairs of 8 functions.
pub const RING_BITS: usize = 6;
/// Bits of a count of records: the model's rings have up to 4096.
pub const COUNT_BITS: usize = 13;
/// Bits of a ring's base, which is counted in records: so no record crosses a page.
pub const BASE_BITS: usize = ADDRESS_BITS as usize - EVENT_BYTES.ilog2() as usize;
/// Words of 64 bits in a record.
pub const EVENT_WORDS: usize = EVENT_BYTES / 8;
/// The phase is the top bit of a record's last word.
const PHASE: u64 = 1 << 63;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The host writes.
        host_valid: bool = 1,
        /// It opens a ring, or else it reports what it has consumed.
        host_opens: bool = 1,
        /// The ring.
        host_ring: u8 = RING_BITS,
        /// The ring's first address, in records.
        host_base: u64 = BASE_BITS,
        /// The ring's records, none to close it; or the records consumed since it was opened.
        host_count: u16 = COUNT_BITS,
        /// An event comes.
        in_valid: bool = 1,
        /// Its ring; counts without `in_valid`, too.
        in_ring: u8 = RING_BITS,
        /// The record; its phase is given by this block.
        in_event: [u64; EVENT_WORDS] = 64 * EVENT_WORDS,
        /// The ring whose room is asked for.
        ask_ring: u8 = RING_BITS,
        /// A write is taken, if one is offered.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// What the host wrote in the cycle before cannot be, and changed nothing.
        refused: bool = 1,
        /// The event enters.
        in_ready: bool = 1,
        /// It does not: its ring is closed.
        lacks_ring: bool = 1,
        /// It does not: software has not consumed enough of its ring.
        lacks_place: bool = 1,
        /// Records that can be written to the ring that was asked for; none to a closed one.
        ask_room: u16 = COUNT_BITS,
        /// A write is offered.
        out_valid: bool = 1,
        /// The ring of the record; zero if there is none.
        out_ring: u8 = RING_BITS,
        /// Global address of the record; zero if there is none.
        out_address: u64 = ADDRESS_BITS as usize,
        /// The record with its phase; zero if there is none.
        out_event: [u64; EVENT_WORDS] = 64 * EVENT_WORDS,
    }
}

/// An open ring.
#[derive(Clone, Copy, Debug)]
struct Ring {
    base: u64,
    entries: NonZeroU64,
    /// Records written since it was opened, and those of them that software has consumed.
    written: u64,
    consumed: u64,
}

impl Ring {
    fn unread(&self) -> u64 {
        self.written - self.consumed
    }

    fn room(&self) -> u64 {
        self.entries.get() - self.unread()
    }
}

/// All rings of an interface; they are closed at first.
///
/// An event that enters in cycle `t` is offered from `t + 1` on, and one enters in every cycle.
/// What the host writes in cycle `t` counts from `t + 1` on.
#[derive(Clone, Debug)]
pub struct EventRing {
    rings: Vec<Option<Ring>>,
    /// Bits of a count of records.
    count_bits: usize,
    refused: bool,
    /// The output's register: `out_valid` and what follows.
    output: Out,
}

impl EventRing {
    /// Closed rings, whose counts have `count_bits` bits.
    ///
    /// # Panics
    /// Unless there are 2 to 64 rings, a power of two, and counts have 1 to 13 bits.
    pub fn new(rings: usize, count_bits: usize) -> EventRing {
        assert!(rings.is_power_of_two() && (2..=1 << RING_BITS).contains(&rings), "2, 4, ... 64");
        assert!((1..=COUNT_BITS).contains(&count_bits), "counts have 1 to {COUNT_BITS} bits");
        EventRing { rings: vec![None; rings], count_bits, refused: false, output: Out::default() }
    }

    /// The output's register takes an event.
    fn has_output(&self, input: &In) -> bool {
        !self.output.out_valid || input.out_ready
    }

    /// What stands at the outputs in this cycle, by what enters.
    #[inline]
    pub fn out(&self, input: &In) -> Out {
        let ring = self.ring(input.in_ring);
        let (lacks_ring, lacks_place) = (ring.is_none(), ring.is_some_and(|it| it.room() == 0));
        // The memory of the rings' places has one write port.
        let is_taken = input.host_valid && input.host_opens;
        Out {
            refused: self.refused,
            in_ready: !is_taken && !lacks_ring && !lacks_place && self.has_output(input),
            lacks_ring,
            lacks_place,
            ask_room: self.ring(input.ask_ring).map_or(0, |it| it.room() as u16),
            ..self.output
        }
    }

    /// One cycle; all numbers of rings are below those that there are.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let out = self.out(&input);
        self.refused = input.host_valid && !self.host(&input);
        if self.has_output(&input) {
            self.output = Out::default();
        }
        if input.in_valid && out.in_ready {
            self.enter(&input);
        }
        out
    }

    fn ring(&self, number: u8) -> Option<&Ring> {
        self.rings[usize::from(number)].as_ref()
    }

    /// What the host writes; false if it cannot be.
    fn host(&mut self, input: &In) -> bool {
        let (base, count) = (input.host_base, u64::from(input.host_count));
        let ring = &mut self.rings[usize::from(input.host_ring)];
        if input.host_opens {
            // A ring behind the last address would go on in another node's memory (C-39).
            let fits = base + count <= 1 << BASE_BITS;
            if fits {
                *ring = NonZeroU64::new(count).map(|entries| Ring {
                    base,
                    entries,
                    written: 0,
                    consumed: 0,
                });
            }
            return fits;
        }
        let Some(ring) = ring else { return false };
        let news = count.wrapping_sub(ring.consumed) % (1 << self.count_bits);
        let is_plausible = news <= ring.unread();
        if is_plausible {
            ring.consumed += news;
        }
        is_plausible
    }

    /// An event enters an open ring with room.
    fn enter(&mut self, input: &In) {
        let Some(ring) = &mut self.rings[usize::from(input.in_ring)] else { return };
        let index = ring.written % ring.entries;
        let mut out_event = input.in_event;
        let last = &mut out_event[EVENT_WORDS - 1];
        *last = if phase(ring.written, ring.entries) { *last | PHASE } else { *last & !PHASE };
        ring.written += 1;
        let out_address = (ring.base + index) * EVENT_BYTES as u64;
        let out_ring = input.in_ring;
        self.output = Out { out_valid: true, out_ring, out_address, out_event, ..Out::default() };
    }
}

#[cfg(test)]
mod tests {
    use bellwire_wire::endpoint::Endpoint;
    use bellwire_wire::event::{EventRepr, Status};
    use bellwire_wire::primitive::Primitive;
    use bellwire_wire::tail::Tail;

    use super::*;
    use crate::chpp::Config;

    const EVENT: In = In {
        host_valid: false,
        host_opens: false,
        host_ring: 0,
        host_base: 0,
        host_count: 0,
        in_valid: true,
        in_ring: 0,
        in_event: [0; EVENT_WORDS],
        ask_ring: 0,
        out_ready: true,
    };

    /// Some rings, driven one thing after the other.
    struct Driven(EventRing);

    impl Driven {
        /// Four rings, ring 0 with 3 records from address 0x1000 on; counts have 3 bits.
        fn new() -> Driven {
            let mut driven = Driven(EventRing::new(4, 3));
            assert!(driven.open(0, 0x80, 3));
            driven
        }

        /// Whether the host may open a ring so.
        fn open(&mut self, ring: u8, base: u64, entries: u16) -> bool {
            self.host(In { host_opens: true, ..host(ring, base, entries) })
        }

        /// Whether the host may report so.
        fn consumed(&mut self, ring: u8, count: u16) -> bool {
            self.host(host(ring, 0, count))
        }

        fn host(&mut self, input: In) -> bool {
            self.0.cycle(input);
            !self.0.cycle(In { out_ready: true, ..In::default() }).refused
        }

        /// The address and the phase that an event gets.
        fn event(&mut self, ring: u8) -> Option<(u64, bool)> {
            self.0.cycle(In { in_ring: ring, ..EVENT });
            let out = self.0.cycle(In { out_ready: true, ..In::default() });
            assert_eq!(out.out_ring, if out.out_valid { ring } else { 0 });
            out.out_valid.then(|| (out.out_address, out.out_event[3] & PHASE > 0))
        }

        fn room(&mut self, ring: u8) -> u16 {
            self.0.cycle(In { ask_ring: ring, ..In::default() }).ask_room
        }
    }

    fn host(ring: u8, base: u64, count: u16) -> In {
        let (host_ring, host_base, host_count) = (ring, base, count);
        In { host_valid: true, host_ring, host_base, host_count, out_ready: true, ..In::default() }
    }

    /// There is a number for each ring of the model's interface, and a count for the largest ring
    /// that it may have.
    #[test]
    fn all_rings_of_the_model_have_numbers() {
        let config = Config::prototype();
        assert_eq!(config.nic.functions * config.nic.queue_pairs * 2, 1 << RING_BITS);
        assert!(config.host.ring_entries <= 4096 && 4096 < 1 << COUNT_BITS);
        assert_eq!((BASE_BITS, EVENT_WORDS), (35, 4));
    }

    /// Events get one place after the other, lap by lap, and the phase of the lap. They wait while
    /// the ring is full, and go on when software has consumed some.
    // shows: C-16
    #[test]
    fn a_full_ring_waits() {
        let mut driven = Driven::new();
        let first = [(); 4].map(|()| driven.event(0));
        let at = |record: u64, phase: bool| Some((0x1000 + 32 * record, phase));
        assert_eq!(first, [at(0, true), at(1, true), at(2, true), None]);
        let out = driven.0.cycle(EVENT);
        assert_eq!((out.in_ready, out.lacks_ring, out.lacks_place), (false, false, true));
        assert_eq!(driven.room(0), 0);
        assert!(driven.consumed(0, 2));
        assert_eq!(driven.room(0), 2);
        assert_eq!([(); 3].map(|()| driven.event(0)), [at(0, false), at(1, false), None]);
        assert!(driven.consumed(0, 5));
        let next = [(); 4].map(|()| driven.event(0));
        assert_eq!(next, [at(2, false), at(0, true), at(1, true), None]);
    }

    /// Counts of software wrap. Those that it cannot have are refused: more than was written, or
    /// fewer than it had before. The last one again is none of them.
    #[test]
    fn counts_wrap_and_wrong_ones_are_refused() {
        let mut driven = Driven::new();
        for lap in 0..20_u16 {
            assert!(driven.event(0).is_some() && driven.event(0).is_some());
            let before = 2 * lap % 8;
            for wrong in [3, 4, 5, 6, 7] {
                assert!(!driven.consumed(0, (before + wrong) % 8), "{wrong} in lap {lap}");
            }
            assert_eq!(driven.room(0), 1);
            assert!(driven.consumed(0, before));
            assert_eq!(driven.room(0), 1);
            assert!(driven.consumed(0, (before + 1) % 8));
            assert_eq!(driven.room(0), 2);
            assert!(driven.consumed(0, (before + 2) % 8));
            assert_eq!(driven.room(0), 3);
        }
    }

    /// Rings are closed at first and after one is opened without records. They then take no event
    /// and no report. Opening one anew begins its first lap, at any base.
    // shows: C-15
    #[test]
    fn a_ring_takes_events_while_it_is_open() {
        let mut driven = Driven::new();
        let out = driven.0.cycle(In { in_ring: 3, ..EVENT });
        assert_eq!((out.in_ready, out.lacks_ring, out.lacks_place), (false, true, false));
        assert!(!driven.consumed(3, 0));
        assert_eq!((driven.room(3), driven.event(3)), (0, None));
        for base in [0x80, 0x100, 0x7_ffff_fffe] {
            assert!(driven.open(0, base, 2));
            assert_eq!(driven.room(0), 2);
            let places = [(); 3].map(|()| driven.event(0));
            assert_eq!(places, [Some((32 * base, true)), Some((32 * base + 32, true)), None]);
        }
        assert!(driven.open(0, 0x80, 0));
        assert_eq!((driven.room(0), driven.event(0)), (0, None));
    }

    /// A ring that goes on behind the last address is refused, and the old one stays.
    #[test]
    fn a_ring_lies_below_the_last_address() {
        let mut driven = Driven::new();
        driven.event(0);
        assert!(!driven.open(0, 0x7_ffff_ffff, 2));
        assert_eq!(driven.room(0), 2);
        assert_eq!(driven.event(0), Some((0x1020, true)));
        assert!(driven.open(0, 0x7_ffff_ffff, 1));
        assert_eq!(driven.event(0), Some((0xff_ffff_ffe0, true)));
    }

    /// Rings do not know of each other.
    #[test]
    fn rings_are_apart() {
        let mut driven = Driven::new();
        assert!(driven.open(2, 0x200, 1));
        assert_eq!(driven.event(2), Some((0x4000, true)));
        assert_eq!([(); 2].map(|()| driven.event(0)), [Some((0x1000, true)), Some((0x1020, true))]);
        assert_eq!(driven.event(2), None);
        assert!(driven.consumed(2, 1) && !driven.consumed(2, 2) && driven.consumed(0, 1));
        assert_eq!([0, 1, 2, 3].map(|ring| driven.room(ring)), [2, 0, 1, 0]);
        assert_eq!(driven.event(2), Some((0x4000, false)));
    }

    /// An event is offered in the next cycle and stays until it is taken; then the next one enters
    /// in the same cycle. A report counts from the next cycle on. While the host opens a ring, no
    /// event enters.
    #[test]
    fn a_cycle_is_a_cycle() {
        let mut rings = Driven::new().0;
        let event = |word: u64| In { in_event: [word, 0, 0, 0], ..EVENT };
        let seen = |out: Out| (out.in_ready, out.out_valid, out.out_event[0]);
        assert_eq!(seen(rings.cycle(event(1))), (true, false, 0));
        assert_eq!(seen(rings.cycle(event(2))), (true, true, 1));
        assert_eq!(seen(rings.cycle(In { out_ready: false, ..event(3) })), (false, true, 2));
        let opens = In { host_opens: true, ..host(1, 0, 1) };
        let both = In { in_valid: true, in_event: [3, 0, 0, 0], ..opens };
        let out = rings.cycle(In { out_ready: false, ..both });
        assert_eq!((seen(out), out.lacks_place), ((false, true, 2), false));
        assert_eq!(seen(rings.cycle(both)), (false, true, 2));
        let refused = In { host_base: 0x7_ffff_ffff, host_count: 2, ..both };
        assert_eq!(seen(rings.cycle(refused)), (false, false, 0));
        assert_eq!(seen(rings.cycle(event(3))), (true, false, 0));
        let out = rings.cycle(In { in_valid: true, ..host(0, 0, 1) });
        assert_eq!((seen(out), out.lacks_place), ((false, true, 3), true));
        assert_eq!(seen(rings.cycle(event(4))), (true, false, 0));
        assert_eq!(seen(rings.cycle(In::default())), (false, true, 4));
    }

    /// The phase that comes with an event counts for nothing, and all else of it is kept: software
    /// reads it as `bellwire_wire` says.
    #[test]
    fn a_record_is_that_of_the_format() {
        let mut rings = Driven::new().0;
        for at in 0..12 {
            let event = EventRepr {
                phase: at % 2 == 0,
                primitive: Primitive::Put,
                status: Status::Unreachable,
                queue_pair: 3,
                peer: Endpoint::new(15, 7, 3).unwrap(),
                address: (1 << ADDRESS_BITS) - 1,
                length: (1 << 40) - 1,
                tail: Tail::new(&[0xff; 16]).unwrap(),
            };
            let mut bytes = [0; EVENT_BYTES];
            event.emit(&mut bytes).unwrap();
            let (words, _) = bytes.as_chunks();
            let in_event = std::array::from_fn(|word| u64::from_le_bytes(words[word]));
            rings.cycle(In { in_event, ..EVENT });
            let out = rings.cycle(host(0, 0, (at + 1) % 8));
            let bytes: Vec<u8> = out.out_event.iter().flat_map(|it| it.to_le_bytes()).collect();
            let expected = EventRepr { phase: at / 3 % 2 == 0, ..event };
            assert_eq!(EventRepr::parse(&bytes), Ok(expected), "event {at}");
        }
    }
}
