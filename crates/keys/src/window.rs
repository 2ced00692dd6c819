//! Which frames of a session have come: each counts once.

use bellwire_protocol::canary::planted;

const WORDS: u64 = 32;

/// The frames that came, by their counters (RFC 6479). Late ones count if fewer than
/// [`Window::SPAN`] later frames have come.
#[derive(Clone)]
pub(crate) struct Window {
    /// One more than the largest counter that came.
    next: u64,
    /// A bit for each of the last [`Window::SPAN`] counters and those that share their words.
    words: [u64; WORDS as usize],
}

impl Window {
    /// How far a frame may be overtaken. Seven windows of 256 frames, and more.
    pub const SPAN: u64 = (WORDS - 1) * 64;

    pub fn new() -> Window {
        Window { next: 0, words: [0; WORDS as usize] }
    }

    /// Whether the frame with this counter has not come, and can be told.
    #[inline]
    pub fn is_new(&self, counter: u64) -> bool {
        if counter >= self.next {
            return counter < u64::MAX;
        }
        let span = Self::SPAN + if planted("keys-window-off-by-one") { 64 } else { 0 };
        self.next - counter <= span && self.words[word(counter)] & bit(counter) == 0
    }

    /// Notes that the frame with this counter came. It was new.
    #[inline]
    pub fn mark(&mut self, counter: u64) {
        if counter >= self.next {
            let first = self.next.checked_sub(1).map_or(0, |newest| newest / 64 + 1);
            let last = counter / 64;
            for index in first.max(last.saturating_sub(WORDS - 1))..=last {
                self.words[(index % WORDS) as usize] = 0;
            }
            self.next = counter + 1;
        }
        if !planted("keys-no-window") {
            self.words[word(counter)] |= bit(counter);
        }
    }
}

#[inline]
fn word(counter: u64) -> usize {
    (counter / 64 % WORDS) as usize
}

#[inline]
fn bit(counter: u64) -> u64 {
    1 << (counter % 64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Beside a set of all counters: random jumps ahead, frames overtaken by up to more than the
    /// span, and repetitions.
    #[test]
    fn each_counter_counts_once() {
        for start in [0, 5, u64::MAX / 2, u64::MAX - 20_000] {
            let mut window = Window::new();
            let mut came = BTreeSet::new();
            let (mut newest, mut state) = (start, 7_u64);
            for _ in 0..100_000 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let random = state >> 33;
                let counter = match random % 8 {
                    0 if newest < u64::MAX - 4000 => newest + random / 8 % 40 % (1 + newest % 3000),
                    1 => newest.saturating_sub(random / 8 % 4000),
                    2 => newest.saturating_sub(Window::SPAN - 2 + random / 8 % 4),
                    3 => newest.saturating_sub(random / 8 % 70),
                    _ if newest < u64::MAX - 4000 => newest + random / 8 % 3,
                    _ => newest,
                };
                let highest = came.last().copied().map_or(0, |last: u64| last + 1);
                let is_told = counter >= highest || highest - counter <= Window::SPAN;
                let expected = is_told && !came.contains(&counter);
                assert_eq!(window.is_new(counter), expected, "{counter} after {highest}");
                if expected {
                    window.mark(counter);
                    came.insert(counter);
                }
                newest = newest.max(counter);
            }
        }
        assert!(!Window::new().is_new(u64::MAX), "it would have no successor");
    }

    /// A jump of any length forgets exactly what is too old.
    #[test]
    fn jumps_forget() {
        for jump in [1, 63, 64, 65, Window::SPAN - 1, Window::SPAN, Window::SPAN + 64, 1 << 40] {
            let mut window = Window::new();
            (0..130).for_each(|counter| window.mark(counter));
            window.mark(129 + jump);
            for counter in 0..129 + jump.min(3000) {
                let is_old = 130 + jump - counter > Window::SPAN;
                assert_eq!(window.is_new(counter), !is_old && counter >= 130, "{counter} {jump}");
            }
        }
    }
}
