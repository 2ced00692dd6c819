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
