//! How many frames may be in flight to one peer. The window grows while the round trip stays near
//! its minimum. It shrinks by how far the round trip exceeds the target, and halves on loss, at
//! most once per round trip. After Swift (Kumar et al., SIGCOMM 2020, Sec. 3.1), with frames in
//! place of bytes and without its pacing below one frame.
//!
//! Senders that share a queue see the same delay, so a smaller window tolerates more of it (the
//! same paper, Sec. 3.5). At a delay between their targets, large windows shrink and small ones
//! grow until they are equal.

/// One frame, in the fixed-point unit of the window.
const ONE: u64 = 1 << 16;
/// First window, in frames.
const FIRST: u64 = 16;
/// Smallest window, in frames: two, so that a delayed acknowledgement does not stop the link.
const LEAST: u64 = 2;
/// Largest cut for delay alone, in 1/16: as on loss.
const LARGEST_CUT: u64 = 8;

pub(super) struct Congestion {
    /// `None`: fixed window.
    target_ns: Option<u64>,
    window: u64,
    most: u64,
    slow_start: bool,
    cut_at_ns: u64,
}

impl Congestion {
    /// A window of at most `most` frames; fixed at `most` without a target.
    pub fn new(most: u16, target_ns: Option<u64>) -> Self {
        let most = most as u64 * ONE;
        let window = if target_ns.is_some() { most.min(FIRST * ONE) } else { most };
        Congestion { target_ns, window, most, slow_start: true, cut_at_ns: 0 }
    }

    /// The window, in frames.
    #[inline]
    pub fn frames(&self) -> u32 {
        (self.window / ONE) as u32
    }

    /// `count` frames were acknowledged, the last one after `round_trip_ns`; `minimum_ns` is the
    /// smallest round trip. `limited`: the window was used up.
    #[inline]
    pub fn acknowledged(
        &mut self,
        count: u32,
        round_trip_ns: u64,
        minimum_ns: u64,
        limited: bool,
        now_ns: u64,
    ) {
        let Some(target_ns) = self.target_ns else { return };
        // The whole target up to 16 frames; less than half of it for 256.
        let root = u64::from(self.frames().isqrt()).max(4);
        let target = (target_ns / 4 + target_ns / root * 3).saturating_add(minimum_ns);
        if round_trip_ns <= target {
            // A window that was not used up gives no evidence for a larger one (RFC 7661).
            if limited {
                let step = if self.slow_start {
                    count as u64 * ONE
                } else {
                    count as u64 * ONE * ONE / self.window
                };
                self.window = (self.window + step).min(self.most);
            }
        } else if now_ns.saturating_sub(self.cut_at_ns) >= round_trip_ns {
            let excess = (round_trip_ns - target) * 13 / round_trip_ns;
            self.cut(16 - excess.clamp(1, LARGEST_CUT), now_ns);
        }
    }

    /// A frame sent at `sent_at_ns` was lost. Losses of one round trip count once.
    pub fn lost(&mut self, sent_at_ns: u64, now_ns: u64) {
        if self.target_ns.is_some() && sent_at_ns >= self.cut_at_ns {
            self.cut(8, now_ns);
        }
    }

    /// A timeout: the smallest window, and slow start again.
    pub fn timed_out(&mut self, now_ns: u64) {
        if self.target_ns.is_some() {
            self.cut(8, now_ns);
            self.window = (LEAST * ONE).min(self.most);
            self.slow_start = true;
        }
    }

    fn cut(&mut self, sixteenths: u64, now_ns: u64) {
        self.window =
            (self.window * sixteenths / 16).clamp((LEAST * ONE).min(self.most), self.most);
        self.slow_start = false;
        self.cut_at_ns = now_ns.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::Congestion;

    const TARGET_NS: u64 = 1_000_000;

    fn after(mut it: Congestion, round_trip_ns: u64) -> u32 {
        it.acknowledged(1, round_trip_ns, 100, false, 1 << 40);
        it.frames()
    }

    /// The window begins at 16 frames and grows by each acknowledged frame, then by one frame per
    /// window. It does so only while it is used up, and up to its limit. Without a target it never
    /// changes.
    #[test]
    fn the_window_grows_while_it_is_used_up() {
        let mut it = Congestion::new(40, Some(TARGET_NS));
        assert_eq!(it.frames(), 16);
        it.acknowledged(4, 100, 100, true, 1);
        assert_eq!(it.frames(), 20);
        it.acknowledged(4, 100, 100, false, 2);
        assert_eq!(it.frames(), 20);
        it.lost(3, 10);
        assert_eq!(it.frames(), 10, "half");
        it.lost(9, 11);
        assert_eq!(it.frames(), 10, "it was sent before the last cut");
        it.acknowledged(10, 100, 100, true, 12);
        assert_eq!(it.frames(), 11);
        it.lost(10, 20);
        assert_eq!(it.frames(), 5);
        it.timed_out(30);
        assert_eq!(it.frames(), 2);
        it.acknowledged(2, 100, 100, true, 40);
        assert_eq!(it.frames(), 4, "slow start");
        it.acknowledged(100, 100, 100, true, 50);
        assert_eq!(it.frames(), 40);

        let mut fixed = Congestion::new(8, None);
        fixed.lost(1, 2);
        fixed.timed_out(3);
        fixed.acknowledged(1, 1 << 40, 100, true, 1 << 50);
        assert_eq!(fixed.frames(), 8);
    }

    /// Above the target, the window shrinks by the excess: by at least a sixteenth and at most a
    /// half, once per round trip, and never below two frames or its limit.
    #[test]
    fn the_window_shrinks_by_the_excess() {
        let window = || Congestion::new(16, Some(TARGET_NS));
        assert_eq!(after(window(), 1_000_100), 16, "the target and the smallest round trip");
        assert_eq!(after(window(), 1_000_101), 15);
        assert_eq!(after(window(), 2_000_200), 10);
        assert_eq!(after(window(), 10_000_000), 8);

        let mut it = window();
        it.acknowledged(1, 10_000_000, 100, false, 50_000_000);
        it.acknowledged(1, 10_000_000, 100, false, 59_999_999);
        assert_eq!(it.frames(), 8);
        it.acknowledged(1, 10_000_000, 100, false, 60_000_000);
        assert_eq!(it.frames(), 4);
        it.acknowledged(1, 10_000_000, 100, false, 90_000_000);
        it.acknowledged(1, 10_000_000, 100, false, 120_000_000);
        assert_eq!(it.frames(), 2);

        for most in [1, 2] {
            let mut narrow = Congestion::new(most, Some(TARGET_NS));
            narrow.lost(1, 2);
            assert_eq!(narrow.frames(), u32::from(most));
            narrow.timed_out(3);
            assert_eq!(narrow.frames(), u32::from(most));
        }
    }

    /// A large window tolerates less delay than a small one: 256 frames less than half.
    #[test]
    fn large_windows_shrink_first() {
        let large = || {
            let mut it = Congestion::new(400, Some(TARGET_NS));
            it.acknowledged(240, 100, 100, true, 1);
            assert_eq!(it.frames(), 256);
            it
        };
        assert_eq!(after(large(), 437_600), 256);
        assert_eq!(after(large(), 437_601), 240);
    }
}
