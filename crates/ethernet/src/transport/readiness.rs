//! Whether frames wait that were not read yet.

use std::cell::Cell;

/// After this time in ns without a receive and without a send, events may have come.
const LOOK_NS: u64 = 10_000;

#[derive(Default)]
pub(super) struct Readiness {
    /// Time of the last receive or send. A program that sends without a pause learns of events when
    /// it polls.
    looked_ns: Cell<u64>,
    /// Frames were ready at that time and are not read yet.
    unread: Cell<bool>,
}

impl Readiness {
    /// All frames were read.
    pub fn received(&self, now_ns: u64) {
        self.looked_ns.set(now_ns);
        self.unread.set(false);
    }

    /// A packet was sent.
    #[inline]
    pub fn sent(&self, now_ns: u64) {
        self.looked_ns.set(now_ns);
    }

    /// Whether unread frames wait. Asks `is_ready` at most once in [`LOOK_NS`].
    #[inline]
    pub fn has_unread(&self, now_ns: u64, is_ready: impl FnOnce() -> bool) -> bool {
        if now_ns >= self.looked_ns.get() + LOOK_NS && !self.unread.get() {
            self.looked_ns.set(now_ns);
            self.unread.set(is_ready());
        }
        self.unread.get()
    }
}
