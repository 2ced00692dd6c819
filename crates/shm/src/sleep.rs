//! Sleeping in the kernel, and being woken.
//!
//! Before sleep every lane is parked, so that each sender must ring. A sender that finds the sleep
//! announced wakes the sleeper by a message on the control socket, which the sleeper's epoll
//! descriptor sees.
//!
//! Two processes that sleep between any two messages make two system calls for each: one wakes, one
//! sleeps. All other work waits until the program has its message and has answered it. So the
//! socket is read afterwards. The lanes stay parked while they deliver a few messages, because
//! parking a lane needs a barrier, which interrupts the sender.

use crate::check::{LINGER, find};
use crate::link::State;
use crate::transport::ShmTransport;
use bellwire_device::Error;
use bellwire_ring::steps::step;
use std::time::{Duration, Instant};

/// Bells that a parked lane is served for, between two sleeps, without being unparked.
const FAVOURS: u32 = 4;

impl ShmTransport {
    /// Parks all lanes and announces sleep. `false`: there is something to do first.
    pub(crate) fn prepare_sleep(&mut self) -> bool {
        if !self.downs.is_empty() {
            self.pace.hurry();
            return false;
        }
        if self.announce_waiting() {
            return false;
        }
        let lanes: Vec<u32> = self
            .active
            .iter()
            .copied()
            // A lane whose packet the engine cannot take now must not keep us awake.
            .filter(|&lane| self.links[lane as usize].as_ref().is_some_and(|link| !link.stalled))
            .collect();
        if self.park(&lanes) || !self.doorbell.prepare_sleep() {
            return false;
        }
        for lane in lanes {
            if let Some(link) = self.link_mut(lane) {
                link.favours = FAVOURS;
            }
        }
        step("asleep");
        self.armed = true;
        self.put_off = false;
        self.pace.hurry();
        true
    }

    /// Tells receivers that had no room for us that we are about to sleep. `true`: some were told
    /// now, so retry the refused packets once before sleep.
    fn announce_waiting(&mut self) -> bool {
        let mut told = false;
        for link in self.links.iter_mut().flatten() {
            let again = std::mem::take(&mut link.refused);
            let announced = link.announced;
            if let Some(up) = link.up()
                && again
                && !announced
            {
                up.sender.announce_waiting();
                link.announced = true;
                told = true;
            }
        }
        told
    }

    pub(crate) fn sleep_until_woken(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        if !self.prepare_sleep() {
            return Ok(());
        }
        let setting_up = self
            .links
            .iter()
            .flatten()
            .any(|link| matches!(link.state, State::Connecting { .. } | State::Crossed { .. }));
        // Neither a peer that does not exist yet nor pages to give back ring a bell: wake up for
        // them by time.
        let nap = match (setting_up, self.tidy(LINGER)) {
            (true, _) => Some(Duration::from_millis(2)),
            (false, true) => Some(LINGER),
            (false, false) => None,
        };
        let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        let timeout = match (left, nap) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.found.clear();
        match find(&self.epoll, timeout, &mut self.found) {
            Ok(()) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(Error::System { what: "wait for events", cause: error.into() }),
        }
    }
}
