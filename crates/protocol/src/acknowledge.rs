//! When to acknowledge. The acknowledgement rides on the next frame to the peer. It gets a frame of
//! its own if enough frames wait for it, one has waited long enough, or the peer must know at once.
//! The peer must know at once about a gap, a repetition, or room after none.
//!
//! A peer that can only wait says so (FLAG_ANSWER) and is acknowledged at once, because our user
//! may not call again for long. After several alternating turns of request and response, the
//! acknowledgement waits for the next response instead. A frame of its own would delay that
//! response.

/// Turns of request and response after which the next response is expected, too.
const TURNS: u8 = 8;
/// How long the acknowledgement waits for an expected response if our user calls without one, in
/// ns.
const ANSWER_NS: u64 = 1_000;

#[derive(Clone, Copy)]
pub(crate) struct Acknowledge {
    every: u16,
    delay_ns: u64,
    /// Frames that came since the last acknowledgement was sent.
    waiting: u16,
    /// When the newest of them came, and the oldest.
    newest_ns: u64,
    oldest_ns: u64,
    /// The peer waits for the acknowledgement.
    wanted: bool,
    /// How often in a row data went to the peer before it asked again, and whether some went since
    /// it last asked.
    turns: u8,
    answered: bool,
    /// It must go now.
    pub due: bool,
    /// It must go before any data.
    pub is_next: bool,
    /// A gap was seen (LOSE).
    pub lose: bool,
    /// A frame behind a gap was not kept.
    dropped: bool,
}

impl Acknowledge {
    pub fn new(every: u16, delay_ns: u64) -> Self {
        Acknowledge {
            every,
            delay_ns,
            waiting: 0,
            newest_ns: 0,
            oldest_ns: 0,
            wanted: false,
            turns: 0,
            answered: false,
            due: false,
            is_next: false,
            lose: false,
            dropped: false,
        }
    }

    /// A frame came in order.
    #[inline]
    pub fn arrived(&mut self, now_ns: u64) {
        self.newest_ns = now_ns;
        if self.waiting == 0 {
            self.oldest_ns = now_ns;
        }
        self.waiting += 1;
        self.due |= self.waiting >= self.every;
    }

    /// A frame came behind a gap: the sender must know at once.
    pub fn gap(&mut self, was_kept: bool) {
        self.due = true;
        self.lose = true;
        self.dropped |= !was_kept;
    }

    /// A gap is closed: the sender should know before it assumes more losses. `is_last`: no other
    /// gap is left. LOSE then ends, unless a frame was dropped.
    pub fn closed(&mut self, is_last: bool) {
        self.due = true;
        self.lose &= self.dropped || !is_last;
    }

    /// The peer waits for the acknowledgement of the frame that arrives in order now.
    #[inline]
    pub fn want(&mut self) {
        self.turns = if self.answered { (self.turns + 1).min(TURNS) } else { 0 };
        self.answered = false;
        self.wanted = true;
        self.due |= self.turns < TURNS;
    }

    /// The latest time at which it must go, unless it is due at once.
    #[inline]
    pub fn deadline_ns(&self) -> u64 {
        if self.waiting == 0 || self.due {
            u64::MAX
        } else if self.wanted {
            self.newest_ns.saturating_add(ANSWER_NS.min(self.delay_ns))
        } else {
            self.oldest_ns.saturating_add(self.delay_ns)
        }
    }

    /// Makes a waiting acknowledgement due; returns whether one waits.
    pub fn flush(&mut self) -> bool {
        self.due |= self.waiting > 0;
        self.waiting > 0
    }

    /// A data frame takes the part that fits its header; a frame of its own follows with the rest.
    /// Returns the same as [`went`](Self::went).
    #[cold]
    pub fn went_in_part(&mut self, now_ns: u64) -> u64 {
        let Acknowledge { lose, dropped, .. } = *self;
        let held_back_ns = self.went(true, now_ns);
        (self.due, self.is_next) = (true, true);
        (self.lose, self.dropped) = (lose, dropped);
        held_back_ns
    }

    /// It goes, with data or alone. Returns how long it was held back since the newest frame came,
    /// in ns.
    #[inline]
    pub fn went(&mut self, with_data: bool, now_ns: u64) -> u64 {
        let held_back = if self.waiting > 0 { now_ns.saturating_sub(self.newest_ns) } else { 0 };
        self.answered |= with_data;
        if self.wanted && !with_data && self.turns == TURNS {
            self.turns = 0;
        }
        self.wanted = false;
        self.waiting = 0;
        self.due = false;
        self.is_next = false;
        self.lose = false;
        self.dropped = false;
        held_back
    }
}

#[cfg(test)]
mod tests {
    use super::{ANSWER_NS, Acknowledge};

    /// The third of three frames makes the acknowledgement due. Before, it waits from the oldest
    /// frame on; it tells how long it was held back since the newest.
    #[test]
    fn enough_frames_or_enough_time_make_it_due() {
        let mut it = Acknowledge::new(3, 100);
        assert_eq!((it.deadline_ns(), it.flush(), it.due), (u64::MAX, false, false));
        it.arrived(10);
        it.arrived(20);
        assert_eq!((it.deadline_ns(), it.due), (110, false));
        assert_eq!((it.flush(), it.due, it.deadline_ns()), (true, true, u64::MAX));
        it.arrived(25);
        assert_eq!((it.went(false, 65), it.due), (40, false));
        assert_eq!(it.went(false, 75), 0, "none waits");
        for now_ns in [80, 81, 82] {
            assert!(!it.due);
            it.arrived(now_ns);
        }
        assert!(it.due);
        it.went(true, 83);
        it.due = true;
        it.arrived(90);
        assert!(it.due, "a further frame takes nothing back");
    }

    /// A gap is reported until the last one is closed; if a frame was dropped, until the report
    /// has gone. Each change of the gaps must be told at once.
    #[test]
    fn a_gap_is_reported_while_it_is_open() {
        let gap = |were_kept: &[bool]| {
            let mut it = Acknowledge::new(3, 100);
            were_kept.iter().for_each(|&was_kept| it.gap(was_kept));
            assert!(it.due && it.lose);
            it.due = false;
            it
        };
        let mut it = gap(&[true]);
        it.closed(false);
        assert!(it.due && it.lose);
        it.closed(true);
        assert!(it.due && !it.lose);
        for kept in [&[false][..], &[false, true]] {
            let mut it = gap(kept);
            it.closed(true);
            assert!(it.due && it.lose);
            it.arrived(10);
            assert_eq!(it.went_in_part(30), 20);
            assert!(it.due && it.is_next && it.lose, "the rest goes in a frame of its own");
            it.closed(true);
            assert!(it.lose, "the peer does not know yet");
            it.went(false, 40);
            assert!(!it.due && !it.is_next && !it.lose);
            it.gap(true);
            it.closed(true);
            assert!(!it.lose, "what was dropped is told");
        }
    }

    /// A peer that waits is acknowledged at once. After eight turns of request and response the
    /// acknowledgement waits for the next response, but not for longer than 1 us.
    #[test]
    fn after_eight_turns_it_waits_for_the_response() {
        let turn = |it: &mut Acknowledge, with_data, now_ns| {
            it.arrived(now_ns);
            it.want();
            let (due, deadline_ns) = (it.due, it.deadline_ns());
            it.went(with_data, now_ns + 5);
            (due, deadline_ns)
        };
        let mut it = Acknowledge::new(30, 1 << 20);
        for now_ns in 0..8 {
            assert_eq!(turn(&mut it, true, now_ns), (true, u64::MAX), "turn {now_ns}");
        }
        assert_eq!(turn(&mut it, true, 100), (false, 100 + ANSWER_NS));
        assert_eq!(turn(&mut it, true, 200), (false, 200 + ANSWER_NS));
        assert_eq!(turn(&mut it, false, 300), (false, 300 + ANSWER_NS));
        assert_eq!(turn(&mut it, true, 400), (true, u64::MAX), "the last had no response");
        // One acknowledgement that nobody waited for ends no row of turns.
        let mut it = Acknowledge::new(30, 50);
        (0..8).for_each(|now_ns| assert!(turn(&mut it, true, now_ns).0));
        it.went(false, 20);
        it.due = true;
        assert_eq!(turn(&mut it, true, 90), (true, u64::MAX), "it was due for another reason");
        assert_eq!(turn(&mut it, true, 100), (false, 150), "the delay is shorter than 1 us");
        it.arrived(200);
        assert_eq!(it.deadline_ns(), 250, "nobody waits");
    }

    /// Turns count, too, if each request is acknowledged at once and the response goes later.
    #[test]
    fn late_responses_make_turns() {
        let mut it = Acknowledge::new(30, 1 << 20);
        for turn in 0..=8 {
            it.arrived(turn);
            it.want();
            assert_eq!(it.due, turn < 8, "turn {turn}");
            it.went(false, turn);
            it.went(true, turn);
        }
        // The last acknowledgement went alone, so the next requests are acknowledged at once.
        it.arrived(9);
        it.want();
        assert!(it.due);
    }
}
