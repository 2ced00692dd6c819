//! Pointers of C calls. The signature of a call says what each may be, and the call itself is safe
//! code: the promise of the program stands once, at the entry.

use crate::abi::Return;
use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

/// A place for a result. It is null, or has room for a `T` until the call returns. C may align it
/// less than Rust would.
#[repr(transparent)]
pub struct Out<'a, T>(*mut T, PhantomData<&'a mut T>);

impl<T> Out<'_, T> {
    /// Refuses null.
    ///
    /// # Errors
    /// [`Return::InvalidParameter`].
    pub fn check(&self) -> Result<(), Return> {
        if self.0.is_null() { Err(Return::InvalidParameter) } else { Ok(()) }
    }

    /// The place, which the program promises to be null or writable.
    pub fn as_ptr(&self) -> *mut T {
        self.0
    }

    /// # Errors
    /// As [`Out::check`].
    pub fn write(&self, value: T) -> Result<(), Return> {
        self.check()?;
        // SAFETY: not null, so the program promises that it is writable.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }
}

impl<'a, T> From<&'a mut T> for Out<'a, T> {
    fn from(place: &'a mut T) -> Self {
        Out(place, PhantomData)
    }
}

/// A value that the program passes by address: null, or readable until the call returns. C may
/// align it less than Rust would.
#[repr(transparent)]
pub struct In<'a, T>(*const T, PhantomData<&'a T>);

impl<T> In<'_, T> {
    /// # Safety
    /// `address` is null, or as the call that takes it says.
    pub unsafe fn new(address: *const T) -> Self {
        In(address, PhantomData)
    }

    /// Refuses null.
    ///
    /// # Errors
    /// [`Return::InvalidParameter`].
    pub fn check(&self) -> Result<(), Return> {
        if self.0.is_null() { Err(Return::InvalidParameter) } else { Ok(()) }
    }

    /// The address, which the program promises to be null or readable.
    pub fn as_ptr(&self) -> *const T {
        self.0
    }
}

/// A string that ends with a zero, or null.
pub type Text<'a> = In<'a, c_char>;

impl Text<'_> {
    /// The text; empty for null.
    pub fn to_text(&self) -> String {
        if self.0.is_null() {
            return String::new();
        }
        // SAFETY: not null, so the program promises that it ends with a zero.
        unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned()
    }
}

/// Runs a call from C: no panic unwinds into C.
pub fn call(work: impl FnOnce() -> Result<(), Return>) -> Return {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(Ok(())) => Return::Success,
        Ok(Err(code)) => code,
        Err(_) => Return::Error,
    }
}
