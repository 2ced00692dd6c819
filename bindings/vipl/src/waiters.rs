//! The threads of a NIC: how many wait, and which one sleeps at the function's descriptor.

use crate::abi::Return;
use bellwire::Function;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// Which thread sleeps at the function's descriptor. One thread sleeps there for all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sleeper {
    Nobody,
    Program,
    Agent,
}

/// The waiting threads of a NIC.
pub struct Waiters {
    /// Threads of the program that wait.
    pub count: u32,
    /// Counts the program's calls, so that the agent sees whether the program is active.
    pub uses: u64,
    /// An event that a waiter may want has happened.
    pub news: bool,
    pub sleeper: Sleeper,
    /// The sleeper at the descriptor has been woken and is on its way.
    kicked: bool,
    /// The function's descriptor, duplicated so that it outlives a close during a sleep.
    wake: Arc<OwnedFd>,
    /// Ends the sleep at `wake`.
    kick: Arc<OwnedFd>,
}

impl Waiters {
    pub fn new(function: &Function) -> Result<Waiters, Return> {
        let wake = function.wait_fd().try_clone_to_owned().map_err(|_| Return::ErrorResource)?;
        let kick = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        let kick = kick.map_err(|_| Return::ErrorResource)?;
        let (wake, kick, sleeper) = (Arc::new(wake), Arc::new(kick), Sleeper::Nobody);
        Ok(Waiters { count: 0, uses: 0, news: false, sleeper, kicked: false, wake, kick })
    }

    /// Wakes the thread that sleeps at the function's descriptor before the function makes
    /// progress. Progress tells peers that we are awake, and then they would not wake the sleeper.
    pub fn disturb(&mut self) {
        if self.sleeper != Sleeper::Nobody && !self.kicked {
            self.kicked = true;
            // A full counter wakes as well.
            let _ = rustix::io::write(&self.kick, &1u64.to_ne_bytes());
        }
    }

    /// A thread sleeps at the descriptors, by calling what this returns without the lock. Then it
    /// looks, whatever ended the sleep.
    pub fn begin_sleep(&mut self, who: Sleeper) -> impl FnOnce(Duration) + use<> {
        self.sleeper = who;
        let (wake, kick) = (self.wake.clone(), self.kick.clone());
        move |limit| {
            let mut fds = [&wake, &kick].map(|fd| PollFd::new(&**fd, PollFlags::IN));
            let _ = poll(&mut fds, Timespec::try_from(limit).ok().as_ref());
        }
    }

    /// That thread is awake and has the lock again.
    pub fn end_sleep(&mut self) {
        (self.sleeper, self.kicked) = (Sleeper::Nobody, false);
        let _ = rustix::io::read(&self.kick, &mut [0u8; 8]);
    }
}
