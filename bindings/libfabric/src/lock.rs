//! A lock that costs nothing where the program promises to be alone.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};

/// Something that one thread uses at a time.
pub struct Lock<T> {
    /// Whether the program leaves it to us that only one does.
    shared: bool,
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time gets at the value: by the flag, or by the program's promise.
unsafe impl<T: Send> Sync for Lock<T> {}

/// The value, until it is dropped.
pub struct Held<'a, T>(&'a Lock<T>);

/// Looks between two offers of the processor to others.
const LOOKS: u32 = 64;

impl<T> Lock<T> {
    /// `shared`: threads may come at the same time.
    pub fn new(shared: bool, value: T) -> Self {
        Lock { shared, taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits until nobody else has it. A thread does not take it twice.
    #[inline(always)]
    pub fn hold(&self) -> Held<'_, T> {
        if self.shared {
            self.wait();
        }
        Held(self)
    }

    /// Takes it if nobody has it.
    pub fn try_hold(&self) -> Option<Held<'_, T>> {
        // Acquire pairs with the release of `Held::drop`. Only who has taken it makes a `Held`, as dropping one gives it back.
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
        // SAFETY: this one has it.
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
            // Release pairs with the acquire of whoever takes it next.
            self.0.taken.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One thread at a time has it: trying in vain gives it to nobody else, and it is free once it is dropped. Without sharing, it costs nothing and is always had.
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
