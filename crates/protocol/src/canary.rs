//! Planted faults, which show that the checkers of this crate can fail.
//!
//! A mechanism asks `planted("name")` where the fault would be made. Without the feature `canaries`
//! the answer is a constant `false`, and the compiler removes the question. With it, a test plants
//! one fault at a time, for its own thread, and requires that the oracle objects.

#[cfg(not(feature = "canaries"))]
mod answer {
    /// Always `false`: this build contains no planted fault.
    #[inline(always)]
    pub const fn planted(_name: &str) -> bool {
        false
    }
}

#[cfg(feature = "canaries")]
mod answer {
    extern crate std;
    use std::cell::Cell;
    use std::thread_local;

    thread_local! {
        static PLANTED: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// Whether the fault `name` is planted in the calling thread.
    pub fn planted(name: &str) -> bool {
        PLANTED.get() == Some(name)
    }

    /// Removes the fault when dropped.
    #[must_use = "the fault is gone as soon as this is dropped"]
    pub struct Planted(());

    impl Drop for Planted {
        fn drop(&mut self) {
            PLANTED.set(None);
        }
    }

    /// Plants the fault `name` in the calling thread, in place of any earlier one.
    pub fn plant(name: &'static str) -> Planted {
        PLANTED.set(Some(name));
        Planted(())
    }
}

pub use answer::*;
