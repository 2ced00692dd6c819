//! Error numbers, and what calls return.

use std::ffi::c_int;
use std::num::NonZero;

/// An error number, negated as calls return it: then it needs no instruction on the way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(NonZero<isize>);

/// The result of a call: a number of things, or nothing.
pub type Result<T = ()> = std::result::Result<T, Errno>;

impl Errno {
    /// For the constants in [`crate::abi::error`]; `number` is not zero.
    pub const fn new(number: c_int) -> Errno {
        Errno(NonZero::new(-(number as isize)).expect("an error has a number"))
    }

    /// The positive number, for entries of queues.
    pub const fn number(self) -> c_int {
        -(self.0.get() as c_int)
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
        error.0.get()
    }
}

/// What a call has done, as a number that is not negative.
pub trait Count {
    fn count(self) -> usize;
}

impl Count for () {
    #[inline(always)]
    fn count(self) -> usize {
        0
    }
}

impl Count for usize {
    #[inline(always)]
    fn count(self) -> usize {
        self
    }
}

/// The code of a result.
#[inline(always)]
pub fn answer<T: Count, C: Code>(result: Result<T>) -> C {
    match result {
        Ok(done) => C::of_count(done.count()),
        Err(error) => C::of_error(error),
    }
}

/// The code of what `body` does.
pub fn call<T: Count, C: Code>(body: impl FnOnce() -> Result<T>) -> C {
    answer(body())
}
