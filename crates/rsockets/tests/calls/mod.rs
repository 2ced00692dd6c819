//! The calls of C, for tests.

use bellwire_rsockets::c;
use libc::{c_int, sockaddr_in, socklen_t};
use std::ffi::c_void;
use std::io;
use std::mem::zeroed;

/// What anything may take before it counts as a hang.
pub const LIMIT_MS: c_int = 60_000;

pub struct Number(pub c_int);

impl Drop for Number {
    fn drop(&mut self) {
        c::rclose(self.0);
    }
}

pub fn last() -> c_int {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

pub fn good(result: c_int) -> c_int {
    assert!(result >= 0, "{}", io::Error::last_os_error());
    result
}

/// A socket of this kind, with flags.
pub fn open(kind: c_int) -> Number {
    Number(good(c::rsocket(libc::AF_INET, kind, 0)))
}

/// Binds to a free port of the loopback, and returns it.
pub fn bind(number: &Number) -> u16 {
    let mut own = at(0);
    let mut length = ADDRESS_BYTES;
    // SAFETY: the address is as long as it says.
    unsafe {
        good(c::rbind(number.0, (&raw const own).cast(), length));
        good(c::rgetsockname(number.0, (&raw mut own).cast(), &raw mut length));
    }
    u16::from_be(own.sin_port)
}

pub fn connect(number: &Number, port: u16) -> c_int {
    let to = at(port);
    // SAFETY: the address is as long as it says.
    unsafe { c::rconnect(number.0, (&raw const to).cast(), ADDRESS_BYTES) }
}

/// An option that is a number.
pub fn option(number: &Number, level: c_int, name: c_int) -> c_int {
    let (mut value, mut length): (c_int, socklen_t) = (0, 4);
    let to = (&raw mut value).cast();
    // SAFETY: the option is a number.
    good(unsafe { c::rgetsockopt(number.0, level, name, to, &raw mut length) });
    value
}

pub fn at(port: u16) -> sockaddr_in {
    // SAFETY: all its fields are numbers.
    let mut at: sockaddr_in = unsafe { zeroed() };
    at.sin_family = libc::AF_INET as libc::sa_family_t;
    at.sin_port = port.to_be();
    at.sin_addr.s_addr = u32::from_be_bytes([127, 0, 0, 1]).to_be();
    at
}

pub const ADDRESS_BYTES: socklen_t = size_of::<sockaddr_in>() as socklen_t;

pub fn send(number: &Number, bytes: &[u8], flags: c_int) -> isize {
    // SAFETY: the bytes are as many.
    unsafe { c::rsend(number.0, bytes.as_ptr().cast(), bytes.len(), flags) }
}

pub fn receive(number: &Number, to: &mut [u8], flags: c_int) -> isize {
    // SAFETY: the room is as long.
    unsafe { c::rrecv(number.0, to.as_mut_ptr().cast::<c_void>(), to.len(), flags) }
}

pub fn poll(number: &Number, events: i16, timeout: c_int) -> i16 {
    let mut fds = [libc::pollfd { fd: number.0, events, revents: 0 }];
    // SAFETY: a list of one.
    good(unsafe { c::rpoll(fds.as_mut_ptr(), 1, timeout) });
    fds[0].revents
}

pub fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 251 + seed) as u8).collect()
}
