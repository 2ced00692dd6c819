//! Whether the peer lives. A silent peer is probed. Probes count, not time: a program that was
//! suspended must not find all its peers dead (see PROTOCOL.md).

use crate::canary::planted;
use crate::reliable::interface::NEVER;

/// Probes of a silent peer per keep-alive interval.
const PROBES_PER_INTERVAL: u64 = 5;

pub(crate) struct Liveness {
    interval_ns: u64,
    heard_ns: u64,
    probed_ns: u64,
    /// Probes since the last sign of life.
    probes: u32,
    /// Timeouts since the last sign of life.
    timeouts: u32,
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
            probe_due: false,
        }
    }

    /// A sign of life.
    #[inline]
    pub fn heard(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
        self.probes = 0;
        self.timeouts = 0;
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
        if self.probes >= most {
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

    /// Counts a timeout; returns the number since the last sign of life.
    pub fn timed_out(&mut self) -> u32 {
        self.timeouts += 1;
        self.timeouts
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
        assert_eq!((it.timed_out(), it.timed_out()), (1, 2));
        it.heard(1_500);
        assert_eq!((it.deadline_ns(), it.timed_out()), (2_500, 1));
        assert!(it.probe(1, 2_500));
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
