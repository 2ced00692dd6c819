//! The typed connection between two blocks: a line, a buffer at its end, and the buffer's credits.

use std::collections::VecDeque;

use super::{Event, Schedule, Server, Waits};
use crate::stats::{Imbalance, Occupancy, Tally};
use crate::units::{Span, Time};

/// When the receiver may look at an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Take {
    /// When its last beat has arrived (store-and-forward, S-20).
    #[default]
    Tail,
    /// When its first beat has arrived (cut-through, S-21).
    Head,
}

/// The timing of a channel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timing {
    /// From the sender's pins to the receiver's, for each beat.
    pub latency: Span,
    /// Time that one beat occupies the line; zero for a line that is never busy.
    pub beat: Span,
    /// Delay from the receiver's taking an item until the sender has its credits again.
    pub credit_latency: Span,
    /// When the receiver may look at an item.
    pub take: Take,
    /// Whether a credit is worth a whole item (a tag, a header credit), not a beat.
    pub credit_per_item: bool,
}

struct Travelling<T> {
    item: T,
    sent: Time,
    arrives: Time,
    credits: u32,
}

/// A FIFO connection from one block to another.
///
/// The sender [offers](Channel::offer) an item. If the line is busy or credits are missing, it gets
/// its item back. The event `on_room` then wakes it when a retry can succeed; a wake-up can be
/// spurious. Each item raises `on_arrival` when it is ready; the receiver [takes](Channel::take) it
/// then or later, which returns its credits.
pub struct Channel<T, E> {
    name: String,
    timing: Timing,
    capacity: u32,
    credits: u32,
    returning: VecDeque<(Time, u32)>,
    inside: VecDeque<Travelling<T>>,
    /// The line, busy with beats.
    pub line: Server,
    on_arrival: E,
    on_room: E,
    /// The time of the last scheduled wake-up.
    wakes_at: Option<Time>,
    /// Since when the sender is credit-starved, and the credits that it lacks.
    starved: Option<(Time, u32)>,
    /// Time from sent to taken.
    pub occupancy: Occupancy,
    /// Picoseconds from arrived to taken.
    pub waited: Tally,
    /// How long the sender was credit-starved with an item.
    pub credit_stall: Span,
}

impl<T, E: Event> Channel<T, E> {
    /// A channel with room for `credits` beats (or items, see [`Timing::credit_per_item`]) at its
    /// end. `u32::MAX` means unlimited.
    pub fn new(
        name: impl Into<String>,
        timing: Timing,
        credits: u32,
        on_arrival: E,
        on_room: E,
    ) -> Channel<T, E> {
        Channel {
            name: name.into(),
            timing,
            capacity: credits,
            credits,
            returning: VecDeque::new(),
            inside: VecDeque::new(),
            line: Server::default(),
            on_arrival,
            on_room,
            wakes_at: None,
            starved: None,
            occupancy: Occupancy::default(),
            waited: Tally::default(),
            credit_stall: Span::ZERO,
        }
    }

    /// Sends an item of `beats` beats if line and credits allow.
    ///
    /// # Errors
    /// The item itself, if they do not. `on_room` is raised when they may.
    ///
    /// # Panics
    /// If the item needs more credits than the channel has in total.
    pub fn offer(&mut self, schedule: &mut Schedule<E>, beats: u32, item: T) -> Result<(), T> {
        let now = schedule.now();
        let credits = if self.timing.credit_per_item { 1 } else { beats };
        assert!(
            credits <= self.capacity,
            "{}: an item of {credits} credits cannot pass a channel of {}; give it more credits",
            self.name,
            self.capacity
        );
        self.mature(now);
        if let Some((since, _)) = self.starved.take() {
            self.credit_stall += now - since;
        }
        if !self.line.is_free(now) {
            self.wake(schedule, self.line.free_at());
            return Err(item);
        }
        if self.credits < credits {
            self.starved = Some((now, credits));
            self.wake_for_credits(schedule, credits);
            return Err(item);
        }
        let last = self.timing.beat * u64::from(beats);
        self.line.reserve(now, last);
        let unlimited = self.capacity == u32::MAX;
        self.credits -= if unlimited { 0 } else { credits };
        let seen = match self.timing.take {
            Take::Tail => last,
            Take::Head => self.timing.beat.min(last),
        };
        let arrives = now + self.timing.latency + seen;
        self.occupancy.enter(now);
        self.inside.push_back(Travelling { item, sent: now, arrives, credits });
        schedule.at(arrives, self.on_arrival);
        Ok(())
    }

    /// The first item that has arrived; it stays in the channel.
    pub fn front(&self, now: Time) -> Option<&T> {
        self.inside.front().filter(|first| first.arrives <= now).map(|first| &first.item)
    }

    /// Whether neither buffer nor line holds an item.
    pub fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    /// Takes the first item that has arrived and returns its credits to the sender.
    pub fn take(&mut self, schedule: &mut Schedule<E>) -> Option<T> {
        let now = schedule.now();
        self.front(now)?;
        let first = self.inside.pop_front()?;
        self.occupancy.leave(first.sent, now);
        self.waited.add((now - first.arrives).ps());
        if self.capacity != u32::MAX {
            self.returning.push_back((now + self.timing.credit_latency, first.credits));
            if let Some((_, wanted)) = self.starved {
                self.wake_for_credits(schedule, wanted);
            }
        }
        Some(first.item)
    }

    /// Checks conservation of items and credits, and Little's law.
    ///
    /// # Errors
    /// The violated law.
    pub fn audit(&self, now: Time) -> Result<(), Imbalance> {
        self.occupancy.audit(&self.name, now, self.inside.iter().map(|item| item.sent))?;
        let held: u64 = self.inside.iter().map(|item| u64::from(item.credits)).sum();
        let returning: u64 = self.returning.iter().map(|returning| u64::from(returning.1)).sum();
        let all = u64::from(self.credits) + held + returning;
        if self.capacity != u32::MAX && all != u64::from(self.capacity) {
            return Err(Imbalance {
                queue: self.name.clone(),
                law: "credits held by the sender, held by items and returning do not make the capacity",
                details: format!(
                    "{} + {held} + {returning}, capacity {}",
                    self.credits, self.capacity
                ),
            });
        }
        Ok(())
    }

    /// Adds a wait of `sender` for `receiver`, which empties this channel, if the sender is
    /// credit-starved.
    pub fn waits(&self, sender: &str, receiver: &str, waits: &mut Waits) {
        if let Some((_, wanted)) = self.starved {
            let resource = format!("{wanted} credits of {}", self.name);
            waits.add(sender, receiver, resource);
        }
    }

    fn mature(&mut self, now: Time) {
        while let Some(&(time, credits)) = self.returning.front()
            && time <= now
        {
            self.credits += credits;
            self.returning.pop_front();
        }
    }

    /// Schedules a wake-up of the sender when the `wanted` credits are back, if they are already
    /// returning.
    fn wake_for_credits(&mut self, schedule: &mut Schedule<E>, wanted: u32) {
        let mut credits = self.credits;
        for &(time, back) in &self.returning {
            credits += back;
            if credits >= wanted {
                self.wake(schedule, time.max(schedule.now()));
                return;
            }
        }
    }

    fn wake(&mut self, schedule: &mut Schedule<E>, time: Time) {
        let now = schedule.now();
        if self.wakes_at.is_none_or(|ordered| ordered <= now || time < ordered) {
            self.wakes_at = Some(time);
            schedule.at(time, self.on_room);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Model, Simulation};
    use super::*;

    #[derive(Clone, Copy)]
    enum PairEvent {
        Room,
        Arrival,
        Taken,
    }

    impl Event for PairEvent {
        fn trace(self) -> u64 {
            self as u64
        }
    }

    /// A sender that always has an item, a channel, and a receiver that takes an item some time
    /// after its arrival.
    struct Pair {
        channel: Channel<u64, PairEvent>,
        beats: u32,
        sent: u64,
        received: Vec<u64>,
        hold: Span,
    }

    impl Model for Pair {
        type Event = PairEvent;
        fn handle(&mut self, event: PairEvent, schedule: &mut Schedule<PairEvent>) {
            match event {
                PairEvent::Room => {
                    while self.channel.offer(schedule, self.beats, self.sent).is_ok() {
                        self.sent += 1;
                    }
                }
                PairEvent::Arrival => schedule.after(self.hold, PairEvent::Taken),
                PairEvent::Taken => self.received.extend(self.channel.take(schedule)),
            }
        }
    }

    fn saturated(timing: Timing, credits: u32, beats: u32, hold: Span) -> (Pair, Time) {
        let channel = Channel::new("line", timing, credits, PairEvent::Arrival, PairEvent::Room);
        let pair = Pair { channel, beats, sent: 0, received: Vec::new(), hold };
        let schedule = Schedule::new(9, Span::from_ns(4));
        let mut simulation = Simulation { model: pair, schedule };
        simulation.schedule.at(Time::ZERO, PairEvent::Room);
        let end = Time::from_ps(4_000_000);
        simulation.run(end);
        let pair = simulation.model;
        pair.channel.audit(end).unwrap();
        assert!(pair.received.iter().copied().eq(0..pair.received.len() as u64), "in order");
        (pair, end)
    }

    /// Throughput is the lower of the line rate and credits per round trip (model-checks, credit
    /// loop).
    #[test]
    fn a_credit_loop_limits_throughput() {
        let timing = Timing {
            latency: Span::from_ns(10),
            beat: Span::from_ns(4),
            credit_latency: Span::from_ns(6),
            ..Timing::default()
        };
        // Beat, flight, holding and credit return: 4 + 10 + 20 + 6 = 40 ns.
        let hold = Span::from_ns(20);
        for credits in [1, 2, 5, 9, 10, 11, 40] {
            let (pair, end) = saturated(timing, credits, 1, hold);
            let expected = (f64::from(credits) / 40.0).min(1.0 / 4.0) * end.ps() as f64 / 1000.0;
            let got = pair.received.len() as f64;
            assert!((got - expected).abs() <= 11.0, "{credits} credits: {got}, {expected}");
            let stalled = pair.channel.credit_stall > Span::ZERO;
            assert_eq!(stalled, credits < 10, "{credits} credits: the stall names the limit");
        }
    }

    /// Four credits, of which one is back after 110 ns and three after 120. A sender that wants all
    /// and then one is woken for both, each time once.
    struct Starved {
        channel: Channel<(), PairEvent>,
        woken: Vec<u64>,
    }

    impl Model for Starved {
        type Event = PairEvent;
        fn handle(&mut self, event: PairEvent, schedule: &mut Schedule<PairEvent>) {
            let now_ns = schedule.now().ps() / 1000;
            match event {
                PairEvent::Arrival => {}
                PairEvent::Room => self.woken.push(now_ns),
                PairEvent::Taken if now_ns < 30 => assert!(self.channel.take(schedule).is_some()),
                PairEvent::Taken => {
                    for wanted in [4, 1, 4] {
                        assert!(self.channel.offer(schedule, wanted, ()).is_err());
                    }
                }
            }
        }
    }

    #[test]
    fn the_nearer_wake_up_is_ordered() {
        let timing = Timing { credit_latency: Span::from_ns(100), ..Timing::default() };
        let channel = Channel::new("line", timing, 4, PairEvent::Arrival, PairEvent::Room);
        let model = Starved { channel, woken: Vec::new() };
        let mut simulation = Simulation { model, schedule: Schedule::new(1, Span::from_ns(4)) };
        let Simulation { model, schedule } = &mut simulation;
        assert!(model.channel.offer(schedule, 1, ()).is_ok());
        assert!(model.channel.offer(schedule, 3, ()).is_ok());
        for ns in [10, 20, 30] {
            schedule.at(Time::from_ps(ns * 1000), PairEvent::Taken);
        }
        simulation.run(Time::NEVER);
        assert_eq!(simulation.model.woken, [110, 120]);
    }

    /// `Take::Head` items arrive before `Take::Tail` items.
    #[test]
    fn heads_come_before_tails() {
        for (take, first) in [(Take::Head, 14), (Take::Tail, 42)] {
            let timing = Timing {
                latency: Span::from_ns(10),
                beat: Span::from_ns(4),
                take,
                ..Timing::default()
            };
            let mut schedule = Schedule::new(1, Span::from_ns(4));
            let mut channel = Channel::new("line", timing, 8, PairEvent::Arrival, PairEvent::Room);
            channel.offer(&mut schedule, 8, ()).unwrap();
            schedule.next(Time::NEVER);
            assert_eq!(schedule.now(), Time::from_ps(first * 1000));
            assert_eq!(channel.take(&mut schedule), Some(()));
        }
    }

    /// Canary: the audit catches a lost item and a lost credit.
    #[test]
    fn losses_are_caught() {
        crate::limit::limited(|| {
            let timing =
                Timing { latency: Span::from_ns(10), beat: Span::from_ns(4), ..Timing::default() };
            let (mut pair, end) = saturated(timing, 8, 2, Span::from_ns(30));
            pair.channel.credits = pair.channel.credits.wrapping_sub(1);
            let error = pair.channel.audit(end).unwrap_err();
            assert!(error.law.contains("credits"), "{error}");
            let (mut pair, end) = saturated(timing, 8, 2, Span::from_ns(30));
            pair.channel.inside.pop_front().expect("it is full");
            assert!(pair.channel.audit(end).is_err());
        });
    }

    /// An item that can never be sent is a mistake in the model: `offer` panics.
    #[test]
    #[should_panic(expected = "give it more credits")]
    fn an_item_beyond_all_credits_is_refused() {
        let mut schedule = Schedule::new(1, Span::from_ns(4));
        let mut channel =
            Channel::new("line", Timing::default(), 3, PairEvent::Arrival, PairEvent::Room);
        let _ = channel.offer(&mut schedule, 4, ());
    }
}
