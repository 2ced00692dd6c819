//! The functions that would have been called without this library.

use libc::c_void;
use std::ffi::CStr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Finds the function of this name.
pub fn find(name: &'static CStr, known: &AtomicPtr<c_void>) -> *mut c_void {
    // Relaxed: all threads find the same.
    let function = known.load(Ordering::Relaxed);
    if !function.is_null() {
        return function;
    }
    // SAFETY: dlsym(3) takes a string.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    assert!(!function.is_null(), "the C library has {name:?}");
    known.store(function, Ordering::Relaxed);
    function
}

/// `next!(name(argument: type, ...) -> result)` calls the function. It is unsafe as the function
/// is.
macro_rules! next {
    ($name:ident($($argument:expr => $type:ty),* $(,)?) -> $result:ty) => {{
        static NEXT: std::sync::atomic::AtomicPtr<libc::c_void> =
            std::sync::atomic::AtomicPtr::new(std::ptr::null_mut());
        const NAME: &std::ffi::CStr = match std::ffi::CStr::from_bytes_with_nul(
            concat!(stringify!($name), "\0").as_bytes(),
        ) {
            Ok(name) => name,
            Err(_) => panic!("a name has no zero"),
        };
        let next = $crate::next::find(NAME, &NEXT);
        // SAFETY: the C library's function of this name has these parameters. The program's
        // arguments are passed on as they are.
        unsafe {
            std::mem::transmute::<
                *mut libc::c_void,
                unsafe extern "C" fn($($type),*) -> $result,
            >(next)($($argument),*)
        }
    }};
}
