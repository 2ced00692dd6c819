//! Error numbers, and what calls return.

use std::ffi::c_int;
use std::num::NonZero;

/// The positive number of an error; calls return it negated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(NonZero<c_int>);

/// The result of a call: a number of things, or nothing.
pub type Result<T = ()> = std::result::Result<T, Errno>;

impl Errno {
    /// For the constants in [`crate::abi::error`]; `number` is not zero.
    pub const fn new(number: c_int) -> Errno {
        Errno(NonZero::new(number).expect("an error has a number"))
    }

    /// The positive number, for entries of queues.
    pub const fn number(self) -> c_int {
        self.0.get()
    }
}

/// What C gets: an `int` or an `ssize_t`.
pub trait Code {
    /// A number that is not negative.
    fn of_count(count: usize) -> Self;
    /// A negated error number.
    fn of_error(error: Errno) -> Self;
}

impl Code for c_int {
    fn of_count(count: usize) -> c_int {
        count as c_int
    }

    fn of_error(error: Errno) -> c_int {
        -error.number()
    }
}

impl Code for isize {
    #[inline(always)]
    fn of_count(count: usize) -> isize {
        count as isize
    }

    #[inline(always)]
    fn of_error(error: Errno) -> isize {
        -(error.number() as isize)
    }
}

/// The code of a call that returns a number.
#[inline(always)]
pub fn count<C: Code>(result: Result<usize>) -> C {
    match result {
        Ok(count) => C::of_count(count),
        Err(error) => C::of_error(error),
    }
}

/// The code of a call that returns zero.
#[inline(always)]
pub fn status<C: Code>(result: Result) -> C {
    match result {
        Ok(()) => C::of_count(0),
        Err(error) => C::of_error(error),
    }
}
