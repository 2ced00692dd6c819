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
pub struct Guard<'a, T>(&'a Lock<T>);

/// Spins between two yields of the processor.
const SPINS_PER_YIELD: u32 = 64;

impl<T> Lock<T> {
    /// `shared`: several threads may come at once.
    pub fn new(shared: bool, value: T) -> Self {
        Lock { shared, taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits until the lock is free. It is not reentrant.
    #[inline(always)]
    pub fn lock(&self) -> Guard<'_, T> {
        if self.shared {
            self.wait();
        }
        Guard(self)
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<Guard<'_, T>> {
        // Acquire pairs with the release of `Guard::drop`. Only a taken lock makes a `Guard`,
        // because dropping one releases it.
        (!self.shared || !self.taken.swap(true, Ordering::Acquire)).then(|| Guard(self))
    }

    fn wait(&self) {
        let mut spins = 0;
        // Acquire pairs with the release of `Guard::drop`.
        while self.taken.swap(true, Ordering::Acquire) {
            while self.taken.load(Ordering::Relaxed) {
                spins += 1;
                if spins % SPINS_PER_YIELD == 0 {
                    std::thread::yield_now();
                }
                std::hint::spin_loop();
            }
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this `Guard` has the lock, so no other reference to `value` is in use.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Guard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: this `Guard` has the lock, so no other reference to `value` is in use.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
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
    /// `Guard` is dropped. Without sharing it is always granted.
    #[test]
    fn one_has_it() {
        let lock = Lock::new(true, 0);
        let guard = lock.lock();
        assert!((0..2).all(|_| lock.try_lock().is_none()));
        drop(guard);
        assert!(lock.try_lock().is_some());
        let alone = Lock::new(false, 0);
        let _guard = alone.lock();
        assert!(alone.try_lock().is_some());
    }
}
