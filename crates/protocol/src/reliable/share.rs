//! How much each of those who send at the same time may send: the receiver is the only one who sees them all, so it divides its credit
//! among them. Equal credit is equal speed, because the frames of all of them pass the same queue: whose credit is spent waits for its
//! frames to get through, as everybody does. It does not matter what delay a sender takes for that of an empty way, which the congestion
//! window depends on, and which one that never saw it empty cannot know.
//!
//! Together they have [`WHOLE`] times what one alone has, and each of them at least the longest packet, as no packet is begun without
//! credit for all of it. Who sends now and then counts as nobody: only frames behind which another one waits do.

use crate::canary::planted;

/// Those who send now together have the credit of so many that are alone.
const WHOLE: u32 = 2;
/// Who has sent in this time or the one before counts as sending, in ns.
const SPAN_NS: u64 = 20_000_000;

pub(super) struct Shares {
    /// Credit of one who is alone, and least credit.
    most: u32,
    least: u32,
    /// Number of the span that is now, and when it ends.
    span: u32,
    end_ns: u64,
    /// Links that sent in this span, and in the one before.
    now: u32,
    before: u32,
}

impl Shares {
    /// One who is alone has `most` credit, and nobody less than `least`.
    pub fn new(most: u32, least: u32) -> Self {
        Shares { most, least: least.min(most), span: 1, end_ns: 0, now: 0, before: 0 }
    }

    /// A link has sent something and has more; `span` is the one in which it last did.
    #[inline]
    pub fn sends(&mut self, span: &mut u32, now_ns: u64) {
        if now_ns >= self.end_ns {
            let is_next = now_ns < self.end_ns.saturating_add(SPAN_NS);
            self.before = if is_next { self.now } else { 0 };
            self.now = 0;
            self.span = self.span.wrapping_add(1);
            self.end_ns = now_ns.saturating_add(SPAN_NS);
        }
        if *span != self.span {
            *span = self.span;
            self.now += 1;
        }
    }

    /// The credit of each link now.
    #[inline]
    pub fn bytes(&self) -> u32 {
        let count = self.now.max(self.before);
        if count <= WHOLE || planted("reliable-undivided-credit") {
            self.most
        } else {
            (WHOLE * self.most / count).max(self.least)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Credit is divided among those who send at the same time, down to the longest packet, and is whole again two spans after the others
    /// have stopped; who sends often counts once.
    #[test]
    fn credit_is_divided_among_those_who_send() {
        let mut shares = Shares::new(1 << 19, 70_000);
        let mut spans = [0; 16];
        for count in 1..=16 {
            for _ in 0..3 {
                shares.sends(&mut spans[count - 1], 1);
            }
            let share = ((1 << 20) / count as u32).clamp(70_000, 1 << 19);
            assert!(share - shares.bytes() <= 1, "{count}: {} for {share}", shares.bytes());
        }
        shares.sends(&mut spans[3], 1 + SPAN_NS);
        assert_eq!(shares.bytes(), 70_000, "the span before still counts");
        shares.sends(&mut spans[3], 1 + 2 * SPAN_NS);
        assert_eq!(shares.bytes(), 1 << 19);
        shares.sends(&mut spans[4], 1 + 9 * SPAN_NS);
        assert_eq!(shares.bytes(), 1 << 19, "nobody sent in between");
    }
}
