//! Sleeping in the kernel, and being woken.
//!
//! Before sleep every lane is parked, so that whoever sends must ring; the ringer that finds the sleeper announced wakes it by a
//! message on the control socket, which the sleeper's epoll descriptor sees.

use crate::link::State;
use crate::transport::ShmTransport;
use bellwire_device::Error;
use bellwire_ring::steps::step;
use rustix::event::epoll;
use std::time::{Duration, Instant};

impl ShmTransport {
    /// Parks all lanes and announces sleep. `false`: there is something to do.
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
        self.tidy();
        step("asleep");
        self.armed = true;
        self.pace.hurry();
        true
    }

    /// Tells receivers that had no room for us that we are about to sleep. `true`: somebody was told now, so what was refused must
    /// be tried once more before we may sleep.
    fn announce_waiting(&mut self) -> bool {
        let mut told = false;
        for link in self.links.iter_mut().flatten() {
            let again = link.refused.replace(false);
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
        // Nobody rings while a peer does not exist yet; it must be looked for.
        let nap = setting_up.then(|| Duration::from_millis(2));
        let left = deadline.map(|d| d.saturating_duration_since(Instant::now()));
        let timeout = match (left, nap) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let timeout = timeout.map(|t| rustix::time::Timespec {
            tv_sec: t.as_secs() as i64,
            tv_nsec: t.subsec_nanos() as i64,
        });
        let mut events = Vec::with_capacity(1);
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(Error::System { what: "wait for events", source: error.into() }),
        }
    }
}
