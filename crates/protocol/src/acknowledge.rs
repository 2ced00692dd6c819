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
