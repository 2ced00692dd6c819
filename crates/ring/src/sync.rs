//! Atomics and fences, in one place so that the model checker can stand in for them (`--cfg loom`).

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// How two sides that each write one word and then read the other's agree that at least one sees the other (Dekker).
///
/// Both need their write to be visible before their read. A full fence on the data path would wait until the line that was
/// just written has come from the other core: 40 to 200 ns a message. So the frequent side only keeps the *compiler* from
/// reordering, and the rare side makes every processor that runs a partner execute a full fence (`membarrier`). Where
/// either cannot, both sides use real fences.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fences {
    /// The rare side calls `membarrier`; the frequent side pays nothing.
    Asymmetric,
    /// Both sides use full fences.
    Symmetric,
}

impl Fences {
    /// Between the frequent side's write and its read.
    #[inline(always)]
    pub fn light(self) {
        #[cfg(not(loom))]
        match self {
            Fences::Asymmetric => std::sync::atomic::compiler_fence(Ordering::SeqCst),
            Fences::Symmetric => fence(Ordering::SeqCst),
        }
        // The checker knows no membarrier; a full fence on both sides gives the same guarantee.
        #[cfg(loom)]
        if !crate::canary::planted("skipped-light-fence") {
            fence(Ordering::SeqCst);
        }
    }

    /// Between the rare side's write and its read. `barrier` makes every partner's processor execute a full fence; it is
    /// called only for [`Fences::Asymmetric`].
    pub fn heavy(self, barrier: impl FnOnce()) {
        #[cfg(not(loom))]
        {
            fence(Ordering::SeqCst);
            if self == Fences::Asymmetric {
                barrier();
            }
        }
        #[cfg(loom)]
        {
            let _ = barrier;
            if !crate::canary::planted("skipped-heavy-fence") {
                fence(Ordering::SeqCst);
            }
        }
    }
}

/// A full fence, for rare paths.
pub fn full_fence() {
    #[cfg(not(loom))]
    std::sync::atomic::fence(Ordering::SeqCst);
    #[cfg(loom)]
    loom::sync::atomic::fence(Ordering::SeqCst);
}
