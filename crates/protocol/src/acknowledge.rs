//! When to acknowledge. The acknowledgement rides on the next frame to the peer. It gets a frame of
//! its own if enough frames wait for it, one has waited long enough, or the peer must know at once.
//! The peer must know at once about a gap, a repetition, or room after none.
//!
//! A peer that can only wait says so (FLAG_ANSWER) and is acknowledged at once, because our user
//! may not call again for long. After several alternating turns of request and response, the
//! acknowledgement waits for the next response instead. A frame of its own would delay that
//! response. It waits for twice the time that responses took lately. Its limit is a round trip, so
//! who waits for it in vain waits at most twice as long as without. On a short path the limit of
//! any other acknowledgement holds. Most of a long request waits, too: an acknowledgement of its
//! first frames would delay its last ones.

/// Turns of request and response after which the next response is expected, too.
const TURNS: u8 = 8;
/// Most turns that count.
const MOST_TURNS: u8 = 64;
/// A wait without a response leaves this part of the turns. So one late response among many does
/// not end the waiting, and a second one does.
const IN_VAIN: u8 = 8;
/// So many times as many frames wait while a response is expected.
const EXPECTING: u16 = 4;
/// The acknowledgement waits at least this long for an expected response if our user calls without
/// one, in ns.
const LEAST_ANSWER_NS: u64 = 1_000;
/// The longest wait for an expected response on a long path, in ns.
const MOST_ANSWER_NS: u64 = 250_000;
/// The time of the slowest response is forgotten at this rate: a sixteenth in each turn.
const FORGETTING: u64 = 16;

#[derive(Clone, Copy)]
pub(crate) struct Acknowledge {
    every: u16,
    /// The same while a response is expected.
    expecting_every: u16,
    delay_ns: u64,
    /// Frames that came since the last acknowledgement was sent.
    waiting: u16,
    /// When the newest of them came, and the oldest.
    newest_ns: u64,
    oldest_ns: u64,
    /// The peer waits for the acknowledgement.
    wanted: bool,
    /// How often in a row data went to the peer in time before it asked again, and whether some
    /// went since it last asked.
    turns: u8,
    answered: bool,
    /// The longest time from a question to its response lately, in ns.
    answer_ns: u64,
    /// The longest time that counts as a response, and that one is waited for.
    limit_ns: u64,
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
            // If each frame has its own acknowledgement, none waits.
            expecting_every: if every == 1 { 1 } else { every.saturating_mul(EXPECTING) },
            delay_ns,
            waiting: 0,
            newest_ns: 0,
            oldest_ns: 0,
            wanted: false,
            turns: 0,
            answered: false,
            answer_ns: 0,
            limit_ns: delay_ns,
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
        let is_expecting = self.turns >= TURNS;
        self.due |= self.waiting >= if is_expecting { self.expecting_every } else { self.every };
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

    /// The peer waits for the acknowledgement of the frame that arrives in order now, on a path
    /// with this round trip.
    #[inline]
    pub fn want(&mut self, round_trip_ns: u64) {
        if self.delay_ns > 0 {
            self.limit_ns = round_trip_ns.min(MOST_ANSWER_NS).max(self.delay_ns);
        }
        self.turns = if self.answered { (self.turns + 1).min(MOST_TURNS) } else { 0 };
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
            let patience_ns = (2 * self.answer_ns).max(LEAST_ANSWER_NS).min(self.limit_ns);
            self.newest_ns.saturating_add(patience_ns)
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
        let age_ns = now_ns.saturating_sub(self.newest_ns);
        let held_back = if self.waiting > 0 { age_ns } else { 0 };
        if with_data && !self.answered {
            // A response that takes longer is not worth a wait, unless it was waited for: our user
            // may have been without a processor.
            let is_in_time = age_ns <= self.limit_ns;
            self.answered = is_in_time || self.wanted && self.turns >= TURNS;
            if is_in_time {
                self.answer_ns = age_ns.max(self.answer_ns - self.answer_ns / FORGETTING);
            }
        }
        if self.wanted && !with_data && self.turns >= TURNS {
            self.turns /= IN_VAIN;
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
    use super::*;

    const DELAY_NS: u64 = 25_000;

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

    /// While a response is expected, four times as many frames wait for it.
    #[test]
    fn a_long_request_waits_for_its_response() {
        let mut it = Acknowledge::new(3, DELAY_NS);
        let frames_until_due = |it: &mut Acknowledge| {
            it.went(false, 0);
            let count = (1..).find(|_| {
                it.arrived(0);
                it.due
            });
            it.went(false, 0);
            count
        };
        for turn in 0..u64::from(TURNS) {
            assert_eq!(frames_until_due(&mut it), Some(3), "{turn}");
            it.want(0);
            it.arrived(turn * 1_000);
            it.went(true, turn * 1_000);
        }
        it.want(0);
        assert_eq!(it.turns, TURNS);
        assert_eq!(frames_until_due(&mut it), Some(3), "a wait in vain ends it");
        it.turns = TURNS;
        assert_eq!(frames_until_due(&mut it), Some(12));
        let mut each = Acknowledge { turns: TURNS, ..Acknowledge::new(1, 0) };
        assert_eq!(frames_until_due(&mut each), Some(1));
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

    /// The peer asks at `now_ns`, and our user polls every 100 ns until it answers after
    /// `answer_ns`. Returns when a lone acknowledgement went, after the question.
    fn turn(acknowledge: &mut Acknowledge, now_ns: u64, answer_ns: Option<u64>) -> Option<u64> {
        turn_over(acknowledge, 2_000, now_ns, answer_ns)
    }

    /// The same on a path with this round trip.
    fn turn_over(
        acknowledge: &mut Acknowledge,
        round_trip_ns: u64,
        now_ns: u64,
        answer_ns: Option<u64>,
    ) -> Option<u64> {
        acknowledge.want(round_trip_ns);
        acknowledge.arrived(now_ns);
        let mut alone_ns = None;
        for age_ns in (0..=2 * acknowledge.limit_ns).step_by(100) {
            let is_due = acknowledge.due || acknowledge.deadline_ns() <= now_ns + age_ns;
            if is_due && alone_ns.is_none() {
                acknowledge.went(false, now_ns + age_ns);
                alone_ns = Some(age_ns);
            }
            if Some(age_ns) == answer_ns {
                acknowledge.went(true, now_ns + age_ns);
                break;
            }
        }
        alone_ns
    }

    /// After eight turns the acknowledgement rides on responses that take microseconds. It has no
    /// frame of its own, even if a response takes twice as long as those before it.
    #[test]
    fn a_response_in_time_carries_the_acknowledgement() {
        for answer_ns in [100, 900, 3_000, 9_000, 20_000] {
            let mut acknowledge = Acknowledge::new(16, DELAY_NS);
            let alone = |acknowledge: &mut Acknowledge, turns: core::ops::Range<u64>| {
                turns.filter_map(|at| turn(acknowledge, at * 100_000, Some(answer_ns))).count()
            };
            assert_eq!(alone(&mut acknowledge, 1..9), 8, "{answer_ns}");
            assert_eq!(alone(&mut acknowledge, 9..100), 0, "{answer_ns}");
            let slower_ns = (2 * answer_ns).min(DELAY_NS) - 100;
            assert_eq!(turn(&mut acknowledge, 10_000_000, Some(slower_ns)), None, "{answer_ns}");
        }
    }

    /// A response that takes longer than any acknowledgement waits is not waited for.
    #[test]
    fn a_late_response_is_not_waited_for() {
        let mut acknowledge = Acknowledge::new(16, DELAY_NS);
        for at in 1..100 {
            assert_eq!(turn(&mut acknowledge, at * 100_000, Some(DELAY_NS + 1_000)), Some(0));
        }
    }

    /// On a long path a response is waited for as long as a round trip, and no longer than the
    /// longest wait. A path that became short again has its limit back.
    #[test]
    fn a_long_path_waits_for_a_round_trip() {
        let alone = |it: &mut Acknowledge, round_trip_ns, answer_ns| {
            let turns = (1..=100).map(|at| turn_over(it, round_trip_ns, at << 20, Some(answer_ns)));
            turns.skip(TURNS as usize).flatten().count()
        };
        let all = 100 - TURNS as usize;
        for round_trip_ns in [60_000, MOST_ANSWER_NS] {
            let mut it = Acknowledge::new(16, DELAY_NS);
            assert_eq!(alone(&mut it, round_trip_ns, round_trip_ns - 100), 0);
            assert_eq!(turn_over(&mut it, round_trip_ns, 1 << 30, None), Some(round_trip_ns));
            let mut it = Acknowledge::new(16, DELAY_NS);
            assert_eq!(alone(&mut it, round_trip_ns, round_trip_ns + 1_000), all);
        }
        let mut it = Acknowledge::new(16, DELAY_NS);
        assert_eq!(alone(&mut it, u64::MAX, MOST_ANSWER_NS + 1_000), all);
        assert_eq!(alone(&mut it, u64::MAX, MOST_ANSWER_NS - 100), 0);
        assert_eq!(turn_over(&mut it, 2_000, 1 << 30, None), Some(DELAY_NS));
    }

    /// A question that nobody answers is acknowledged after twice the usual response, within the
    /// delay, and the next one at once. One late response among many does not end the waiting.
    #[test]
    fn a_lone_message_waits_once() {
        let mut acknowledge = Acknowledge::new(16, DELAY_NS);
        for at in 1..100 {
            turn(&mut acknowledge, at * 100_000, Some(3_000));
        }
        assert_eq!(turn(&mut acknowledge, 10_000_000, Some(15_000)), Some(6_000));
        assert_eq!(turn(&mut acknowledge, 10_100_000, Some(3_000)), None);
        let waits = [2, 3, 4].map(|at| turn(&mut acknowledge, 10_000_000 + at * 100_000, None));
        assert_eq!(waits, [Some(DELAY_NS), Some(0), Some(0)]);
    }

    /// Only what our user sends in time is a response. A lone acknowledgement is none, and neither
    /// is data that goes after the longest delay while nothing was waited for.
    #[test]
    fn only_a_response_in_time_is_one() {
        let mut unanswered = Acknowledge::new(16, DELAY_NS);
        let mut late = Acknowledge::new(16, DELAY_NS);
        for at in 1..100 {
            assert_eq!(turn(&mut unanswered, at * 100_000, None), Some(0));
            late.want(0);
            late.arrived(at * 100_000);
            assert!(late.due, "turn {at}");
            late.went(true, at * 100_000 + DELAY_NS + 1);
        }
    }

    /// Quick responses make the wait short again after slow ones.
    #[test]
    fn a_slow_response_is_forgotten() {
        let mut acknowledge = Acknowledge::new(16, DELAY_NS);
        for at in 1..120 {
            let answer_ns = if at < 20 { 20_000 } else { 100 };
            turn(&mut acknowledge, at * 100_000, Some(answer_ns));
        }
        assert_eq!(turn(&mut acknowledge, 20_000_000, None), Some(LEAST_ANSWER_NS));
    }

    /// HPCL's setting acknowledges each frame at once.
    #[test]
    fn without_a_delay_nothing_waits() {
        let mut acknowledge = Acknowledge::new(1, 0);
        for at in 1..100 {
            assert_eq!(turn_over(&mut acknowledge, 60_000, at * 100_000, Some(100)), Some(0));
        }
        let mut acknowledge = Acknowledge::new(3, 0);
        acknowledge.want(60_000);
        assert_eq!(acknowledge.limit_ns, 0, "a long path changes nothing");
    }
}
