//! When to probe peers that an endpoint waits for.

use std::time::{Duration, Instant};

/// How often to probe a peer while something waits for it.
const PROBE_INTERVAL: Duration = Duration::from_millis(250);
/// Idle polls between two readings of the clock.
const POLLS_PER_CLOCK: u32 = 1024;

/// The periodic work of an endpoint.
pub(crate) struct Presence {
    idle_polls: u32,
    probed: Instant,
}

impl Presence {
    pub(crate) fn new() -> Presence {
        Presence { idle_polls: 0, probed: Instant::now() }
    }

    /// A poll found nothing to do. Returns whether the periodic work may be due.
    #[inline]
    pub(crate) fn count_idle_poll(&mut self) -> bool {
        self.idle_polls = self.idle_polls.wrapping_add(1);
        self.idle_polls.is_multiple_of(POLLS_PER_CLOCK)
    }

    /// The periodic work is due at the next idle poll.
    pub(crate) fn expedite(&mut self) {
        self.idle_polls = u32::MAX;
    }

    /// Whether to probe peers now: not if that was done recently.
    pub(crate) fn is_probe_due(&mut self) -> bool {
        let now = Instant::now();
        let due = now.duration_since(self.probed) >= PROBE_INTERVAL;
        if due {
            self.probed = now;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The work is due after 1,024 idle polls, or at once if that is asked for. A probe is due a
    /// quarter of a second after the last one.
    #[test]
    fn work_is_due_now_and_then() {
        let mut presence = Presence::new();
        assert_eq!((1..=5000).find(|_| presence.count_idle_poll()), Some(1024));
        assert_eq!((1..=5000).find(|_| presence.count_idle_poll()), Some(1024));
        assert!(!presence.count_idle_poll());
        presence.expedite();
        assert!(presence.count_idle_poll() && !presence.count_idle_poll());
        presence.probed = Instant::now();
        assert!(!presence.is_probe_due());
        presence.probed -= PROBE_INTERVAL;
        assert!(presence.is_probe_due() && !presence.is_probe_due());
    }
}
