//! Whose turn it is. Each thread that drives functions is a program with a clock of its own; whoever has the smallest clock goes on,
//! and the smaller function address if clocks are equal. So all that is done to the machine is done in the order of virtual time.

use crate::thread::{Absence, own_number};
use bellwire_device::FunctionAddress;
use bellwire_model::units::Time;
use std::sync::{Arc, Condvar};
use std::thread::ThreadId;

/// A thread that uses the machine.
pub(crate) struct Program {
    thread: ThreadId,
    number: i32,
    /// Until when its processor has worked.
    pub(crate) clock: Time,
    /// The function that it used last.
    pub(crate) used: FunctionAddress,
    pub(crate) doing: Doing,
    /// Functions that it drives. A thread without any is waited for by nobody.
    pub(crate) functions: usize,
    /// Whether it has made a call that takes time.
    pub(crate) has_begun: bool,
    /// Its looks that found nothing.
    pub(crate) vain: Vain,
    /// Rung when it may have its turn.
    pub(crate) bell: Arc<Condvar>,
    absence: Absence,
}

/// What a program does, as far as others have to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    /// It is between two calls, and its next one may come at any time: others wait for it.
    Computes,
    /// It is in a call that wants its turn.
    Asks,
    /// It is in a call that sleeps, until then at most.
    Sleeps(Time),
    /// It is between two calls, and nobody waits for it: it said so, or it is asleep outside of the device.
    Away,
}

/// A row of looks that found nothing, at any functions.
#[derive(Clone, Copy, Default)]
pub(crate) struct Vain {
    /// Tells it from earlier rows of the program.
    pub(crate) number: u64,
    pub(crate) looks: u32,
}

impl Vain {
    /// Something was found or done.
    pub(crate) fn end(&mut self) {
        if self.looks > 0 {
            *self = Vain { number: self.number + 1, ..Vain::default() };
        }
    }
}

/// All programs of one world.
#[derive(Default)]
pub(crate) struct Turns {
    programs: Vec<Program>,
}

impl Turns {
    /// The number of the calling thread; a new one begins `now`.
    pub(crate) fn caller(&mut self, now: Time) -> usize {
        let thread = std::thread::current().id();
        if let Some(known) = self.programs.iter().position(|program| program.thread == thread) {
            return known;
        }
        let program = Program {
            thread,
            number: own_number(),
            clock: now,
            used: FunctionAddress::default(),
            doing: Doing::Away,
            functions: 0,
            has_begun: false,
            vain: Vain { number: 1, ..Vain::default() },
            bell: Arc::new(Condvar::new()),
            absence: Absence::default(),
        };
        // Threads come and go: a place of one that drives nothing and is in no call is free.
        let free = |old: &Program| {
            old.functions == 0 && matches!(old.doing, Doing::Away | Doing::Computes)
        };
        match self.programs.iter().position(free) {
            Some(place) => {
                let has_begun = self.programs[place].has_begun;
                self.programs[place] = Program { has_begun, ..program };
                place
            }
            None => {
                self.programs.push(program);
                self.programs.len() - 1
            }
        }
    }

    /// How many programs have made a call that takes time.
    pub(crate) fn begun(&self) -> usize {
        self.programs.iter().filter(|program| program.has_begun).count()
    }

    /// Whether somebody who drives functions is not waited for.
    pub(crate) fn somebody_is_away(&self) -> bool {
        self.programs.iter().any(|program| program.functions > 0 && program.doing == Doing::Away)
    }

    /// Who comes first, if anybody is to be waited for.
    pub(crate) fn first(&self) -> Option<usize> {
        let key = |index: usize| self.programs[index].key().map(|key| (key, index));
        (0..self.programs.len()).filter_map(key).min().map(|(_, index)| index)
    }

    /// Rings the bell of who comes first, if that one asks for its turn or lets time run in its sleep.
    pub(crate) fn notify_first(&self) {
        if let Some(first) = self.first()
            && self[first].doing != Doing::Computes
        {
            self[first].bell.notify_one();
        }
    }

    /// Rings all bells.
    pub(crate) fn notify_all(&self) {
        self.programs.iter().for_each(|program| program.bell.notify_one());
    }

    /// Looks at the programs that compute, and does not wait for those any more that do so asleep. `true`: there was one.
    pub(crate) fn dismiss_absent(&mut self, caller: Option<usize>) -> bool {
        let mut found = false;
        for (index, program) in self.programs.iter_mut().enumerate() {
            let awaited = program.doing == Doing::Computes && program.functions > 0;
            if awaited && Some(index) != caller && program.absence.look(program.number) {
                program.doing = Doing::Away;
                found = true;
            }
        }
        found
    }
}

impl std::ops::Index<usize> for Turns {
    type Output = Program;

    fn index(&self, index: usize) -> &Program {
        &self.programs[index]
    }
}

impl std::ops::IndexMut<usize> for Turns {
    fn index_mut(&mut self, index: usize) -> &mut Program {
        &mut self.programs[index]
    }
}

impl Program {
    /// Its place in the order; `None`: nobody waits for it.
    fn key(&self) -> Option<(Time, FunctionAddress)> {
        let time = match self.doing {
            Doing::Computes if self.functions == 0 => return None,
            Doing::Computes | Doing::Asks => self.clock,
            Doing::Sleeps(until) => until,
            Doing::Away => return None,
        };
        Some((time, self.used))
    }

    /// It has called: whatever others thought of it is over.
    pub(crate) fn came_in(&mut self, now: Time) {
        if self.doing == Doing::Away {
            self.clock = self.clock.max(now);
        }
        self.doing = Doing::Asks;
        self.absence = Absence::default();
    }
}
