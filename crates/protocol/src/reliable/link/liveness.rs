//! Whether the peer lives. A silent peer is probed. Probes count, not time: a program that was
//! suspended must not find all its peers dead (see PROTOCOL.md).

use crate::canary::planted;
use crate::reliable::interface::NEVER;

/// Probes of a silent peer per keep-alive interval.
const PROBES_PER_INTERVAL: u64 = 5;
/// Unanswered probes, and timeouts in a row, after which a silent peer is dead whose host says that
/// it has gone.
const REFUSED_PROBES: u32 = 2;
const REFUSED_TIMEOUTS: u32 = 8;

pub(crate) struct Liveness {
    interval_ns: u64,
    heard_ns: u64,
    probed_ns: u64,
    /// Probes since the last sign of life.
    probes: u32,
    /// Timeouts since the last sign of life.
    timeouts: u32,
    /// The peer's host has said since then that the peer has gone. Anybody can say so, which is why
    /// the peer is still asked.
    refused: bool,
    /// The next frame demands an answer.
    pub probe_due: bool,
}

impl Liveness {
    pub fn new(interval_ns: u64, now_ns: u64) -> Self {
        Liveness {
            interval_ns,
            heard_ns: now_ns,
            probed_ns: now_ns,
            probes: 0,
            timeouts: 0,
            refused: false,
            probe_due: false,
        }
    }

    /// A sign of life.
    #[inline]
    pub fn heard(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
        self.probes = 0;
        self.timeouts = 0;
        self.refused = false;
    }

    /// The peer's host says that the peer has gone.
    pub fn refused(&mut self, now_ns: u64) {
        self.refused = !planted("reliable-refusal-ignored");
        self.doubt(now_ns);
    }

    /// When the keep-alive interval of a silent peer ends.
    #[inline]
    pub fn deadline_ns(&self) -> u64 {
        if planted("reliable-no-keep-alive") {
            return NEVER;
        }
        let interval_ns = if self.probes == 0 {
            self.interval_ns
        } else {
            self.interval_ns / PROBES_PER_INTERVAL
        };
        self.heard_ns.max(self.probed_ns).saturating_add(interval_ns)
    }

    /// The keep-alive interval has ended: makes a probe due. `false`: `most` probes were not
    /// answered.
    pub fn probe(&mut self, most: u32, now_ns: u64) -> bool {
        if self.probes >= if self.refused { most.min(REFUSED_PROBES) } else { most } {
            return false;
        }
        self.probes += 1;
        self.probed_ns = now_ns;
        self.probe_due = true;
        true
    }

    /// Probes at once a peer that was not probed for a fifth of the interval.
    pub fn doubt(&mut self, now_ns: u64) {
        if self.probes == 0 && now_ns >= self.probed_ns + self.interval_ns / PROBES_PER_INTERVAL {
            self.probe(1, now_ns);
        }
    }

    /// Counts a timeout. `false`: more than `most` since the last sign of life.
    pub fn timed_out(&mut self, most: u32) -> bool {
        self.timeouts += 1;
        self.timeouts <= if self.refused { most.min(REFUSED_TIMEOUTS) } else { most }
    }
}

#[cfg(test)]
mod tests {
    use super::Liveness;

    /// A silent peer is probed after the interval, and then after each fifth of it, as often as
    /// allowed. A sign of life begins the interval and all counts anew.
    #[test]
    fn a_silent_peer_is_probed() {
        let mut it = Liveness::new(1_000, 50);
        assert_eq!(it.deadline_ns(), 1_050);
        assert!(it.probe(2, 1_050) && core::mem::take(&mut it.probe_due));
        assert_eq!(it.deadline_ns(), 1_250);
        assert!(it.probe(2, 1_250) && core::mem::take(&mut it.probe_due));
        assert!(!it.probe(2, 1_450) && !it.probe_due);
        assert_eq!((it.timed_out(1), it.timed_out(1)), (true, false));
        it.heard(1_500);
        assert_eq!((it.deadline_ns(), it.timed_out(1)), (2_500, true));
        assert!(it.probe(1, 2_500));
    }

    /// A peer whose host says that it has gone is probed at once and given up early, unless it
    /// shows a sign of life.
    #[test]
    fn a_refused_peer_is_given_up_early() {
        let mut it = Liveness::new(1_000, 0);
        it.refused(500);
        assert!(core::mem::take(&mut it.probe_due));
        assert!(it.probe(20, 700) && !it.probe(20, 900));
        let timeouts = (0..60).take_while(|_| it.timed_out(60)).count();
        assert_eq!(timeouts, 8);
        it.heard(950);
        let timeouts = (0..60).take_while(|_| it.timed_out(60)).count();
        assert_eq!(timeouts, 60);
        assert!((0..20).all(|_| it.probe(20, 2_000)));
    }

    /// A peer in doubt is probed at once, unless a probe went within the last fifth of the interval
    /// or is unanswered.
    #[test]
    fn a_peer_in_doubt_is_probed_at_once() {
        let mut it = Liveness::new(1_000, 50);
        it.doubt(249);
        assert!(!it.probe_due);
        it.doubt(250);
        assert!(core::mem::take(&mut it.probe_due));
        assert_eq!(it.deadline_ns(), 450);
        it.doubt(900);
        assert!(!it.probe_due, "the first is unanswered");
        it.heard(901);
        it.doubt(902);
        assert!(it.probe_due);
    }
}
