//! When the next check of everything that is not a packet is due, and sleep until then.

use crate::epoll::{Epoll, Source};
use crate::watch::Watch;
use bellwire_device::Error;
use std::time::{Duration, Instant};

/// Time between two checks in normal operation.
const INTERVAL: Duration = Duration::from_millis(1);
/// Time between two checks while a link is set up or an answer is awaited.
const URGENT_INTERVAL: Duration = Duration::from_micros(20);
/// Polls between two readings of the clock while polls are frequent.
const STRIDE: u32 = 64;
/// Looks in vain after which the function leaves the looking to the watcher. A function that sleeps
/// often gets a message on its control sockets for each sleep, and the watcher would wake up, too.
const LOOKS_IN_VAIN: u32 = 8;

/// Spreads checks over time, without reading the clock at every poll.
pub struct Schedule {
    polls_left: u32,
    last_clock: Instant,
    last_check: Instant,
    /// Sleep was announced, and no check has withdrawn that.
    pub asleep: bool,
    /// The check after that sleep has been put off, once.
    put_off: bool,
    /// What ended the last sleep, until the next check handles it.
    events: Vec<Source>,
    /// None: the process may not have another thread, so each check looks at the descriptors.
    watch: Option<Watch>,
    /// Looks in vain since the last event.
    looks_in_vain: u32,
    /// Looks at the descriptors. Each is a system call.
    pub looks: u64,
}

impl Schedule {
    /// The first poll checks the descriptors in `epoll`.
    pub fn new(epoll: &Epoll) -> Self {
        let now = Instant::now();
        Schedule {
            polls_left: 0,
            last_clock: now,
            last_check: now,
            asleep: false,
            put_off: false,
            events: Vec::new(),
            watch: Watch::new(epoll).ok(),
            looks_in_vain: 0,
            looks: 0,
        }
    }

    /// Whether the watcher calls this function now.
    pub fn is_watched(&self) -> bool {
        self.watch.is_some() && self.looks_in_vain == LOOKS_IN_VAIN
    }

    /// Counts one poll. Returns whether to read the clock.
    #[inline(always)]
    pub fn is_due(&mut self) -> bool {
        self.polls_left = self.polls_left.wrapping_sub(1);
        self.polls_left > STRIDE
    }

    /// Whether the program called so rarely before the last check that each of its calls reads the
    /// clock.
    pub fn is_rare(&self) -> bool {
        self.polls_left < STRIDE
    }

    /// Makes the next poll check.
    pub fn hurry(&mut self) {
        self.polls_left = 0;
        self.last_check -= INTERVAL.min(self.last_check.elapsed() + INTERVAL);
    }

    /// Sleep was announced: the next check withdraws that.
    pub fn fall_asleep(&mut self) {
        self.asleep = true;
        self.put_off = false;
        self.hurry();
    }

    /// Sleeps until there is an event, or `timeout` has passed.
    pub fn sleep(&mut self, epoll: &Epoll, timeout: Option<Duration>) -> Result<(), Error> {
        self.events = match epoll.wait(timeout) {
            Ok(events) => events,
            Err(rustix::io::Errno::INTR) => Vec::new(),
            Err(error) => {
                return Err(Error::System { what: "wait for events", cause: error.into() });
            }
        };
        Ok(())
    }

    /// Reads the clock. Returns whether to check now. `urgent`: something is awaited. `taken`:
    /// packets that this poll has for the program.
    pub fn begin_check(&mut self, urgent: bool, taken: usize) -> bool {
        // The program gets the packet that woke us first.
        if self.asleep && taken > 0 && !std::mem::replace(&mut self.put_off, true) {
            return false;
        }
        let interval = match (self.asleep, urgent) {
            (true, _) => Duration::ZERO,
            (false, true) => URGENT_INTERVAL,
            (false, false) => INTERVAL,
        };
        let now = Instant::now();
        // If a program polls rarely, every poll reads the clock, so that deaths are still noticed
        // in time.
        let frequent = now - self.last_clock < Duration::from_micros(200);
        self.polls_left = if frequent { STRIDE } else { 1 };
        self.last_clock = now;
        let due = now - self.last_check >= interval;
        if due {
            self.last_check = now;
        }
        due
    }

    /// The events since the last check.
    pub fn take_events(&mut self, epoll: &Epoll) -> Vec<Source> {
        if !self.events.is_empty() {
            self.looks_in_vain = 0;
            return std::mem::take(&mut self.events);
        }
        if self.is_watched() && !self.watch.as_ref().is_some_and(Watch::is_called) {
            return Vec::new();
        }
        self.looks += 1;
        // On failure there are none.
        let events = epoll.wait(Some(Duration::ZERO)).unwrap_or_default();
        if !events.is_empty() {
            self.looks_in_vain = 0;
            return events;
        }
        self.looks_in_vain = LOOKS_IN_VAIN.min(self.looks_in_vain + 1);
        if self.is_watched()
            && let Some(watch) = &self.watch
        {
            watch.arm(epoll);
        }
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    fn schedule() -> (Schedule, Epoll) {
        let epoll = Epoll::new().expect("a descriptor");
        (Schedule::new(&epoll), epoll)
    }

    fn passes(time: Duration) {
        let since = Instant::now();
        while since.elapsed() < time {
            std::thread::sleep(time);
        }
    }

    /// The first poll checks. While polls are frequent, one in 65 reads the clock; while they are
    /// rare, every other one.
    #[test]
    fn the_clock_is_read_now_and_then() {
        let (mut schedule, _epoll) = schedule();
        assert!(schedule.is_due());
        schedule.polls_left = STRIDE;
        let polls = (1..1000).find(|_| schedule.is_due()).expect("in time");
        assert_eq!(polls, STRIDE + 1);
        schedule.last_clock = Instant::now() - Duration::from_secs(1);
        schedule.begin_check(false, 0);
        assert_eq!((schedule.polls_left, schedule.is_rare()), (1, true));
        // A clock that runs ahead makes the next reading a frequent one, whatever the machine does.
        schedule.last_clock = Instant::now() + Duration::from_secs(60);
        schedule.begin_check(false, 0);
        assert_eq!((schedule.polls_left, schedule.is_rare()), (STRIDE, false));
    }

    /// A check is due after its interval: a long one, a short one if something is awaited, and none
    /// if the function slept or is in a hurry.
    #[test]
    fn checks_have_intervals() {
        let (mut schedule, _epoll) = schedule();
        let ahead = Instant::now() + Duration::from_secs(60);
        schedule.last_check = ahead;
        assert!(!schedule.begin_check(false, 0) && !schedule.begin_check(true, 0));
        assert_eq!(schedule.last_check, ahead, "no check was made");
        schedule.last_check = Instant::now();
        passes(INTERVAL);
        let before = schedule.last_check;
        assert!(schedule.begin_check(false, 0));
        assert!(schedule.last_check > before);
        passes(URGENT_INTERVAL);
        assert!(schedule.begin_check(true, 0));
        schedule.hurry();
        assert!(schedule.begin_check(false, 5), "it is in a hurry");
        assert!(schedule.last_check.elapsed() < Duration::from_secs(60));
        schedule.polls_left = 7;
        schedule.hurry();
        schedule.hurry();
        assert_eq!(schedule.polls_left, 0);
        assert!(schedule.last_check.elapsed() >= INTERVAL);
    }

    /// What woke a sleeper is served before the check, once.
    #[test]
    fn a_check_after_sleep_is_put_off_once() {
        let (mut schedule, _epoll) = schedule();
        for _ in 0..2 {
            schedule.fall_asleep();
            assert!(schedule.asleep && schedule.is_due());
            assert!(!schedule.begin_check(false, 1), "the packet comes first");
            assert!(schedule.begin_check(false, 1));
        }
        schedule.fall_asleep();
        assert!(schedule.begin_check(false, 0), "no packet has come");
    }

    /// After eight looks in vain the watcher looks instead, until it calls.
    #[test]
    fn the_watcher_takes_over() {
        let (mut schedule, epoll) = schedule();
        let bell = eventfd(0, EventfdFlags::NONBLOCK).expect("a descriptor");
        epoll.watch(&bell, Source::Tick).expect("room");
        for looks in 1..=8 {
            assert!(!schedule.is_watched());
            assert_eq!((schedule.take_events(&epoll), schedule.looks), (vec![], looks));
        }
        assert!(schedule.is_watched());
        assert_eq!((schedule.take_events(&epoll), schedule.looks), (vec![], 8));
        rustix::io::write(&bell, &1u64.to_ne_bytes()).expect("room");
        let since = Instant::now();
        let events = loop {
            let events = schedule.take_events(&epoll);
            if !events.is_empty() {
                break events;
            }
            assert!(since.elapsed() < Duration::from_secs(8), "it is never called");
        };
        assert_eq!((events, schedule.is_watched()), (vec![Source::Tick], false));
        // What ended a sleep needs no look.
        let looks = schedule.looks;
        schedule.looks_in_vain = 5;
        schedule.sleep(&epoll, Some(Duration::from_secs(8))).expect("a sleep");
        assert_eq!(schedule.take_events(&epoll), [Source::Tick]);
        assert_eq!((schedule.looks, schedule.looks_in_vain), (looks, 0));
        rustix::io::read(&bell, &mut [0; 8]).expect("it was rung");
        schedule.sleep(&epoll, Some(Duration::from_millis(1))).expect("a sleep");
        assert_eq!((schedule.take_events(&epoll), schedule.looks), (vec![], looks + 1));
    }
}
