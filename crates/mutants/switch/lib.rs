//! Which mutant is active in this process. This crate stands only in the copy of the sources that
//! the mutants are built in.
//!
//! `MUTANT=n` makes mutant n active. `MUTANT_REACH=file` instead records which mutants a process
//! and its children reach: byte n of the file becomes 1. With neither, no mutant is active.

#![feature(const_eval_select, core_intrinsics)]
#![allow(internal_features)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering::Relaxed};

/// The active mutant; none is 0.
static ACTIVE: AtomicU32 = AtomicU32::new(0);
/// The mapped file of what was reached, if that is recorded.
static REACHED: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
static SIZE: AtomicU32 = AtomicU32::new(0);

/// Whether mutant `id` is active. Constants are computed without mutants.
#[inline(always)]
pub const fn on(id: u32) -> bool {
    core::intrinsics::const_eval_select((id,), constant, running)
}

const fn constant(_: u32) -> bool {
    false
}

#[inline]
fn running(id: u32) -> bool {
    let reached = REACHED.load(Relaxed);
    if reached.is_null() {
        return ACTIVE.load(Relaxed) == id;
    }
    if id < SIZE.load(Relaxed) {
        // SAFETY: the map has SIZE bytes and is never taken away; races write the same value.
        unsafe { ptr::write_volatile(reached.add(id as usize), 1) };
    }
    false
}

unsafe extern "C" {
    fn getenv(name: *const c_char) -> *const c_char;
    fn open(path: *const c_char, flags: c_int, ...) -> c_int;
    fn lseek(file: c_int, offset: i64, whence: c_int) -> i64;
    fn mmap(at: *mut c_void, size: usize, prot: c_int, flags: c_int, file: c_int, offset: i64)
    -> *mut c_void;
    fn close(file: c_int) -> c_int;
}

/// Runs before `main`, so that no test sees its system calls.
#[used]
#[unsafe(link_section = ".init_array")]
static INIT: extern "C" fn() = init;

extern "C" fn init() {
    // SAFETY: the names end with NUL, what `getenv` returns is a string or null, and the map is
    // checked.
    unsafe {
        let active = getenv(c"MUTANT".as_ptr());
        if !active.is_null() {
            let number = CStr::from_ptr(active).to_str().ok().and_then(|text| text.parse().ok());
            ACTIVE.store(number.expect("MUTANT is the number of a mutant"), Relaxed);
        }
        let path = getenv(c"MUTANT_REACH".as_ptr());
        if path.is_null() {
            return;
        }
        let (read_write, end, shared) = (2, 2, 1);
        let file = open(path, read_write);
        // A test may have given up its rights, or have another root: what it reaches is not seen.
        if file < 0 {
            return;
        }
        let size = lseek(file, 0, end).max(0) as usize;
        let map = mmap(ptr::null_mut(), size, 3, shared, file, 0);
        close(file);
        if map as isize != -1 {
            SIZE.store(size as u32, Relaxed);
            REACHED.store(map.cast(), Relaxed);
        }
    }
}
