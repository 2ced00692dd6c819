//! The processor of a node. It does one step after another; what a step is for happens at its end. Hard interrupts come first, then soft
//! ones, then the process; an interrupt waits for the end of the step that it meets. While the process has interrupts off, only it goes on.
//!
//! The nodes of the paper have two processors. One of them does all that is measured here; the paper does not say what keeps the other out
//! when it turns interrupts off.

use std::collections::VecDeque;

use crate::units::{Span, Time};

/// On whose behalf a step is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A hard interrupt.
    Hard,
    /// A soft interrupt.
    Soft,
    /// The process, in the kernel or not.
    Process,
}

/// Time that passes, and then something that happens.
#[derive(Clone, Debug)]
pub struct Step<A> {
    /// How long it takes.
    pub time: Span,
    /// What happens at its end.
    pub act: A,
}

/// A processor with its work.
pub struct Cpu<A> {
    work: [VecDeque<Step<A>>; 3],
    current: Option<(Level, A, Span)>,
    /// Interrupts are off.
    pub is_masked: bool,
    /// Waits for the bus, in the middle of this level's work.
    pub stalled: Option<(Level, Time)>,
    /// Time spent for each level.
    pub busy: [Span; 3],
}

impl<A> Default for Cpu<A> {
    fn default() -> Cpu<A> {
        Cpu {
            work: [const { VecDeque::new() }; 3],
            current: None,
            is_masked: false,
            stalled: None,
            busy: [Span::ZERO; 3],
        }
    }
}

impl<A> Cpu<A> {
    /// Puts steps, first one first, before all other work of a level.
    pub fn next<I>(&mut self, level: Level, steps: I)
    where
        I: IntoIterator<Item = Step<A>>,
        I::IntoIter: DoubleEndedIterator,
    {
        for step in steps.into_iter().rev() {
            self.work[level as usize].push_front(step);
        }
    }

    /// Puts a step behind all other work of a level.
    pub fn later(&mut self, level: Level, step: Step<A>) {
        self.work[level as usize].push_back(step);
    }

    /// Whether a level has nothing to do.
    pub fn is_idle(&self, level: Level) -> bool {
        self.work[level as usize].is_empty()
            && self.current.as_ref().is_none_or(|current| current.0 != level)
            && self.stalled.is_none_or(|stalled| stalled.0 != level)
    }

    /// Whether it is in the middle of a step, or waits for the bus.
    pub fn is_busy(&self) -> bool {
        self.current.is_some() || self.stalled.is_some()
    }

    /// Begins the next step, if there is one; how long it takes.
    pub fn begin(&mut self) -> Option<Span> {
        let order: &[Level] = match self.is_masked {
            true => &[Level::Process],
            false => &[Level::Hard, Level::Soft, Level::Process],
        };
        for &level in order {
            if let Some(Step { time, act }) = self.work[level as usize].pop_front() {
                self.current = Some((level, act, time));
                return Some(time);
            }
        }
        None
    }

    /// The step is over; what happens now.
    pub fn end(&mut self) -> Option<(Level, A)> {
        let (level, act, time) = self.current.take()?;
        self.busy[level as usize] += time;
        Some((level, act))
    }

    /// The bus has answered: the level that waited goes on.
    pub fn resume(&mut self, now: Time) -> Option<Level> {
        let (level, since) = self.stalled.take()?;
        self.busy[level as usize] += now - since;
        Some(level)
    }
}
