//! The processor of a node. It executes one step after another; the effect of a step happens at its
//! end. Hard interrupts go first, then soft interrupts, then the process. An interrupt waits for
//! the end of the current step. While the process has interrupts off, only the process runs.
//!
//! The paper's nodes have two processors. Here one of them does all measured work. The paper does
//! not say how interrupts are kept from the other while they are off on one.

use std::collections::VecDeque;

use crate::units::{Span, Time};

/// The level of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A hard interrupt.
    Hard,
    /// A soft interrupt.
    Soft,
    /// The process, in the kernel or in user mode.
    Process,
}

/// A time, and an action at its end.
#[derive(Clone, Debug)]
pub struct Step<A> {
    /// Its time.
    pub time: Span,
    /// The action at its end.
    pub act: A,
}

/// A processor with its work.
pub struct Cpu<A> {
    work: [VecDeque<Step<A>>; 3],
    current: Option<(Level, A, Span)>,
    /// Whether interrupts are off.
    pub is_masked: bool,
    /// The level that waits for the bus, and since when.
    pub stalled: Option<(Level, Time)>,
    /// Time spent, by level.
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
    /// Puts steps, in order, before all other work of a level.
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

    /// Whether no step of a level waits.
    pub fn is_idle(&self, level: Level) -> bool {
        self.work[level as usize].is_empty()
    }

    /// Whether it executes a step or waits for the bus.
    pub fn is_busy(&self) -> bool {
        self.current.is_some() || self.stalled.is_some()
    }

    /// Begins the next step, if there is one, and returns its time.
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

    /// Ends the step and returns its action.
    pub fn end(&mut self) -> Option<(Level, A)> {
        let (level, act, time) = self.current.take()?;
        self.busy[level as usize] += time;
        Some((level, act))
    }

    /// The bus has answered: the level that waited continues.
    pub fn resume(&mut self, now: Time) -> Option<Level> {
        let (level, since) = self.stalled.take()?;
        self.busy[level as usize] += now - since;
        Some(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Work of a higher level goes first, and a level is idle when none of its steps waits.
    #[test]
    fn levels_go_in_their_order() {
        let mut cpu = Cpu::default();
        let levels = [Level::Process, Level::Soft, Level::Hard];
        for (number, level) in levels.into_iter().enumerate() {
            assert!(cpu.is_idle(level));
            cpu.later(level, Step { time: Span::from_ns(1), act: number });
            assert!(!cpu.is_idle(level));
        }
        for number in (0..3).rev() {
            assert_eq!(cpu.begin(), Some(Span::from_ns(1)));
            assert!(cpu.is_idle(levels[number]));
            assert_eq!(cpu.end(), Some((levels[number], number)));
        }
        assert_eq!(cpu.begin(), None);
    }
}
