//! The measured round trip and the timeout that follows from it (RFC 6298, with nanoseconds for
//! seconds; G of its section 2 is the round trip, as an acknowledgement may wait so long).

/// Age at which a recent minimum replaces an old one, in ns: the path may have changed.
const MINIMUM_AGE_NS: u64 = 10_000_000_000;

#[derive(Clone, Copy)]
pub(super) struct RoundTrip {
    /// Smoothed round trip; 0: none measured yet.
    pub smooth_ns: u64,
    variation_ns: u64,
    /// Smallest recent round trip; `u64::MAX`: none measured yet.
    pub minimum_ns: u64,
    recent_minimum_ns: u64,
    minimum_since_ns: u64,
    bounds_ns: [u64; 2],
    first_ns: u64,
    /// Timeouts since the last progress: each doubles the next (RFC 6298, 5.5).
    pub backoff: u32,
}

impl RoundTrip {
    pub fn new(bounds_ns: [u64; 2], first_ns: u64) -> Self {
        RoundTrip {
            smooth_ns: 0,
            variation_ns: 0,
            minimum_ns: u64::MAX,
            recent_minimum_ns: u64::MAX,
            minimum_since_ns: 0,
            bounds_ns,
            first_ns,
            backoff: 0,
        }
    }

    /// Takes in one measurement of a frame that was transmitted once (Karn).
    #[inline]
    pub fn sample(&mut self, round_trip_ns: u64, now_ns: u64) {
        let sample = round_trip_ns.max(1);
        if self.smooth_ns == 0 {
            self.smooth_ns = sample;
            self.variation_ns = sample / 2;
        } else {
            let deviation = self.smooth_ns.abs_diff(sample);
            self.variation_ns = self.variation_ns - self.variation_ns / 4 + deviation / 4;
            self.smooth_ns = (self.smooth_ns - self.smooth_ns / 8 + sample / 8).max(1);
        }
        self.recent_minimum_ns = self.recent_minimum_ns.min(sample);
        self.minimum_ns = self.minimum_ns.min(sample);
        if now_ns.saturating_sub(self.minimum_since_ns) > MINIMUM_AGE_NS {
            self.minimum_ns = self.recent_minimum_ns;
            self.recent_minimum_ns = sample;
            self.minimum_since_ns = now_ns;
        }
    }

    /// The timeout without doubling: an acknowledgement takes at most this long unless something is
    /// lost.
    pub fn patience_ns(&self) -> u64 {
        RoundTrip { backoff: 0, ..*self }.timeout_ns()
    }

    /// The current timeout of an acknowledgement.
    #[inline]
    pub fn timeout_ns(&self) -> u64 {
        let base = if self.smooth_ns == 0 {
            self.first_ns
        } else {
            // The peer may hold its acknowledgement back for a round trip.
            self.smooth_ns + (4 * self.variation_ns).max(self.smooth_ns)
        };
        let [low, high] = self.bounds_ns;
        let base = base.max(low);
        // Doubling ends at the upper bound. A slower path still gets its full base timeout.
        (base << self.backoff.min(20)).min(high).max(base)
    }
}

#[cfg(test)]
mod tests {
    use super::{MINIMUM_AGE_NS, RoundTrip};

    /// The first sample sets the mean, and half of it as variation. Later ones move the mean by an
    /// eighth and the variation by a quarter (RFC 6298, 2.2 and 2.3). Each timeout doubles the next
    /// one, up to the upper bound.
    #[test]
    fn the_timeout_follows_the_samples() {
        let mut it = RoundTrip::new([1_000, 1_000_000], 20_000);
        assert_eq!(it.timeout_ns(), 20_000, "nothing is measured yet");
        it.sample(8_000, 1);
        assert_eq!((it.smooth_ns, it.minimum_ns, it.timeout_ns()), (8_000, 8_000, 24_000));
        it.sample(16_000, 2);
        assert_eq!((it.smooth_ns, it.minimum_ns, it.timeout_ns()), (9_000, 8_000, 29_000));
        it.sample(1_000, 3);
        assert_eq!((it.smooth_ns, it.minimum_ns, it.timeout_ns()), (8_000, 1_000, 31_000));
        for (backoff, timeout_ns) in [(1, 62_000), (3, 248_000), (6, 1_000_000), (70, 1_000_000)] {
            it.backoff = backoff;
            assert_eq!((it.timeout_ns(), it.patience_ns()), (timeout_ns, 31_000));
        }
    }

    /// The lower bound holds for a fast path. A path slower than the upper bound gets its full
    /// timeout, however often it was doubled. A round trip of 0 counts as measured.
    #[test]
    fn the_timeout_has_bounds() {
        let mut fast = RoundTrip::new([50_000, 100_000], 20_000);
        assert_eq!(fast.timeout_ns(), 50_000);
        fast.sample(0, 1);
        assert_eq!((fast.smooth_ns, fast.minimum_ns, fast.timeout_ns()), (1, 1, 50_000));
        let mut slow = RoundTrip::new([50_000, 100_000], 20_000);
        slow.sample(1_000_000, 1);
        assert_eq!(slow.timeout_ns(), 3_000_000);
        slow.backoff = 2;
        assert_eq!(slow.timeout_ns(), 3_000_000);
    }

    /// The timeout of a steady path leaves a round trip for an acknowledgement that waits.
    #[test]
    fn a_steady_path_has_two_round_trips() {
        let mut it = RoundTrip::new([1_000, 1 << 40], 20_000);
        (0..200).for_each(|at| it.sample(8_000, at));
        assert_eq!((it.variation_ns < 10, it.timeout_ns()), (true, 16_000));
    }

    /// A minimum that is older than ten seconds gives way to the smallest sample since then.
    #[test]
    fn an_old_minimum_is_forgotten() {
        let mut it = RoundTrip::new([1, 1 << 40], 1);
        let minimum = |it: &mut RoundTrip, sample_ns, now_ns| {
            it.sample(sample_ns, now_ns);
            it.minimum_ns
        };
        assert_eq!(minimum(&mut it, 1_000, 1), 1_000);
        assert_eq!(minimum(&mut it, 5_000, MINIMUM_AGE_NS), 1_000);
        assert_eq!(minimum(&mut it, 7_000, MINIMUM_AGE_NS + 1), 1_000, "it was recent");
        assert_eq!(minimum(&mut it, 6_000, 2 * MINIMUM_AGE_NS + 1), 1_000);
        assert_eq!(minimum(&mut it, 9_000, 2 * MINIMUM_AGE_NS + 2), 6_000);
        assert_eq!(minimum(&mut it, 8_000, 2 * MINIMUM_AGE_NS + 3), 6_000);
    }
}
