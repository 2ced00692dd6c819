//! The handshake of one link: what both sides said of themselves, and when to ask again.

use bellwire_wire::frame::open::OpenBody;

use crate::canary::planted;
use crate::reliable::interface::NEVER;
use crate::reliable::{Config, DownReason};

/// After this many unanswered Opens (0.6 s after the first) the peer counts as absent from where
/// they went.
const OPENS_IN_VAIN: u32 = 8;
/// First wait before an Open or Accept is repeated, in ns; it doubles up to 64 times this value.
const FIRST_REPEAT_NS: u64 = 5_000_000;
/// A repetition that comes this much too late comes from a program that did not run.
const STOPPED_NS: u64 = 100_000_000;

/// What identifies the link at both sides, and the timer of Open and Accept.
pub(crate) struct Opening {
    /// Frames to us carry `token`; frames to the peer carry `peer_token`, 0 while it is unknown.
    pub token: u64,
    pub peer_token: u64,
    /// Which of our openings this is. A later one has a greater number.
    pub number: u64,
    pub peer_incarnation: u64,
    peer_number: u64,
    /// When to forget the peer's values above, unless the link is up by then.
    pub forget_ns: u64,
    /// The version and the features that both agreed on.
    pub version: u8,
    pub features: u32,
    /// When to give up a link that is not up.
    pub give_up_ns: u64,
    /// The time to give up was put off once.
    is_excused: bool,
    /// How long to ask, if that time begins with the first Open.
    pub patience_ns: Option<u64>,
    /// When to repeat Open or Accept, and how often it was sent.
    repeat_ns: u64,
    pub repeats: u32,
    /// When Open or Accept was last sent.
    asked_ns: u64,
    /// An Open must go, and an Accept must go.
    pub open_due: bool,
    pub accept_due: bool,
}

impl Opening {
    pub fn new(token: u64, number: u64) -> Self {
        Opening {
            token,
            peer_token: 0,
            number,
            peer_incarnation: 0,
            peer_number: 0,
            forget_ns: NEVER,
            version: 0,
            features: 0,
            give_up_ns: NEVER,
            is_excused: false,
            patience_ns: None,
            repeat_ns: NEVER,
            repeats: 0,
            asked_ns: 0,
            open_due: false,
            accept_due: false,
        }
    }

    /// The same handshake under another token: the peer's values are forgotten, the time to give up
    /// stays. `asks`: an Open is due.
    pub fn renewed(&self, token: u64, number: u64, asks: bool) -> Self {
        Opening {
            give_up_ns: self.give_up_ns,
            is_excused: self.is_excused,
            patience_ns: self.patience_ns,
            repeats: self.repeats,
            open_due: asks,
            ..Opening::new(token, number)
        }
    }

    /// The first frame number and the first sum of credit that we count.
    pub fn first_number(&self) -> u32 {
        first_number(self.token)
    }

    /// The peer's incarnation and opening: a later one is greater.
    pub fn peer_age(&self) -> (u64, u64) {
        (self.peer_incarnation, self.peer_number)
    }

    /// Takes over what the peer's Open or Accept says of the peer.
    pub fn learn(&mut self, config: &Config, open: &OpenBody) {
        self.peer_token = open.token;
        self.peer_incarnation = open.incarnation;
        self.peer_number = open.opening;
        self.version = config.common_version(open.version_low, open.version_high).unwrap_or(0);
        self.features = open.features & config.features[0];
    }

    /// Whether the peer does not answer where it is asked.
    pub fn is_in_vain(&self) -> bool {
        self.repeats >= OPENS_IN_VAIN
    }

    /// Whether an Open or an Accept must go.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.open_due || self.accept_due
    }

    /// Takes what is due; returns whether that is an Accept, which goes first.
    pub fn take_due(&mut self) -> bool {
        let is_accept = core::mem::take(&mut self.accept_due);
        self.open_due &= is_accept;
        is_accept
    }

    /// An Open or Accept goes now.
    pub fn ask(&mut self, now_ns: u64) {
        self.wait_to_ask(now_ns);
        self.asked_ns = now_ns;
    }

    /// Sets the time at which Open or Accept is repeated.
    pub fn wait_to_ask(&mut self, now_ns: u64) {
        if let Some(patience_ns) = self.patience_ns.take() {
            self.give_up_ns = now_ns.saturating_add(patience_ns);
        }
        self.repeat_ns = now_ns + (FIRST_REPEAT_NS << self.repeats.min(6));
        self.repeats += 1;
    }

    /// Makes a repetition due. Returns the reason if it is time to give up. A program that was
    /// stopped has not asked for long: it asks once more. `asks`: it is we who asked.
    pub fn run_timer(&mut self, asks: bool, now_ns: u64) -> Option<DownReason> {
        if now_ns >= self.give_up_ns {
            let ran = now_ns < self.repeat_ns.saturating_add(STOPPED_NS);
            if ran || self.is_excused {
                return Some(DownReason::NoAnswer);
            }
            self.is_excused = true;
            self.give_up_ns = now_ns.saturating_add(STOPPED_NS);
        }
        if now_ns >= self.repeat_ns {
            self.repeat_ns = NEVER;
            // An answer to the peer's Open may be due just now; our own Open must not replace it.
            // If both ask and the delay is constant, the two would collide each time. The peer may
            // also know an older token of our opening.
            if planted("reliable-open-instead-of-accept") {
                self.accept_due = false;
            }
            self.open_due |= asks;
            self.accept_due |= !asks;
        }
        None
    }

    /// When the handshake needs service next.
    pub fn deadline_ns(&self) -> u64 {
        self.give_up_ns.min(self.repeat_ns)
    }

    /// The round trip of the handshake, if one Open got one answer.
    pub fn round_trip_ns(&self, now_ns: u64) -> Option<u64> {
        (self.repeats == 1).then(|| now_ns.saturating_sub(self.asked_ns))
    }
}

/// First frame number and first sum of credit that the owner of `token` counts. Half of all links
/// start within 256 of the wrap, so that wrapping happens every day.
pub(crate) fn first_number(token: u64) -> u32 {
    let number = (token >> 32) as u32;
    if token & 1 << 31 != 0 { number | 0xffff_ff00 } else { number }
}

#[cfg(test)]
mod tests {
    use super::{NEVER, Opening, first_number};
    use crate::reliable::DownReason;

    const MS: u64 = 1_000_000;

    /// The wait before a repetition doubles from 5 ms to 320 ms. After eight Opens the peer counts
    /// as absent.
    #[test]
    fn repetitions_become_rare() {
        let mut it = Opening::new(1, 1);
        let mut now_ns = 7;
        for (repeats, wait_ms) in (0..).zip([5, 10, 20, 40, 80, 160, 320, 320, 320]) {
            assert_eq!((it.repeats, it.is_in_vain()), (repeats, repeats >= 8));
            it.ask(now_ns);
            assert_eq!(it.round_trip_ns(now_ns + 9), (repeats == 0).then_some(9));
            now_ns += wait_ms * MS;
            assert_eq!(it.deadline_ns(), now_ns);
            assert_eq!((it.run_timer(true, now_ns - 1), it.is_due()), (None, false));
            assert_eq!((it.run_timer(true, now_ns), it.open_due), (None, true));
            assert!(!it.take_due() && !it.is_due());
        }
    }

    /// The side that was asked repeats its Accept. What is due goes in turn, the Accept first.
    #[test]
    fn an_accept_goes_before_an_open() {
        let mut it = Opening::new(1, 1);
        it.ask(0);
        it.run_timer(false, 5 * MS);
        assert_eq!((it.accept_due, it.open_due, it.deadline_ns()), (true, false, NEVER));
        it.open_due = true;
        assert!(it.take_due() && it.is_due());
        assert!(!it.take_due() && !it.is_due());
    }

    /// The patience counts from the first Open, and ends exactly. It outlives a change of the
    /// token, as the count of repetitions does.
    #[test]
    fn patience_begins_with_the_first_open() {
        let mut it = Opening::new(1, 1);
        it.patience_ns = Some(3 * MS);
        assert_eq!(it.deadline_ns(), NEVER);
        assert_eq!(it.renewed(2, 9, true).patience_ns, Some(3 * MS));
        it.ask(50);
        it.ask(60);
        let mut again = it.renewed(2, 9, true);
        assert_eq!((again.token, again.number, again.repeats), (2, 9, 2));
        assert!(again.open_due && !it.renewed(2, 9, false).open_due);
        for opening in [&mut it, &mut again] {
            assert_eq!(opening.deadline_ns(), 50 + 3 * MS);
            assert_eq!(opening.run_timer(true, 49 + 3 * MS), None);
            assert_eq!(opening.run_timer(true, 50 + 3 * MS), Some(DownReason::NoAnswer));
        }
    }

    /// A program that was stopped until its patience was over asks once more, and then gives up.
    #[test]
    fn a_stopped_program_asks_once_more() {
        let repeat_ns = 5 * MS;
        for (late_ms, gives_up) in [(99, true), (100, false)] {
            let mut it = Opening::new(1, 1);
            it.patience_ns = Some(50 * MS);
            it.ask(0);
            it.open_due = false;
            let mut now_ns = repeat_ns + late_ms * MS;
            assert_eq!(it.run_timer(true, now_ns).is_some(), gives_up, "{late_ms} ms");
            assert_eq!(it.open_due, !gives_up);
            if gives_up {
                continue;
            }
            it.ask(now_ns);
            now_ns += 100 * MS;
            assert_eq!(it.run_timer(true, now_ns - 1), None);
            let mut again = it.renewed(2, 9, true);
            again.ask(now_ns);
            for opening in [&mut it, &mut again] {
                assert_eq!(opening.run_timer(true, now_ns + 900 * MS), Some(DownReason::NoAnswer));
            }
        }
    }

    /// The first number is the upper half of the token. Bit 31 of the token moves it close to its
    /// wrap.
    #[test]
    fn half_of_all_links_begin_before_the_wrap() {
        assert_eq!(first_number(0x1234_5678_7fff_ffff), 0x1234_5678);
        assert_eq!(first_number(0x1234_5678_8000_0000), 0xffff_ff78);
    }
}
