//! The calls of C: `rdma/rsocket.h`. Each returns -1 and sets `errno` as the call without its `r`.

mod data;
mod memory;
mod options;
mod wait;

pub use data::*;
pub use memory::*;
pub use options::*;
pub use wait::*;

use crate::calls::{self, Accepted};
use crate::state::error;
use libc::{c_int, c_void, sockaddr, socklen_t, ssize_t};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};

/// A number as C has it.
trait Answer {
    const FAILED: Self;
}

macro_rules! answers {
    ($($type:ty)*) => {$(impl Answer for $type { const FAILED: $type = -1; })*};
}
answers! { c_int ssize_t }

/// The result, or -1 and `errno`.
fn answer<T: Answer>(result: io::Result<T>) -> T {
    result.unwrap_or_else(|error| {
        // SAFETY: the address of this thread's own number.
        unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(number_of(&error)) };
        T::FAILED
    })
}

fn number_of(error: &io::Error) -> c_int {
    use io::ErrorKind as K;
    match error.kind() {
        K::InvalidInput => libc::EINVAL,
        K::Unsupported => libc::EAFNOSUPPORT,
        K::ConnectionReset => libc::ECONNRESET,
        K::NotConnected => libc::ENOTCONN,
        _ => libc::EIO,
    }
}

// Addresses.

/// Reads an address: IPv4, or IPv6 that stands for it.
///
/// # Errors
/// `EINVAL`: it is too short. `EAFNOSUPPORT`, and `EADDRNOTAVAIL` for true IPv6.
///
/// # Safety
/// `address` is null, or has `length` bytes.
pub unsafe fn address(address: *const sockaddr, length: socklen_t) -> io::Result<SocketAddrV4> {
    let has = |bytes: usize| length as usize >= bytes && !address.is_null();
    if !has(2) {
        return Err(error(libc::EINVAL));
    }
    // SAFETY: it has a family.
    match i32::from(unsafe { (*address).sa_family }) {
        libc::AF_INET if has(size_of::<libc::sockaddr_in>()) => {
            // SAFETY: it is as long.
            let it = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            let host = Ipv4Addr::from(u32::from_be(it.sin_addr.s_addr));
            Ok(SocketAddrV4::new(host, u16::from_be(it.sin_port)))
        }
        // An address may lack its scope, as in RFC 2133.
        libc::AF_INET6 if has(size_of::<libc::sockaddr_in6>() - 4) => {
            let mut it = no_address();
            let bytes = size_of::<libc::sockaddr_in6>() - 4;
            // SAFETY: it has that many bytes.
            unsafe {
                std::ptr::copy_nonoverlapping(address.cast::<u8>(), (&raw mut it).cast(), bytes)
            };
            let host = match Ipv6Addr::from(it.sin6_addr.s6_addr) {
                Ipv6Addr::UNSPECIFIED => Some(Ipv4Addr::UNSPECIFIED),
                Ipv6Addr::LOCALHOST => Some(Ipv4Addr::LOCALHOST),
                other => other.to_ipv4_mapped(),
            };
            let host = host.ok_or_else(|| error(libc::EADDRNOTAVAIL))?;
            Ok(SocketAddrV4::new(host, u16::from_be(it.sin6_port)))
        }
        libc::AF_INET | libc::AF_INET6 => Err(error(libc::EINVAL)),
        _ => Err(error(libc::EAFNOSUPPORT)),
    }
}

fn no_address() -> libc::sockaddr_in6 {
    // SAFETY: all its fields are numbers.
    unsafe { std::mem::zeroed() }
}

/// Writes an address as a socket of this family has it, as much as there is room for.
///
/// # Safety
/// `to` is null, or has `*length` bytes.
unsafe fn give(at: SocketAddrV4, family: c_int, to: *mut sockaddr, length: *mut socklen_t) {
    if to.is_null() || length.is_null() {
        return;
    }
    let port = at.port().to_be();
    let copy = |from: *const u8, bytes: usize| {
        // SAFETY: the caller's promise.
        unsafe {
            let room = (*length as usize).min(bytes);
            std::ptr::copy_nonoverlapping(from, to.cast(), room);
            *length = bytes as socklen_t;
        }
    };
    if family == libc::AF_INET6 {
        let mut it = no_address();
        it.sin6_family = libc::AF_INET6 as libc::sa_family_t;
        it.sin6_port = port;
        it.sin6_addr.s6_addr = match *at.ip() {
            Ipv4Addr::UNSPECIFIED => Ipv6Addr::UNSPECIFIED.octets(),
            host => host.to_ipv6_mapped().octets(),
        };
        copy((&raw const it).cast(), size_of_val(&it));
    } else {
        let it = libc::sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: port,
            sin_addr: libc::in_addr { s_addr: u32::from(*at.ip()).to_be() },
            sin_zero: [0; 8],
        };
        copy((&raw const it).cast(), size_of_val(&it));
    }
}

/// Bytes of the program.
///
/// # Safety
/// `start` has `length` bytes for as long as the answer is used, which nobody writes meanwhile.
unsafe fn bytes<'a>(start: *const c_void, length: usize) -> &'a [u8] {
    if start.is_null() || length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(start.cast(), length.min(isize::MAX as usize)) }
}

/// Room of the program.
///
/// # Safety
/// `start` has `length` bytes for as long as the answer is used, which nobody uses meanwhile.
unsafe fn room<'a>(start: *mut c_void, length: usize) -> &'a mut [u8] {
    if start.is_null() || length == 0 {
        return &mut [];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts_mut(start.cast(), length.min(isize::MAX as usize)) }
}

// Connections.

/// `socket(2)`
pub extern "C" fn rsocket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
    answer(calls::open(family, kind, protocol))
}

/// `bind(2)`
///
/// # Safety
/// `to` is null, or has `length` bytes.
pub unsafe extern "C" fn rbind(socket: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    let done = unsafe { address(to, length) }.and_then(|to| calls::find(socket)?.bind(to));
    answer(done.map(|()| 0))
}

/// `listen(2)`
pub extern "C" fn rlisten(socket: c_int, backlog: c_int) -> c_int {
    answer(calls::find(socket).and_then(|socket| socket.listen(backlog)).map(|()| 0))
}

/// `accept(2)`
///
/// # Safety
/// `from` is null, or has `*length` bytes.
pub unsafe extern "C" fn raccept(
    socket: c_int,
    from: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { accept4(socket, from, length, 0) }
}

/// `accept4(2)`
///
/// # Safety
/// `from` is null, or has `*length` bytes.
pub unsafe fn accept4(
    socket: c_int,
    from: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    answer((|| {
        let socket = calls::find(socket)?;
        match calls::accept(&socket, flags)? {
            Accepted::Socket(number, peer) => {
                // SAFETY: the caller's promise.
                unsafe { give(peer, socket.family, from, length) };
                Ok(number)
            }
            Accepted::Ordinary(number) => {
                if !from.is_null() && !length.is_null() {
                    // SAFETY: the caller's promise.
                    unsafe { libc::getpeername(number, from, length) };
                }
                Ok(number)
            }
        }
    })())
}

/// `connect(2)`
///
/// # Safety
/// `to` is null, or has `length` bytes.
pub unsafe extern "C" fn rconnect(socket: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's promise.
    let to = unsafe { address(to, length) };
    answer(to.and_then(|to| calls::connect(&calls::find(socket)?, to)).map(|()| 0))
}

/// `shutdown(2)`
pub extern "C" fn rshutdown(socket: c_int, how: c_int) -> c_int {
    answer(calls::find(socket).and_then(|socket| socket.shutdown(how)).map(|()| 0))
}

/// `close(2)`
pub extern "C" fn rclose(socket: c_int) -> c_int {
    answer(calls::close(socket).map(|()| 0))
}

/// `getpeername(2)`
///
/// # Safety
/// `to` is null, or has `*length` bytes.
pub unsafe extern "C" fn rgetpeername(
    socket: c_int,
    to: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let found = calls::find(socket).and_then(|socket| Ok((socket.peer()?, socket.family)));
    // SAFETY: the caller's promise.
    answer(found.map(|(peer, family)| unsafe { give(peer, family, to, length) }).map(|()| 0))
}

/// `getsockname(2)`
///
/// # Safety
/// `to` is null, or has `*length` bytes.
pub unsafe extern "C" fn rgetsockname(
    socket: c_int,
    to: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    let found = calls::find(socket).map(|socket| (socket.local(), socket.family));
    // SAFETY: the caller's promise.
    answer(found.map(|(local, family)| unsafe { give(local, family, to, length) }).map(|()| 0))
}
