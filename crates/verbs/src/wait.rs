//! Waiting for completions.

use std::time::{Duration, Instant};

/// How long [`Wait::Adaptive`] spins before it sleeps.
pub const ADAPTIVE_SPIN: Duration = Duration::from_micros(50);

/// How to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Wait {
    /// Polls until something comes: lowest latency, uses one whole processor.
    Spin,
    /// Spins for [`ADAPTIVE_SPIN`], then sleeps as [`Wait::Block`].
    #[default]
    Adaptive,
    /// Sleeps in the kernel until something comes: near zero processor time.
    Block,
}

/// The next action after an empty poll.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Poll again.
    Poll,
    /// Sleep, at most for this time.
    Sleep(Duration),
    /// The deadline has passed. The time waited, in milliseconds.
    GiveUp(u64),
}

/// Polls between two reads of the clock. A read costs as much as several polls.
const POLLS_PER_CLOCK_READ: u32 = 32;

/// One wait, from its first empty poll.
pub(crate) struct Patience {
    how: Wait,
    timeout: Duration,
    started: Option<Instant>,
    polls: u32,
}

impl Patience {
    pub(crate) fn new(how: Wait, timeout: Duration) -> Self {
        Patience { how, timeout, started: None, polls: 0 }
    }

    /// The next action after an empty poll. `busy`: progress was made, so another poll may find
    /// more. `clock` is the device's.
    #[inline]
    pub(crate) fn after_empty_poll(&mut self, busy: bool, clock: impl Fn() -> Instant) -> Next {
        self.polls = self.polls.wrapping_add(1);
        let sleeps = self.how == Wait::Block && !busy;
        if !sleeps && !self.polls.is_multiple_of(POLLS_PER_CLOCK_READ) && self.started.is_some() {
            std::hint::spin_loop();
            return Next::Poll;
        }
        let now = clock();
        let waited = now - *self.started.get_or_insert(now);
        if waited >= self.timeout {
            return Next::GiveUp(waited.as_millis() as u64);
        }
        let left = self.timeout - waited;
        match self.how {
            _ if busy => Next::Poll,
            Wait::Block => Next::Sleep(left),
            Wait::Adaptive if waited >= ADAPTIVE_SPIN => Next::Sleep(left),
            Wait::Adaptive | Wait::Spin => {
                std::hint::spin_loop();
                Next::Poll
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// A clock that the test sets, and counts the looks at.
    struct Clock {
        start: Instant,
        passed: Cell<Duration>,
        looks: Cell<u32>,
    }

    impl Clock {
        fn new() -> Clock {
            Clock { start: Instant::now(), passed: Cell::default(), looks: Cell::default() }
        }

        fn now(&self) -> Instant {
            self.looks.set(self.looks.get() + 1);
            self.start + self.passed.get()
        }

        /// What `patience` does at an empty poll at `passed`, with a fresh look at the clock.
        fn at(&self, patience: &mut Patience, busy: bool, passed: Duration) -> Next {
            self.passed.set(passed);
            let looks = self.looks.get();
            loop {
                let next = patience.after_empty_poll(busy, || self.now());
                if self.looks.get() > looks {
                    return next;
                }
                assert_eq!(next, Next::Poll, "the clock says when something else is to do");
            }
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    /// `Block` sleeps at each empty poll, for what is left of its time, unless there was something
    /// to do.
    #[test]
    fn block_sleeps_at_once() {
        let (clock, mut block) = (Clock::new(), Patience::new(Wait::Block, 10 * SECOND));
        let mut sleep = |busy| block.after_empty_poll(busy, || clock.now());
        assert_eq!(sleep(false), Next::Sleep(10 * SECOND));
        clock.passed.set(3 * SECOND);
        assert_eq!(sleep(false), Next::Sleep(7 * SECOND));
        assert_eq!(sleep(true), Next::Poll);
        assert_eq!(clock.at(&mut block, true, 4 * SECOND), Next::Poll);
        assert_eq!(clock.at(&mut block, true, 10 * SECOND), Next::GiveUp(10_000));
    }

    /// `Spin` never sleeps. It looks at the clock at its first empty poll and at each 32nd.
    #[test]
    fn spin_polls_and_seldom_looks_at_the_clock() {
        let (clock, mut spin) = (Clock::new(), Patience::new(Wait::Spin, 10 * SECOND));
        for _ in 0..320 {
            assert_eq!(spin.after_empty_poll(false, || clock.now()), Next::Poll);
        }
        assert_eq!(clock.looks.get(), 11);
        assert_eq!(clock.at(&mut spin, false, 9 * SECOND), Next::Poll);
    }

    /// `Adaptive` spins for its stated time, then sleeps for what is left.
    #[test]
    fn adaptive_sleeps_after_its_stated_time() {
        let (clock, mut adaptive) = (Clock::new(), Patience::new(Wait::Adaptive, SECOND));
        let almost = ADAPTIVE_SPIN - Duration::from_nanos(1);
        for passed in [Duration::ZERO, almost] {
            assert_eq!(clock.at(&mut adaptive, false, passed), Next::Poll);
        }
        let left = SECOND - ADAPTIVE_SPIN;
        assert_eq!(clock.at(&mut adaptive, true, ADAPTIVE_SPIN), Next::Poll, "it is busy");
        assert_eq!(clock.at(&mut adaptive, false, ADAPTIVE_SPIN), Next::Sleep(left));
    }

    #[test]
    fn every_way_gives_up_at_the_deadline() {
        for how in [Wait::Spin, Wait::Adaptive, Wait::Block] {
            let (clock, mut patience) = (Clock::new(), Patience::new(how, 2 * SECOND));
            let almost = 2 * SECOND - Duration::from_nanos(1);
            clock.at(&mut patience, false, Duration::ZERO);
            assert!(!matches!(clock.at(&mut patience, false, almost), Next::GiveUp(_)));
            assert_eq!(clock.at(&mut patience, false, 2 * SECOND), Next::GiveUp(2_000));
        }
    }
}
