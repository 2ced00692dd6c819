//! References from objects to objects: those that count, so that the object cannot be closed, and
//! those in lists, which the object leaves when it is closed.

use crate::object::{Object, Shared};
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A use of an object, which is not closed before this is dropped.
pub struct Use(NonNull<AtomicUsize>);

// SAFETY: the number of users is atomic, and lives as long as the `Use`.
unsafe impl Send for Use {}

impl Use {
    pub fn of<T: Shared>(object: &T) -> Use {
        object.count().fetch_add(1, Ordering::Relaxed);
        Use(object.count().into())
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        // SAFETY: `close` refuses to end the object while its number of users is not zero.
        unsafe { self.0.as_ref() }.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reference to an object that counts as its user.
pub struct Ref<T: Shared>(NonNull<T>);

// SAFETY: several threads may use an object, by the promise of `Object`.
unsafe impl<T: Shared> Send for Ref<T> {}
// SAFETY: likewise, by the promise of `Object`.
unsafe impl<T: Shared> Sync for Ref<T> {}

impl<T: Shared> Ref<T> {
    pub fn to(object: &T) -> Ref<T> {
        std::mem::forget(Use::of(object));
        Ref(object.into())
    }
}

impl<T: Shared> Clone for Ref<T> {
    fn clone(&self) -> Ref<T> {
        Ref::to(self)
    }
}

impl<T: Shared> Deref for Ref<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: `close` refuses to end the object while its number of users is not zero.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Shared> Drop for Ref<T> {
    fn drop(&mut self) {
        self.count().fetch_sub(1, Ordering::Relaxed);
    }
}

/// A reference that threads read while another one replaces it.
pub struct AtomicRef<T: Shared>(AtomicPtr<T>);

impl<T: Shared> Default for AtomicRef<T> {
    fn default() -> Self {
        AtomicRef(AtomicPtr::default())
    }
}

impl<T: Shared> AtomicRef<T> {
    #[inline]
    pub fn get(&self) -> Option<&T> {
        // Acquire pairs with the release of `set`.
        // SAFETY: null, or a pointer of a `Ref`. A program does not close what a call on another
        // thread reports to: fi_av_bind(3), fi_mr_bind(3).
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    pub fn set(&self, object: Ref<T>) {
        let new = std::mem::ManuallyDrop::new(object).0;
        let old = self.0.swap(new.as_ptr(), Ordering::AcqRel);
        drop(NonNull::new(old).map(Ref));
    }
}

impl<T: Shared> Drop for AtomicRef<T> {
    fn drop(&mut self) {
        drop(NonNull::new(*self.0.get_mut()).map(Ref));
    }
}

/// A reference in a list, which the object leaves when it closes.
pub struct Listed<T>(NonNull<T>);

// SAFETY: several threads may use an object, by the promise of `Object`.
unsafe impl<T: Object> Send for Listed<T> {}

impl<T: Object> Listed<T> {
    /// # Safety
    /// The object's `close` drops this and its copies.
    pub unsafe fn new(object: &T) -> Listed<T> {
        Listed(object.into())
    }

    /// Whether this is the object.
    pub fn is(&self, object: &T) -> bool {
        std::ptr::eq(self.0.as_ptr(), object)
    }
}

impl<T> Clone for Listed<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Listed<T> {}

impl<T> PartialEq for Listed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Deref for Listed<T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the object is open while this exists, by the promise of `new`.
        unsafe { self.0.as_ref() }
    }
}
