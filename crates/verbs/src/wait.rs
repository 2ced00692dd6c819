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

    #[test]
    fn block_sleeps_at_once_and_spin_never() {
        let hour = Duration::from_secs(3600);
        assert!(matches!(
            Patience::new(Wait::Block, hour).after_empty_poll(false, Instant::now),
            Next::Sleep(_)
        ));
        assert_eq!(
            Patience::new(Wait::Block, hour).after_empty_poll(true, Instant::now),
            Next::Poll
        );
        let mut spin = Patience::new(Wait::Spin, hour);
        assert!((0..1000).all(|_| spin.after_empty_poll(false, Instant::now) == Next::Poll));
    }

    #[test]
    fn adaptive_sleeps_after_its_stated_time() {
        let mut adaptive = Patience::new(Wait::Adaptive, Duration::from_secs(3600));
        let started = Instant::now();
        while adaptive.after_empty_poll(false, Instant::now) == Next::Poll {}
        assert!(started.elapsed() >= ADAPTIVE_SPIN);
    }

    #[test]
    fn every_way_gives_up_at_the_deadline() {
        for how in [Wait::Spin, Wait::Adaptive, Wait::Block] {
            assert!(matches!(
                Patience::new(how, Duration::ZERO).after_empty_poll(false, Instant::now),
                Next::GiveUp(_)
            ));
        }
    }
}
