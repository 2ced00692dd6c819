//! Near or far: the time of a cache line between our two CPUs.
//!
//! On a virtual machine the host may move a virtual CPU at any time. The two CPUs are sometimes
//! neighbours on one die (about 40 ns a line) and sometimes on different ones (about 210 ns).
//! Figures of the two situations must not be mixed. So a quick ping-pong on one line before and
//! after each sample classifies the sample.

use serde::Serialize;

/// A one-way hand-over below this is near.
pub const NEAR_BELOW_NS: f64 = 90.0;

/// A one-way hand-over above this is far; values in between belong to neither.
pub const FAR_ABOVE_NS: f64 = 130.0;

/// Round trips of one probe: some 40 us near, some 200 us far.
pub const PROBE_ROUND_TRIPS: u64 = 500;

/// Where the two CPUs were during a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// Both probes were near.
    Near,
    /// Both probes were far.
    Far,
    /// The probes disagree, or one of them was between near and far: the sample is counted, but not
    /// used.
    Unclear,
}

impl Distance {
    /// Classes whose figures are reported.
    pub const REPORTED: [Distance; 2] = [Distance::Near, Distance::Far];

    /// The class of a sample, from the one-way times of the probes before and after it.
    pub fn bracketed(before_ns: f64, after_ns: f64) -> Distance {
        if before_ns < NEAR_BELOW_NS && after_ns < NEAR_BELOW_NS {
            Distance::Near
        } else if before_ns > FAR_ABOVE_NS && after_ns > FAR_ABOVE_NS {
            Distance::Far
        } else {
            Distance::Unclear
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample counts as near or far only if both of its probes say so.
    #[test]
    fn both_brackets_must_agree() {
        assert_eq!(Distance::bracketed(41.0, 45.0), Distance::Near);
        assert_eq!(Distance::bracketed(210.0, 230.0), Distance::Far);
        assert_eq!(Distance::bracketed(41.0, 230.0), Distance::Unclear);
        assert_eq!(Distance::bracketed(230.0, 41.0), Distance::Unclear);
        assert_eq!(Distance::bracketed(100.0, 100.0), Distance::Unclear);
    }
}
