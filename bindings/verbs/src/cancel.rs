//! Threads that are cancelled (pthread_cancel(3)) while a call waits for an event.
//!
//! With rdma-core such calls wait in read(2), where a thread may be cancelled. Here they return ten
//! times a second to a frame that holds nothing. Only there may the thread be cancelled, because
//! that unwinds its stack.

use std::ffi::c_int;
use std::io;

const DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// Repeats `wait` until it has a result or fails. It holds nothing that has to be dropped.
pub fn repeat<T>(wait: impl Fn() -> io::Result<Option<T>>) -> io::Result<T> {
    loop {
        // SAFETY: no frame from here to the program's has anything to drop.
        unsafe { pthread_testcancel() };
        let mut before = 0;
        // SAFETY: the call writes a number.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut before) };
        let result = wait();
        // SAFETY: what the call before has given.
        unsafe { pthread_setcancelstate(before, &raw mut before) };
        match result {
            Ok(Some(value)) => return Ok(value),
            Ok(None) => {}
            Err(error) => return Err(error),
        }
    }
}
