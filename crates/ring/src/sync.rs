//! Atomics and fences, in one place so that the model checker can replace them (`--cfg loom`).

#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU64, Ordering, fence};

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU64, Ordering, fence};

/// The fences of two sides that each write one word and then read the other's. At least one must
/// see the other's write (Dekker).
///
/// Each write must be visible before the read behind it. On the data path a full fence would wait
/// for the written line to come from the other core: 40 to 200 ns a message. So the frequent side
/// uses a compiler fence only. The rare side makes every processor that runs a partner execute a
/// full fence (`membarrier`). If either side cannot, both use full fences.
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
        // The model checker has no membarrier. A full fence on both sides gives the same guarantee.
        #[cfg(loom)]
        if !crate::canary::planted("skipped-light-fence") {
            fence(Ordering::SeqCst);
        }
    }

    /// Between the rare side's write and its read. `barrier` makes every partner's processor
    /// execute a full fence; it is called only for [`Fences::Asymmetric`].
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

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::Fences;

    /// The partners' processors are made to execute a fence only if the frequent side has none.
    #[test]
    fn the_barrier_is_for_asymmetric_fences() {
        let mut called = Vec::new();
        for fences in [Fences::Symmetric, Fences::Asymmetric] {
            fences.heavy(|| called.push(fences));
        }
        assert_eq!(called, [Fences::Asymmetric]);
    }
}
