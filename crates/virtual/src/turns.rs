//! The order of turns. Each thread that drives functions is a program with its own clock. The
//! program with the smallest clock has the turn; if clocks are equal, the one with the smaller
//! function address. So all actions on the machine happen in the order of virtual time.

use crate::thread::{Absence, own_number};
use bellwire_device::FunctionAddress;
use bellwire_model::units::Time;
use std::sync::{Arc, Condvar};
use std::thread::ThreadId;

/// A thread that uses the machine.
pub(crate) struct Program {
    thread: ThreadId,
    number: i32,
    /// Time up to which its processor has worked.
    pub(crate) clock: Time,
    /// The function that it used last.
    pub(crate) used: FunctionAddress,
    pub(crate) doing: Doing,
    /// Functions that it drives. No program waits for a thread without functions.
    pub(crate) functions: usize,
    /// Whether it has made a call that takes time.
    pub(crate) has_begun: bool,
    /// Its current series of empty polls.
    pub(crate) empty_polls: EmptyPolls,
    /// Notified when it may have its turn.
    pub(crate) bell: Arc<Condvar>,
    absence: Absence,
}

/// The activity of a program, as far as others depend on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Doing {
    /// It is between two calls, and its next call may come at any time: others wait for it.
    Computes,
    /// It is in a call that waits for its turn.
    Asks,
    /// It is in a call that sleeps, at most until this time.
    Sleeps(Time),
    /// It is between two calls and no other waits for it: it has armed a function, or it sleeps
    /// outside of the device.
    Away,
}

/// A series of empty polls, of any functions.
#[derive(Clone, Copy, Default)]
pub(crate) struct EmptyPolls {
    /// Distinguishes it from earlier series of the program.
    pub(crate) number: u64,
    pub(crate) count: u32,
}

impl EmptyPolls {
    /// Ends the series: a poll has found something.
    pub(crate) fn end(&mut self) {
        if self.count > 0 {
            *self = EmptyPolls { number: self.number + 1, ..EmptyPolls::default() };
        }
    }
}

/// All programs of one world.
#[derive(Default)]
pub(crate) struct Turns {
    programs: Vec<Program>,
}

impl Turns {
    /// The index of the calling thread's program. A new one begins at `now`.
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
            empty_polls: EmptyPolls { number: 1, ..EmptyPolls::default() },
            bell: Arc::new(Condvar::new()),
            absence: Absence::default(),
        };
        // Threads come and go: reuse the place of one that drives no function and is in no call.
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

    /// The number of programs that have made a call that takes time.
    pub(crate) fn begun(&self) -> usize {
        self.programs.iter().filter(|program| program.has_begun).count()
    }

    /// Whether a program that drives functions is away.
    pub(crate) fn somebody_is_away(&self) -> bool {
        self.programs.iter().any(|program| program.functions > 0 && program.doing == Doing::Away)
    }

    /// The program that has the next turn, if there is one to wait for.
    pub(crate) fn first(&self) -> Option<usize> {
        let key = |index: usize| self.programs[index].key().map(|key| (key, index));
        (0..self.programs.len()).filter_map(key).min().map(|(_, index)| index)
    }

    /// Notifies the program with the next turn, if it waits for its turn or sleeps.
    pub(crate) fn notify_first(&self) {
        if let Some(first) = self.first()
            && self[first].doing != Doing::Computes
        {
            self[first].bell.notify_one();
        }
    }

    /// Notifies all programs.
    pub(crate) fn notify_all(&self) {
        self.programs.iter().for_each(|program| program.bell.notify_one());
    }

    /// Checks the programs that compute. Marks those as away that sleep or compute for too long.
    /// `true`: there was one.
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
    /// Its place in the order; `None`: no program waits for it.
    fn key(&self) -> Option<(Time, FunctionAddress)> {
        let time = match self.doing {
            Doing::Computes if self.functions == 0 => return None,
            Doing::Computes | Doing::Asks => self.clock,
            Doing::Sleeps(until) => until,
            Doing::Away => return None,
        };
        Some((time, self.used))
    }

    /// Begins a call: earlier observations of its absence are void.
    pub(crate) fn came_in(&mut self, now: Time) {
        if self.doing == Doing::Away {
            self.clock = self.clock.max(now);
        }
        self.doing = Doing::Asks;
        self.absence = Absence::default();
    }
}
