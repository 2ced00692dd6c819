//! How much each of several simultaneous senders may send. Only the receiver sees all senders, so
//! it divides its credit among them. Equal credit is equal speed, because all their frames pass the
//! same queue: a sender without credit waits for its frames to get through. The congestion window
//! cannot do this: it depends on the delay of an empty path. A sender that never saw the path empty
//! does not know that delay.
//!
//! Together they have [`WHOLE`] times the credit of a lone sender. Each has at least the longest
//! packet, because a packet is begun only with credit for all of it. An occasional sender does not
//! count: only frames with another frame waiting behind them do.

use crate::canary::planted;

/// Simultaneous senders together have the credit of this many lone senders.
const WHOLE: u32 = 2;
/// A link that sent in this span or the one before counts as sending, in ns.
const SPAN_NS: u64 = 20_000_000;

pub(super) struct Shares {
    /// Credit of a lone sender, and least credit.
    most: u32,
    least: u32,
    /// Number of the current span, and when it ends.
    span: u32,
    end_ns: u64,
    /// Links that sent in this span, and in the one before.
    now: u32,
    before: u32,
}

impl Shares {
    /// A lone sender has `most` credit, and no sender less than `least`.
    pub fn new(most: u32, least: u32) -> Self {
        Shares { most, least: least.min(most), span: 1, end_ns: 0, now: 0, before: 0 }
    }

    /// A link has sent something and has more to send; `span` is the span in which it last did so.
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

    /// Credit is divided among simultaneous senders, down to the longest packet. It is whole again
    /// two spans after the others have stopped, and a frequent sender counts once.
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

    /// A link that sent in a span still counts through the whole of the next one, and not after it.
    #[test]
    fn the_span_before_counts_to_its_end() {
        for (later_ns, count) in [(SPAN_NS - 1, 4), (SPAN_NS, 1)] {
            let mut shares = Shares::new(1 << 19, 100);
            let mut spans = [0; 4];
            spans.iter_mut().for_each(|span| shares.sends(span, 5));
            assert_eq!(shares.bytes(), 1 << 18);
            shares.sends(&mut spans[0], 5 + SPAN_NS + later_ns);
            assert_eq!(shares.bytes(), (1 << 20) / count.max(2), "{later_ns} ns later");
        }
        assert_eq!(Shares::new(100, 200).bytes(), 100);
    }
}
