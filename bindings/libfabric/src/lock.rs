//! A lock that costs nothing if the program promises exclusive use.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// A value that one thread uses at a time.
pub struct Lock<T> {
    /// Whether we must exclude other threads; otherwise the program promises to.
    shared: bool,
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time reaches the value, by the flag or by the program's promise.
unsafe impl<T: Send> Sync for Lock<T> {}

/// Access to the value, until this is dropped.
pub struct Held<'a, T>(&'a Lock<T>);

/// Polls between two yields of the processor.
const LOOKS: u32 = 64;

impl<T> Lock<T> {
    /// `shared`: several threads may come at once.
    pub fn new(shared: bool, value: T) -> Self {
        Lock { shared, taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits until the lock is free. It is not reentrant.
    #[inline(always)]
    pub fn hold(&self) -> Held<'_, T> {
        if self.shared {
            self.wait();
        }
        Held(self)
    }

    /// Takes the lock if it is free.
    pub fn try_hold(&self) -> Option<Held<'_, T>> {
        // Acquire pairs with the release of `Held::drop`. Only a taken lock makes a `Held`, because
        // dropping one releases it.
        (!self.shared || !self.taken.swap(true, Ordering::Acquire)).then(|| Held(self))
    }

    fn wait(&self) {
        let mut looks = 0;
        // Acquire pairs with the release of `Held::drop`.
        while self.taken.swap(true, Ordering::Acquire) {
            while self.taken.load(Ordering::Relaxed) {
                looks += 1;
                if looks % LOOKS == 0 {
                    std::thread::yield_now();
                }
                std::hint::spin_loop();
            }
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this `Held` has the lock.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0.shared {
            // Release pairs with the acquire of the next holder.
            self.0.taken.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One thread at a time has the lock. A failed attempt does not change it, and it is free once
    /// `Held` is dropped. Without sharing it is always granted.
    #[test]
    fn one_has_it() {
        let lock = Lock::new(true, 0);
        let held = lock.hold();
        assert!((0..2).all(|_| lock.try_hold().is_none()));
        drop(held);
        assert!(lock.try_hold().is_some());
        let alone = Lock::new(false, 0);
        let _held = alone.hold();
        assert!(alone.try_hold().is_some());
    }
}
