//! The event core, and how hardware blocks are written on it.
//!
//! # A block
//! A block is a plain struct in a file of its own, named like the hardware. It has its parameters,
//! its registers and queues, and its counters. It does not know its neighbours. Time passes only
//! through the [`Schedule`]. A unit that serves one request after another, such as wires or a
//! memory, is a [`Server`].
//!
//! # A model
//! A model owns its blocks in ordinary fields and vectors. Its one event type is a small `Copy`
//! enum that names the block (by index) and what happened. [`Model::handle`] is one `match` that
//! calls the block: no boxes, no virtual calls, no shared ownership. Data too large for an event
//! waits in a queue or a [`Pool`]; the event or item carries its handle. A [`Channel`] joins two
//! blocks by a line with credits. A [`Simulation`] is a model with its schedule, and runs it.
//!
//! # Rules
//! - Simultaneous events happen in random order (see [`Schedule`]); only the seed decides. Queues
//!   keep order.
//! - An arbiter decides in the settling phase: inputs call [`Schedule::settle`] once, and the
//!   decision sees all of them.
//! - Nothing polls. A blocked block is woken, and [`Model::waits`] says what it waits for.
//! - No float, hash or address decides an order; no block reads a clock, a thread or the
//!   environment.
//!
//! # Example
//! A source sends eight packets of four beats to a sink that needs 100 ns each. The channel has
//! room for two packets:
//!
//! ```
//! use bellwire_model::engine::{Channel, Event, Timing, Model, Schedule, Simulation};
//! use bellwire_model::units::{Span, Time};
//!
//! /// Everything that can happen in this model.
//! #[derive(Clone, Copy, Debug)]
//! enum ToyEvent {
//!     /// The source may have something to send, and room to send it.
//!     SourceRuns,
//!     /// A packet has arrived at the sink.
//!     SinkArrival,
//!     /// The sink has worked off its packet.
//!     SinkDone,
//! }
//!
//! impl Event for ToyEvent {
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
//!     fn run(&mut self, out: &mut Channel<u32, ToyEvent>, schedule: &mut Schedule<ToyEvent>) {
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
//!         input: &mut Channel<u32, ToyEvent>,
//!         schedule: &mut Schedule<ToyEvent>,
//!     ) {
//!         if self.busy {
//!             return;
//!         }
//!         // Taking an item returns its credits to the sender.
//!         if let Some(item) = input.take(schedule) {
//!             self.busy = true;
//!             self.received.push(item);
//!             schedule.after(Span::from_ns(100), ToyEvent::SinkDone);
//!         }
//!     }
//! }
//!
//! struct Toy {
//!     source: Source,
//!     wire: Channel<u32, ToyEvent>,
//!     sink: Sink,
//! }
//!
//! impl Model for Toy {
//!     type Event = ToyEvent;
//!     fn handle(&mut self, event: ToyEvent, schedule: &mut Schedule<ToyEvent>) {
//!         match event {
//!             ToyEvent::SourceRuns => self.source.run(&mut self.wire, schedule),
//!             ToyEvent::SinkArrival => self.sink.work(&mut self.wire, schedule),
//!             ToyEvent::SinkDone => {
//!                 self.sink.busy = false;
//!                 self.sink.work(&mut self.wire, schedule);
//!             }
//!         }
//!     }
//! }
//!
//! let wire = Channel::new(
//!     "wire",
//!     Timing { latency: Span::from_ns(5), beat: Span::from_ns(4), ..Timing::default() },
//!     8, // credits: beats that the receiver has room for
//!     ToyEvent::SinkArrival,
//!     ToyEvent::SourceRuns,
//! );
//! let toy = Toy { source: Source { left: 8 }, wire, sink: Sink::default() };
//! let mut simulation = Simulation { model: toy, schedule: Schedule::new(1, Span::from_ns(4)) };
//! simulation.schedule.at(Time::ZERO, ToyEvent::SourceRuns);
//! simulation.run(Time::NEVER);
//!
//! assert_eq!(simulation.model.sink.received, [8, 7, 6, 5, 4, 3, 2, 1]);
//! // The first arrives after 5 ns and four beats; from then on the sink is never idle.
//! assert_eq!(simulation.now(), Time::from_ps(821_000));
//! simulation.model.wire.audit(simulation.now()).expect("nothing is lost; Little's law holds");
//! ```

mod arbiter;
mod calendar;
mod channel;
mod pool;
mod random;
mod schedule;
mod server;
mod simulation;
#[cfg(test)]
mod times;
mod waits;

pub use arbiter::{Arbiter, Policy};
pub(crate) use arbiter::{first_from, nth_set, ones};
pub use channel::{Channel, Take, Timing};
pub use pool::{Handle, Pool};
pub use random::{Chance, Failures, Random};
pub use schedule::Schedule;
pub use server::{Server, Service};
pub use simulation::{Ended, Simulation, Standstill};
pub use waits::{Cycle, Wait, Waits};

/// An event: a small `Copy` enum of the model.
pub trait Event: Copy {
    /// The event's word in the trace hash: different events have different words. An enum without
    /// fields uses `self as u64`.
    fn trace(self) -> u64;
}

/// Blocks and what joins them. A [`Simulation`] runs it.
pub trait Model {
    /// Everything that can happen in it.
    type Event: Event;

    /// Handles `event`, now.
    fn handle(&mut self, event: Self::Event, schedule: &mut Schedule<Self::Event>);

    /// Whether all work is done. If it is not and no event is left, the model stands still.
    fn is_idle(&self) -> bool {
        true
    }

    /// Adds who waits for what now, for the report of a standstill.
    fn waits(&self, waits: &mut Waits) {
        let _ = waits;
    }
}
