//! The transport's clock.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub(crate) struct Clock {
    start: Instant,
}

impl Clock {
    pub fn new() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Nanoseconds since it was made, plus one, as 0 means "at once".
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64 + 1
    }

    /// A number that is greater in each later life of the same address: the time of day in ns.
    pub fn incarnation(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        (since.as_nanos() as u64).max(1)
    }
}
