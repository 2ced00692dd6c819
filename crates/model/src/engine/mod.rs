//! The event core, and how hardware blocks are written on it.
//!
//! # A block
//! A block is a plain struct in a file of its own, named like the hardware. It has its parameters,
//! its registers and queues, and its counters. It does not know its neighbours. A [`Channel`] can
//! join two blocks. Time passes only through the [`Schedule`].
//!
//! # A model
//! A model owns its blocks and channels in ordinary fields and vectors. Its one event type is a
//! small `Copy` enum that names the block (by index) and what happened. [`Model::handle`] is one
//! `match` that calls the block: no boxes, no virtual calls, no shared ownership. Data too large
//! for an event waits in a channel or a [`Pool`]; the event or item carries its handle.
//!
//! # Rules
//! - Simultaneous events happen in random order (see [`Schedule`]); only the seed decides. Queues
//!   keep order.
//! - An arbiter decides in the settling phase: inputs call [`Schedule::settle`] once, and the
//!   decision sees all of them.
//! - Nothing polls. A blocked block says what it waits for ([`Channel::offer`] does) and is woken.
//! - No float, hash or address decides an order; no block reads a clock, a thread or the
//!   environment.
//!
//! # Example
//! A source sends eight packets of four beats to a sink that needs 100 ns each. The channel has
//! room for two packets:
//!
//! ```
//! use bellwire_model::engine::{Channel, Event, Link, Model, Schedule, run};
//! use bellwire_model::units::{Span, Time};
//!
//! /// Everything that can happen in this model.
//! #[derive(Clone, Copy, Debug)]
//! enum Happening {
//!     /// The source may have something to send, and room to send it.
//!     SourceRuns,
//!     /// A packet has arrived at the sink.
//!     SinkArrival,
//!     /// The sink has worked off its packet.
//!     SinkDone,
//! }
//!
//! impl Event for Happening {
//!     fn trace(self) -> u64 {
//!         self as u64
//!     }
//! }
//!
//! struct Source {
//!     left: u32,
//! }
//!
//! impl Source {
//!     /// Sends until the channel refuses, which later raises `SourceRuns`.
//!     fn run(&mut self, out: &mut Channel<u32, Happening>, schedule: &mut Schedule<Happening>) {
//!         while self.left > 0 && out.offer(schedule, 4, self.left).is_ok() {
//!             self.left -= 1;
//!         }
//!     }
//! }
//!
//! #[derive(Default)]
//! struct Sink {
//!     busy: bool,
//!     received: Vec<u32>,
//! }
//!
//! impl Sink {
//!     fn work(
//!         &mut self,
//!         input: &mut Channel<u32, Happening>,
//!         schedule: &mut Schedule<Happening>,
//!     ) {
//!         if self.busy {
//!             return;
//!         }
//!         // Taking an item returns its credits to the sender.
//!         if let Some(item) = input.take(schedule) {
//!             self.busy = true;
//!             self.received.push(item);
//!             schedule.after(Span::from_ns(100), Happening::SinkDone);
//!         }
//!     }
//! }
//!
//! struct Toy {
//!     source: Source,
//!     wire: Channel<u32, Happening>,
//!     sink: Sink,
//! }
//!
//! impl Model for Toy {
//!     type Event = Happening;
//!     fn handle(&mut self, event: Happening, schedule: &mut Schedule<Happening>) {
//!         match event {
//!             Happening::SourceRuns => self.source.run(&mut self.wire, schedule),
//!             Happening::SinkArrival => self.sink.work(&mut self.wire, schedule),
//!             Happening::SinkDone => {
//!                 self.sink.busy = false;
//!                 self.sink.work(&mut self.wire, schedule);
//!             }
//!         }
//!     }
//! }
//!
//! let wire = Channel::new(
//!     "wire",
//!     Link { latency: Span::from_ns(5), beat: Span::from_ns(4), ..Link::default() },
//!     8, // credits: beats that the receiver has room for
//!     Happening::SinkArrival,
//!     Happening::SourceRuns,
//! );
//! let mut toy = Toy { source: Source { left: 8 }, wire, sink: Sink::default() };
//! let mut schedule = Schedule::new(1, Span::from_ns(4));
//! schedule.at(Time::ZERO, Happening::SourceRuns);
//! run(&mut toy, &mut schedule, Time::NEVER);
//!
//! assert_eq!(toy.sink.received, [8, 7, 6, 5, 4, 3, 2, 1]);
//! // The first arrives after 5 ns and four beats; from then on the sink is never idle.
//! assert_eq!(schedule.now(), Time::from_ps(821_000));
//! toy.wire.audit(schedule.now()).expect("nothing is lost, and Little's law holds");
//! ```

mod arbiter;
mod calendar;
mod channel;
mod pool;
mod random;
mod schedule;
mod waits;

pub use arbiter::{Arbiter, Policy};
pub(crate) use arbiter::{first_from, nth_set};
pub use channel::{Channel, Link, Take};
pub use pool::{Handle, Pool};
pub use random::{Chance, Failures, Random};
pub use schedule::Schedule;
pub use waits::{Cycle, Wait, Waits};

use crate::units::Time;

/// An event: a small `Copy` enum of the model.
pub trait Event: Copy {
    /// The event's word in the trace hash: different events have different words. An enum without
    /// fields uses `self as u64`.
    fn trace(self) -> u64;
}

/// Blocks and the channels between them.
pub trait Model {
    /// Everything that can happen in it.
    type Event: Event;

    /// Handles `event`, now.
    fn handle(&mut self, event: Self::Event, schedule: &mut Schedule<Self::Event>);
}

/// Why a run returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// No event is left: all is done, or the blocks that are left wait for each other (see
    /// [`Waits`]).
    Quiet,
    /// The time limit is reached.
    TimeUp,
}

/// Runs all events up to and including `until`. A later call continues.
pub fn run<M: Model>(model: &mut M, schedule: &mut Schedule<M::Event>, until: Time) -> Ended {
    while let Some(event) = schedule.next(until) {
        model.handle(event, schedule);
    }
    if schedule.pending() == 0 {
        // No event of the settling phase is left, so a caller may schedule events at this very
        // moment.
        schedule.rest_until(schedule.now());
        return Ended::Quiet;
    }
    schedule.rest_until(until);
    Ended::TimeUp
}

/// Runs one event at or before `until`. Without one, moves the time to `until` and returns `false`.
/// A caller that drives the model from outside checks its state between events.
pub fn step<M: Model>(model: &mut M, schedule: &mut Schedule<M::Event>, until: Time) -> bool {
    match schedule.next(until) {
        Some(event) => {
            model.handle(event, schedule);
            true
        }
        None => {
            schedule.rest_until(until);
            false
        }
    }
}
