//! Calls that Bellwire does not offer: each fails as its manual page says, and says so once.

use crate::errno::set;
use std::collections::HashSet;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

/// Names that were reported.
static REPORTED: Mutex<Option<HashSet<usize>>> = Mutex::new(None);

fn report(name: *const c_char) {
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    if reported.get_or_insert_default().insert(name as usize) {
        // SAFETY: the name of an export is a string in this library.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        eprintln!("bellwire: {name} is not offered; docs/verbs.md says what is");
    }
}

/// Answers by a null pointer.
pub extern "C" fn null(name: *const c_char) -> *mut c_void {
    report(name);
    set(libc::EOPNOTSUPP);
    null_mut()
}

/// Answers by the error.
pub extern "C" fn errno(name: *const c_char) -> c_int {
    report(name);
    set(libc::EOPNOTSUPP)
}

/// Answers by -1, of whatever size.
pub extern "C" fn minus(name: *const c_char) -> isize {
    report(name);
    set(libc::EOPNOTSUPP);
    -1
}

/// Registrations of drivers and the like: nothing is lost by ignoring them.
pub extern "C" fn void(_: *const c_char) {}
