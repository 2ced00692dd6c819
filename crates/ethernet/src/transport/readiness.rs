//! Whether frames wait that were not read yet.

/// After this time in ns without a receive and without a send, events may have come.
const LOOK_NS: u64 = 10_000;

#[derive(Default)]
pub(super) struct Readiness {
    /// Time of the last receive or send. A program that sends without a pause learns of events when
    /// it polls.
    looked_ns: u64,
    /// Frames were ready at that time and are not read yet.
    unread: bool,
}

impl Readiness {
    /// All frames were read.
    pub fn received(&mut self, now_ns: u64) {
        self.looked_ns = now_ns;
        self.unread = false;
    }

    /// A packet was sent.
    #[inline]
    pub fn sent(&mut self, now_ns: u64) {
        self.looked_ns = now_ns;
    }

    /// Whether unread frames wait. Asks `is_ready` at most once in [`LOOK_NS`].
    #[inline]
    pub fn has_unread(&mut self, now_ns: u64, is_ready: impl FnOnce() -> bool) -> bool {
        if now_ns >= self.looked_ns + LOOK_NS && !self.unread {
            self.looked_ns = now_ns;
            self.unread = is_ready();
        }
        self.unread
    }
}
