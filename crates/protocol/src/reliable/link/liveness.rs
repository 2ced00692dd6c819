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
