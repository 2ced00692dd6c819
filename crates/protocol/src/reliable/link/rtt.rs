//! The measured round trip and the timeout that follows from it (RFC 6298, with nanoseconds for
//! seconds).

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
            self.smooth_ns + 4 * self.variation_ns
        };
        let [low, high] = self.bounds_ns;
        let base = base.max(low);
        // Doubling ends at the upper bound. A slower path still gets its full base timeout.
        (base << self.backoff.min(20)).min(high).max(base)
    }
}
