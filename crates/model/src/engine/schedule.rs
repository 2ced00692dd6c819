//! A block's view of the event core: the time, the pending events, and chance.

use super::calendar::{Calendar, Key};
use super::{Event, Random};
use crate::units::{Span, Time};

/// The clock of one run and its pending events.
///
/// # The order of events
/// Events are ordered by time. At one time, events of the *acting* phase precede those of the
/// *settling* phase. Within a phase the order is **random**: each event draws a number when it is
/// scheduled, and the lowest goes first. So no port precedes another because of its index or its
/// age, and one seed still gives one order. An event scheduled for the present moment draws against
/// the events still left in it.
///
/// A block that must keep an order keeps it in a queue ([`Channel`](super::Channel) does): an event
/// says *that* an item arrived, the queue says which. An arbiter decides in the settling phase,
/// after all arrivals of the moment: see [`Schedule::settle`].
pub struct Schedule<E> {
    calendar: Calendar<E>,
    now: Time,
    settling: bool,
    /// The last moment of the run.
    last: u64,
    tie_breaks: Random,
    /// The bits of a tie break that are random; the others count.
    random_bits: u64,
    pushed: u64,
    dispatched: u64,
    trace: u64,
    /// For the model's draws; separate from those that break ties.
    pub random: Random,
}

impl<E: Event> Schedule<E> {
    /// An empty schedule at time zero. `grain` is the most frequent time between events, such as a
    /// clock period. It affects only the speed of the core.
    pub fn new(seed: u64, grain: Span) -> Schedule<E> {
        let mut random = Random::new(seed);
        Schedule {
            calendar: Calendar::new((grain.ps() / 4).max(1)),
            now: Time::ZERO,
            settling: false,
            last: 0,
            tie_breaks: random.fork(0),
            random_bits: !0xffff_ffff,
            pushed: 0,
            dispatched: 0,
            trace: seed,
            random,
        }
    }

    /// The same, but simultaneous events of a phase happen in the order in which they were
    /// scheduled: for blocks that share one clock, where nothing is a matter of chance.
    pub fn in_order(seed: u64, grain: Span) -> Schedule<E> {
        Schedule { random_bits: 0, ..Schedule::new(seed, grain) }
    }

    /// The present time.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Schedules `event` after `delay`; zero is allowed.
    #[inline]
    pub fn after(&mut self, delay: Span, event: E) {
        self.at(self.now + delay, event);
    }

    /// Schedules `event` at `time`.
    ///
    /// # Panics
    /// If `time` is past, or is the present moment in its settling phase: use [`Schedule::settle`]
    /// then.
    #[inline]
    pub fn at(&mut self, time: Time, event: E) {
        let moment = time.ps() << 1;
        assert!(moment >= self.moment(), "an event at {time} cannot be scheduled at {}", self.now);
        self.push(moment, event);
    }

    /// Schedules `event` at this moment, after all its acting events: for decisions that must see
    /// every input.
    #[inline]
    pub fn settle(&mut self, event: E) {
        self.settle_at(self.now, event);
    }

    /// Schedules `event` at `time`, after all acting events of that moment.
    ///
    /// # Panics
    /// If `time` is past.
    #[inline]
    pub fn settle_at(&mut self, time: Time, event: E) {
        assert!(time >= self.now, "an event at {time} cannot be scheduled at {}", self.now);
        self.push(time.ps() << 1 | 1, event);
    }

    /// How many events are pending.
    pub fn pending(&self) -> usize {
        self.calendar.len()
    }

    /// How many events have happened.
    pub fn dispatched(&self) -> u64 {
        self.dispatched
    }

    /// A hash of all events so far with their times, in order. Equal hashes mean that two runs did
    /// the same.
    pub fn trace_hash(&self) -> u64 {
        self.trace
    }

    /// Mixes a fact into the trace hash that no event carries, such as which packet was delivered.
    #[inline]
    pub fn witness(&mut self, word: u64) {
        self.trace = ((self.trace ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(29);
    }

    /// Takes the next event if it happens at or before `last`, and moves the clock to it.
    #[inline]
    pub(super) fn next(&mut self, last: Time) -> Option<E> {
        self.last = last.ps() << 1 | 1;
        let (key, event) = self.calendar.pop(self.last)?;
        self.begin(key.moment, event);
        Some(event)
    }

    /// Like [`Schedule::settle_at`]. But if nothing else happens until then, it moves the clock on
    /// and returns `true`, and the caller handles `event` at once. This saves the calendar for a
    /// block that works at each clock edge; time and trace are the same.
    #[inline]
    pub fn settles_next(&mut self, time: Time, event: E) -> bool {
        let moment = time.ps() << 1 | 1;
        let is_next = moment <= self.last && self.calendar.is_quiet_until(moment);
        if is_next {
            self.begin(moment, event);
        } else {
            self.settle_at(time, event);
        }
        is_next
    }

    #[inline]
    fn begin(&mut self, moment: u64, event: E) {
        self.now = Time::from_ps(moment >> 1);
        self.settling = moment & 1 == 1;
        self.dispatched += 1;
        let mixed = (self.trace ^ moment).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ event.trace();
        self.trace = mixed.rotate_left(29).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }

    /// Moves the clock to `time`; the caller has run all events before it.
    pub(super) fn rest_until(&mut self, time: Time) {
        self.now = self.now.max(time);
        self.settling = false;
    }

    #[inline]
    fn moment(&self) -> u64 {
        self.now.ps() << 1 | u64::from(self.settling)
    }

    #[inline]
    fn push(&mut self, moment: u64, event: E) {
        self.pushed += 1;
        let random = self.tie_breaks.word() & self.random_bits;
        let tie_break = random | self.pushed & !self.random_bits;
        self.calendar.push(Key { moment, tie_break }, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Number(u64);

    impl Event for Number {
        fn trace(self) -> u64 {
            self.0
        }
    }

    fn order(seed: u64, events: u64) -> (Vec<u64>, u64) {
        let mut schedule = Schedule::new(seed, Span::from_ns(4));
        for number in 0..events {
            schedule.at(Time::from_ps(4_000), Number(number));
        }
        let order =
            std::iter::from_fn(|| schedule.next(Time::NEVER)).map(|event| event.0).collect();
        (order, schedule.trace_hash())
    }

    /// One seed gives one order; another seed gives another.
    #[test]
    fn a_seed_fixes_the_order() {
        assert_eq!(order(1, 50), order(1, 50));
        assert_ne!(order(1, 50), order(2, 50));
        // The order of this seed on every machine: this value changes only with the algorithm.
        assert_eq!(order(1, 50).1, TRACE_OF_SEED_1);
    }
    const TRACE_OF_SEED_1: u64 = 11_285_977_668_862_580_646;

    /// Each of several simultaneous events is equally likely to be first, in any order of
    /// scheduling.
    #[test]
    fn ties_favour_nobody() {
        let mut first = [0; 4];
        for seed in 0..4_000 {
            first[order(seed, 4).0[0] as usize] += 1;
        }
        assert!(first.iter().all(|&times| (880..1_120).contains(&times)), "{first:?}");
    }

    /// Settling events come after all acting events of their moment, including those scheduled
    /// later.
    #[test]
    fn settling_is_last() {
        for seed in 0..100 {
            let mut schedule = Schedule::new(seed, Span::from_ns(4));
            schedule.settle(Number(9));
            for number in 0..3 {
                schedule.after(Span::ZERO, Number(number));
            }
            let order: Vec<u64> =
                std::iter::from_fn(|| schedule.next(Time::NEVER)).map(|event| event.0).collect();
            assert_eq!((order.len(), order[3]), (4, 9));
        }
    }

    /// Events of one moment happen in the order of scheduling, if that is asked.
    #[test]
    fn order_is_kept_if_asked() {
        let mut schedule = Schedule::in_order(7, Span::from_ns(4));
        (0..50).for_each(|number| schedule.at(Time::from_ps(4_000), Number(number)));
        let order = std::iter::from_fn(|| schedule.next(Time::NEVER)).map(|event| event.0);
        assert!(order.eq(0..50));
        // Also if many moments share a slot, and their events come mixed.
        let moment = |number: u64| Time::from_ps(8_000 + number * 7 % 3);
        (0..200).for_each(|number| schedule.at(moment(number), Number(number)));
        let mut expected: Vec<u64> = (0..200).collect();
        expected.sort_by_key(|&number| moment(number));
        let order = std::iter::from_fn(|| schedule.next(Time::NEVER)).map(|event| event.0);
        assert!(order.eq(expected));
        // Also if some were scheduled long before, and others when their moment was near.
        let moment = Time::from_ps(1 << 40);
        (0..50).for_each(|number| schedule.at(moment, Number(number)));
        schedule.at(Time::from_ps((1 << 40) - 10), Number(99));
        assert_eq!(schedule.next(Time::NEVER), Some(Number(99)));
        (50..100).for_each(|number| schedule.at(moment, Number(number)));
        let order = std::iter::from_fn(|| schedule.next(Time::NEVER)).map(|event| event.0);
        assert!(order.eq(0..100));
    }

    /// An event in the past is refused.
    #[test]
    #[should_panic(expected = "cannot be scheduled")]
    fn the_past_is_refused() {
        let mut schedule = Schedule::new(1, Span::from_ns(4));
        schedule.at(Time::from_ps(10), Number(0));
        schedule.next(Time::NEVER);
        schedule.at(Time::from_ps(9), Number(1));
    }
}
