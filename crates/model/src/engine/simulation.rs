//! The loop of every machine: a model, its schedule, and the report when nothing moves.

use std::fmt;

use super::{Cycle, Model, Schedule, Waits};
use crate::units::Time;

/// A model and its time.
///
/// A machine is a type alias, such as `pub type Machine = Simulation<Hardware>`, with methods of
/// its own: what programs and tests ask of it. Both fields are public: its constructor puts them
/// together, and its methods call a block with the schedule beside it. The same model, seed and
/// programs give the same run.
pub struct Simulation<M: Model> {
    /// The blocks.
    pub model: M,
    /// The clock and the pending events.
    pub schedule: Schedule<M::Event>,
}

/// Why a run returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// No event is left: all is done, or the blocks that are left wait for each other (see
    /// [`Simulation::standstill`]).
    Quiet,
    /// The time limit is reached.
    TimeUp,
}

/// Nothing moves, although work is left.
#[derive(Clone, Debug)]
pub enum Standstill {
    /// Blocks wait for each other in a cycle (C-26).
    Deadlock(Cycle),
    /// Blocks wait for something outside, such as software; the sentences say for what.
    Starved(Vec<String>),
}

impl<M: Model> Simulation<M> {
    /// The present time.
    pub fn now(&self) -> Time {
        self.schedule.now()
    }

    /// A hash of all events so far (see [`Schedule::trace_hash`]).
    pub fn trace_hash(&self) -> u64 {
        self.schedule.trace_hash()
    }

    /// How many events happened.
    pub fn events(&self) -> u64 {
        self.schedule.dispatched()
    }

    /// How many events are pending.
    pub fn pending(&self) -> usize {
        self.schedule.pending()
    }

    /// Runs one event at or before `until`. Without one, moves the time to `until` and returns
    /// `false`. A caller that drives the model from outside looks at it between events.
    #[inline]
    pub fn step(&mut self, until: Time) -> bool {
        match self.schedule.next(until) {
            Some(event) => {
                self.model.handle(event, &mut self.schedule);
                true
            }
            None => {
                self.schedule.rest_until(until);
                false
            }
        }
    }

    /// Runs all events up to and including `until`. A later call continues.
    pub fn run(&mut self, until: Time) -> Ended {
        self.run_with(until, |_, _| {})
    }

    /// The same. It calls `tell` first and after each event: there a model tells its programs what
    /// has happened.
    #[inline]
    pub fn run_with(
        &mut self,
        until: Time,
        mut tell: impl FnMut(&mut M, &mut Schedule<M::Event>),
    ) -> Ended {
        tell(&mut self.model, &mut self.schedule);
        while let Some(event) = self.schedule.next(until) {
            self.model.handle(event, &mut self.schedule);
            tell(&mut self.model, &mut self.schedule);
        }
        if self.pending() == 0 {
            // No event of the settling phase is left, so a caller may schedule events at this very
            // moment.
            self.schedule.rest_until(self.now());
            return Ended::Quiet;
        }
        self.schedule.rest_until(until);
        Ended::TimeUp
    }

    /// Runs until `is_over`, which it asks first and after each event. Otherwise moves the time to
    /// `until` and returns `false`.
    pub fn run_until(&mut self, until: Time, mut is_over: impl FnMut(&mut M) -> bool) -> bool {
        while !is_over(&mut self.model) {
            if !self.step(until) {
                return false;
            }
        }
        true
    }

    /// Who waits for what, if no event is left although the model has work.
    pub fn standstill(&self) -> Option<Standstill> {
        if self.pending() > 0 || self.model.is_idle() {
            return None;
        }
        let mut waits = Waits::default();
        self.model.waits(&mut waits);
        Some(match waits.cycle() {
            Some(cycle) => Standstill::Deadlock(cycle),
            None => Standstill::Starved(waits.all().iter().map(ToString::to_string).collect()),
        })
    }
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Standstill::Deadlock(cycle) => cycle.fmt(f),
            Standstill::Starved(waits) => {
                write!(f, "nothing moves, and no ring of waits: {}", waits.join("; "))
            }
        }
    }
}

impl std::error::Error for Standstill {}
