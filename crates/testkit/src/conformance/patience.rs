//! Watchdogs: a check that hangs fails, and says who waits for what.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long anything may take before it counts as a hang. It is generous, because machines are slow
/// at times and no test measures speed. `BELLWIRE_TEST_LIMIT_MS` changes it, for tests that are
/// started to fail.
pub fn limit() -> Duration {
    static LIMIT_MS: OnceLock<u64> = OnceLock::new();
    let chosen = || std::env::var(LIMIT).ok().and_then(|limit| limit.parse().ok());
    Duration::from_millis(*LIMIT_MS.get_or_init(|| chosen().unwrap_or(60_000)))
}

/// Names the limit in the environment.
pub const LIMIT: &str = "BELLWIRE_TEST_LIMIT_MS";

/// One wait, from its start.
#[derive(Debug)]
pub struct Patience {
    since: Instant,
    limit: Duration,
    turns: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self::new()
    }
}

impl Patience {
    /// Turns between two readings of the clock.
    const STRIDE: u32 = 64;

    /// Starts waiting, for [`limit`].
    pub fn new() -> Self {
        Self::of(limit())
    }

    /// Starts waiting, for `limit`.
    pub fn of(limit: Duration) -> Self {
        Patience { since: Instant::now(), limit, turns: 0 }
    }

    /// One more turn without success. Sometimes yields the processor; panics with `story` when
    /// patience has run out.
    #[track_caller]
    pub fn spend(&mut self, story: impl FnOnce() -> String) {
        self.turns = self.turns.wrapping_add(1);
        if self.turns.is_multiple_of(Self::STRIDE) {
            assert!(!self.is_over(), "nothing for {:?}: {}", self.limit, story());
            // A long wait sleeps, to leave the processor to others.
            match self.turns {
                ..20_000 => std::thread::yield_now(),
                _ => std::thread::sleep(Duration::from_micros(200)),
            }
        }
    }

    /// Whether the time is over.
    pub fn is_over(&self) -> bool {
        self.since.elapsed() > self.limit
    }
}
