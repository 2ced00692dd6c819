//! The longest frame that goes to one peer. It starts at the agreed length, and halves when a long
//! frame never arrives at a living peer: the frame may exceed a hop's MTU (RFC 4821, 7.7).

/// Initial value of `attempts_to_shrink`; each shrinking adds two.
const ATTEMPTS_BEFORE_SHRINKING: u32 = 6;
/// The frame length is not halved below this on suspicion of a smaller path MTU.
const LEAST_SHRUNK_BYTES: usize = 512;
/// Longer frames are tried again after this time, in ns.
const REGROW_NS: u64 = 10_000_000_000;

pub(crate) struct PathMtu {
    /// Longest frame sent now, and the agreed limit.
    pub frame_bytes: usize,
    agreed_bytes: usize,
    /// Longest frame that the peer takes.
    pub peer_bytes: usize,
    /// When the length last changed.
    changed_ns: u64,
    /// Transmissions of the oldest frame after which it may be too long for the path.
    attempts_to_shrink: u32,
}

impl PathMtu {
    pub fn new(frame_bytes: usize) -> Self {
        PathMtu {
            frame_bytes,
            agreed_bytes: frame_bytes,
            peer_bytes: frame_bytes,
            changed_ns: 0,
            attempts_to_shrink: ATTEMPTS_BEFORE_SHRINKING,
        }
    }

    /// Sets the longest frame: the smaller of the peer's limit and `ours`, the network's.
    pub fn agree(&mut self, ours: usize) {
        self.frame_bytes = ours.min(self.peer_bytes);
        self.agreed_bytes = self.frame_bytes;
    }

    /// The oldest frame has arrived.
    #[inline]
    pub fn arrived(&mut self) {
        self.attempts_to_shrink = ATTEMPTS_BEFORE_SHRINKING;
    }

    /// The oldest frame timed out after this many transmissions.
    pub fn timed_out(&mut self, attempts: u32, now_ns: u64) {
        if attempts >= self.attempts_to_shrink {
            self.attempts_to_shrink = attempts + 2;
            self.frame_bytes = (self.frame_bytes / 2).max(LEAST_SHRUNK_BYTES).min(self.frame_bytes);
            self.changed_ns = now_ns;
        }
    }

    /// Tries longer frames again after [`REGROW_NS`].
    pub fn regrow(&mut self, now_ns: u64) {
        if self.frame_bytes < self.agreed_bytes
            && now_ns.saturating_sub(self.changed_ns) > REGROW_NS
        {
            self.frame_bytes = (self.frame_bytes * 2).min(self.agreed_bytes);
            self.changed_ns = now_ns;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PathMtu, REGROW_NS};

    /// The sixth transmission of one frame in vain halves the length, and each second one after it,
    /// down to 512 bytes. An arrival begins the count anew.
    #[test]
    fn lengths_halve_when_long_frames_never_arrive() {
        let mut it = PathMtu::new(9000);
        it.agree(5000);
        let mut lengths = |attempts: &[u32]| {
            let of = |&count: &u32| {
                it.timed_out(count, 1);
                it.frame_bytes
            };
            attempts.iter().map(of).collect::<alloc::vec::Vec<_>>()
        };
        assert_eq!(lengths(&[5, 6, 7, 8, 9]), [5000, 2500, 2500, 1250, 1250]);
        assert_eq!(lengths(&[10, 12, 14]), [625, 512, 512]);
        let mut short = PathMtu::new(300);
        short.timed_out(6, 1);
        assert_eq!(short.frame_bytes, 300);
        let mut it = PathMtu::new(9000);
        it.timed_out(6, 1);
        it.arrived();
        it.timed_out(5, 1);
        assert_eq!(it.frame_bytes, 4500);
        it.timed_out(6, 1);
        assert_eq!(it.frame_bytes, 2250);
    }

    /// After more than ten seconds a shrunk length doubles, again and again up to the agreed one:
    /// the smaller of ours and the peer's.
    #[test]
    fn lengths_grow_again() {
        let mut it = PathMtu::new(9000);
        it.peer_bytes = 3000;
        it.agree(5000);
        assert_eq!(it.frame_bytes, 3000);
        it.timed_out(6, 100);
        it.timed_out(8, 200);
        it.regrow(200 + REGROW_NS);
        assert_eq!(it.frame_bytes, 750);
        it.regrow(201 + REGROW_NS);
        assert_eq!(it.frame_bytes, 1500);
        it.regrow(201 + 2 * REGROW_NS);
        assert_eq!(it.frame_bytes, 1500);
        it.regrow(202 + 2 * REGROW_NS);
        it.regrow(203 + 3 * REGROW_NS);
        assert_eq!(it.frame_bytes, 3000);
    }
}
