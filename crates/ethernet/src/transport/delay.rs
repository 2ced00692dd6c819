//! Answers that wait a moment for a packet of the program, and share its frame.
//!
//! A program whose memory a peer writes to often writes back at once: it watches its memory, as
//! `ib_write_lat` does. Its packet then takes the answer to the peer's write along. The peer polls
//! until that answer comes, and finds the write in the same look. So half as many frames travel,
//! and no thread has to be woken for a write that comes while nobody polls.
//!
//! If the program sends nothing, the answer leaves alone after some round trips, or when more
//! packets come. A program that seldom sends in time is not waited for: after some misses answers
//! leave at once, and one of many waits to see whether that has changed.

/// How long an answer waits, in round trips: a program takes longer than the network if the thread
/// took the write for it. Whoever waits for the answer in vain waits no more than so much longer.
const ROUND_TRIPS: u64 = 4;
/// The bounds of that, in ns. An emulated machine has round trips of hundreds of microseconds.
const BOUNDS_NS: [u64; 2] = [25_000, 1_000_000];
/// Misses after which answers leave at once.
const TRUST: u8 = 4;
/// Answers that leave at once until one waits again: after the first time, and at most.
const REST: [u32; 2] = [64, 4096];

pub(super) struct AnswerDelay {
    /// How long an answer waits at least and at most, in ns.
    bounds_ns: [u64; 2],
    /// Until when it waits; `u64::MAX`: none does.
    until_ns: u64,
    /// Misses until answers leave at once.
    trust: u8,
    /// Answers that leave at once from now on, and after the next miss without trust.
    rest: u32,
    next_rest: u32,
}

impl AnswerDelay {
    pub fn new() -> AnswerDelay {
        AnswerDelay::within(BOUNDS_NS)
    }

    /// Answers wait within these bounds, in ns. In tests they wait for ever.
    pub fn within(bounds_ns: [u64; 2]) -> AnswerDelay {
        AnswerDelay { bounds_ns, until_ns: u64::MAX, trust: TRUST, rest: 0, next_rest: REST[0] }
    }

    /// Whether frames wait.
    #[inline]
    pub fn is_on(&self, now_ns: u64) -> bool {
        self.until_ns != u64::MAX && now_ns < self.until_ns
    }

    /// Until when they do.
    pub fn until_ns(&self, now_ns: u64) -> Option<u64> {
        self.is_on(now_ns).then_some(self.until_ns)
    }

    /// An answer was queued to a peer with this round trip. Whether it waits; if one does already,
    /// it waits no longer than that.
    pub fn keeps(&mut self, round_trip_ns: u64, now_ns: u64) -> bool {
        if self.is_on(now_ns) {
            return true;
        }
        self.sent(now_ns);
        if self.rest > 0 {
            self.rest -= 1;
            return false;
        }
        let [least_ns, most_ns] = self.bounds_ns;
        let lasts_ns = round_trip_ns.saturating_mul(ROUND_TRIPS).clamp(least_ns, most_ns);
        self.until_ns = now_ns.saturating_add(lasts_ns).min(u64::MAX - 1);
        self.is_on(now_ns)
    }

    /// A packet of the program was queued: it takes along what waits.
    #[inline]
    pub fn joined(&mut self, now_ns: u64) {
        if self.until_ns == u64::MAX {
            return;
        }
        if self.is_on(now_ns) {
            self.until_ns = u64::MAX;
            self.trust = (self.trust + 1).min(TRUST);
            self.next_rest = REST[0];
        } else {
            self.sent(now_ns);
        }
    }

    /// All frames leave. It is a miss if the time is over, and tells nothing before.
    #[inline]
    pub fn sent(&mut self, now_ns: u64) {
        if self.until_ns != u64::MAX {
            if now_ns >= self.until_ns {
                self.miss();
            }
            self.until_ns = u64::MAX;
        }
    }

    #[cold]
    fn miss(&mut self) {
        self.trust -= 1;
        if self.trust == 0 {
            // One more miss is enough next time.
            self.trust = 1;
            self.rest = self.next_rest;
            self.next_rest = (self.next_rest * 4).min(REST[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DELAY_NS: u64 = BOUNDS_NS[0];

    /// A longer way has a longer wait, within bounds.
    #[test]
    fn the_wait_follows_the_round_trip() {
        for (round_trip_ns, lasts_ns) in [
            (0, 25_000),
            (6_000, 25_000),
            (7_000, 28_000),
            (250_000, 1_000_000),
            (u64::MAX, 1_000_000),
        ] {
            let mut delay = AnswerDelay::new();
            assert!(delay.keeps(round_trip_ns, 50));
            assert_eq!(delay.until_ns(51), Some(50 + lasts_ns), "{round_trip_ns}");
        }
    }

    /// An answer waits until a packet joins it, or its time is over. A later one waits no longer.
    #[test]
    fn an_answer_waits_for_a_packet() {
        let mut delay = AnswerDelay::new();
        assert!(!delay.is_on(0) && delay.until_ns(0).is_none());
        assert!(delay.keeps(0, 1000));
        assert!(delay.keeps(0, 1000 + DELAY_NS / 2));
        assert_eq!(delay.until_ns(1001), Some(1000 + DELAY_NS));
        assert!(delay.is_on(999 + DELAY_NS) && !delay.is_on(1000 + DELAY_NS));
        delay.joined(999 + DELAY_NS);
        assert!(!delay.is_on(1001));
        // Frames that leave for another reason end it, too.
        assert!(delay.keeps(0, 5000));
        delay.sent(5001);
        assert!(!delay.is_on(5001));
        assert_eq!((delay.trust, delay.rest), (TRUST, 0), "nothing was missed");
    }

    /// Answers to a program that never sends in time leave at once, except for one of many. Each of
    /// the three ways in which time is seen to be over is a miss.
    #[test]
    fn a_program_that_sends_nothing_is_not_waited_for() {
        let mut delay = AnswerDelay::new();
        let (mut now_ns, mut waits) = (1, Vec::new());
        for answer in 0..20_000u32 {
            if delay.keeps(0, now_ns) {
                waits.push(answer);
                now_ns += DELAY_NS;
                match waits.len() % 3 {
                    0 => delay.sent(now_ns),
                    1 => delay.joined(now_ns),
                    // The next answer finds it.
                    _ => {}
                }
            }
            now_ns += 1;
        }
        assert_eq!(waits, [0, 1, 2, 3, 68, 325, 1350, 5447, 9544, 13_641, 17_738]);
    }

    /// Once packets join answers again, all wait.
    #[test]
    fn trust_comes_back() {
        let mut delay = AnswerDelay::new();
        let mut now_ns = 1;
        for _ in 0..u32::from(TRUST) + REST[0] {
            if delay.keeps(0, now_ns) {
                now_ns += DELAY_NS;
                delay.sent(now_ns);
            }
        }
        for _ in 0..TRUST {
            assert!(delay.keeps(0, now_ns));
            delay.joined(now_ns + 1);
        }
        assert_eq!((delay.trust, delay.next_rest), (TRUST, REST[0]));
    }
}
