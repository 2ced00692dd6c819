//! Sockets: from open to close.

use crate::{errno, fail, inside, is_inside, stream};
use bellwire_rdmacm::Patience;
use bellwire_rsockets::{Socket, c, calls, say};
use libc::{c_int, c_long, c_ulong, c_void, sockaddr, socklen_t};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a host may take to say whether somebody listens by this protocol.
const PATIENCE: Patience = Patience { silent: Duration::from_millis(300), nobody: Duration::ZERO };
/// How long a connection may take after that. A program that does not block waits meanwhile.
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// `socket(2)`
#[unsafe(no_mangle)]
pub extern "C" fn socket(family: c_int, kind: c_int, protocol: c_int) -> c_int {
    let ordinary = next!(socket(family => c_int, kind => c_int, protocol => c_int) -> c_int);
    let bare = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    let is_stream = matches!(family, libc::AF_INET | libc::AF_INET6)
        && bare == libc::SOCK_STREAM
        && matches!(protocol, 0 | libc::IPPROTO_TCP);
    if ordinary < 0 || !is_stream || is_inside() {
        return ordinary;
    }
    inside(|| match calls::open(family, kind, protocol) {
        Ok(number) => {
            // SAFETY: it was opened above.
            let ordinary = unsafe { OwnedFd::from_raw_fd(ordinary) };
            set_close_on_exec(ordinary.as_raw_fd());
            let opened = calls::stream(number).expect("it was opened above");
            opened.set_beside(ordinary, PATIENCE);
            number
        }
        Err(error) => {
            say(format_args!("a socket stays the kernel's: {error}"));
            ordinary
        }
    })
}

fn set_close_on_exec(number: c_int) {
    // SAFETY: it takes numbers.
    unsafe { libc::syscall(libc::SYS_fcntl, number, libc::F_SETFD, libc::FD_CLOEXEC) };
}

/// The ordinary socket takes the place of the stream.
fn give_way(number: c_int, socket: &Arc<Socket>, why: &dyn std::fmt::Display) {
    say(format_args!("{number} is an ordinary socket now: {why}"));
    inside(|| {
        let Some(ordinary) = socket.take_beside() else { return };
        // SAFETY: it takes numbers.
        let flags = unsafe { libc::syscall(libc::SYS_fcntl, number, libc::F_GETFD, 0) } as c_int;
        let flags = if flags & libc::FD_CLOEXEC != 0 { libc::O_CLOEXEC } else { 0 };
        // It was found by this number.
        let _ = calls::release(number);
        // SAFETY: the number is the program's, and means the other socket from now on.
        unsafe { libc::syscall(libc::SYS_dup3, ordinary.as_raw_fd(), number, flags) };
    });
}

/// `bind(2)`
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bind(number: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    let Some(socket) = stream(number) else {
        return next!(bind(number => c_int, to => *const sockaddr, length => socklen_t) -> c_int);
    };
    let bind_ordinary = |ordinary: c_int| next!(bind(ordinary => c_int, to => *const sockaddr, length => socklen_t) -> c_int);
    if socket.with_beside(bind_ordinary).unwrap_or(0) < 0 {
        return -1;
    }
    // The kernel may have chosen the port.
    let bound = inside(|| {
        // SAFETY: the caller's promise.
        let mut at = unsafe { c::address(to, length) }?;
        if at.port() == 0 {
            at.set_port(socket.with_beside(port_of).unwrap_or(0));
        }
        socket.bind(at)
    });
    if let Err(error) = bound {
        give_way(number, &socket, &format_args!("bind: {error}"));
    }
    0
}

/// The port that an ordinary socket is bound to.
fn port_of(ordinary: c_int) -> u16 {
    // SAFETY: all its fields are numbers.
    let mut at: libc::sockaddr_in6 = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&at) as socklen_t;
    let to = (&raw mut at).cast::<sockaddr>();
    // The port has the same place in both families.
    match next!(getsockname(ordinary => c_int, to => *mut sockaddr, &raw mut length => *mut socklen_t) -> c_int)
    {
        0 => u16::from_be(at.sin6_port),
        _ => 0,
    }
}

/// `listen(2)`
#[unsafe(no_mangle)]
pub extern "C" fn listen(number: c_int, backlog: c_int) -> c_int {
    let Some(socket) = stream(number) else {
        return next!(listen(number => c_int, backlog => c_int) -> c_int);
    };
    let listen_ordinary = |ordinary: c_int| {
        let result = next!(listen(ordinary => c_int, backlog => c_int) -> c_int);
        // Both are asked in turn.
        // SAFETY: it takes numbers.
        unsafe { libc::syscall(libc::SYS_fcntl, ordinary, libc::F_SETFL, libc::O_NONBLOCK) };
        result
    };
    if socket.with_beside(listen_ordinary).unwrap_or(0) < 0 {
        return -1;
    }
    let listens = inside(|| {
        let port = socket.with_beside(port_of).unwrap_or(0);
        if socket.local().port() == 0 {
            socket.bind(std::net::SocketAddrV4::new([0, 0, 0, 0].into(), port))?;
        }
        socket.listen(backlog)
    });
    if let Err(error) = listens {
        give_way(number, &socket, &format_args!("listen: {error}"));
        // SAFETY: it takes numbers.
        unsafe { libc::syscall(libc::SYS_fcntl, number, libc::F_SETFL, 0) };
    }
    0
}

/// `accept(2)`
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(
    number: c_int,
    from: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { accept4(number, from, length, 0) }
}

/// `accept4(2)`
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(
    number: c_int,
    from: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    if stream(number).is_none() {
        return next!(accept4(number => c_int, from => *mut sockaddr, length => *mut socklen_t, flags => c_int) -> c_int);
    }
    // SAFETY: the caller's promise.
    inside(|| unsafe { c::accept4(number, from, length, flags) })
}

/// `connect(2)`
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(number: c_int, to: *const sockaddr, length: socklen_t) -> c_int {
    if let Some(socket) = stream(number) {
        // SAFETY: the caller's promise.
        let to = unsafe { c::address(to, length) };
        let connected = inside(|| {
            let to = to?;
            socket.begin_to_connect(to)?;
            calls::connected(&socket, Some(Instant::now() + CONNECT_LIMIT))
        });
        match connected {
            Ok(()) => {
                drop(socket.take_beside());
                return 0;
            }
            Err(error) if matches!(error.raw_os_error(), Some(libc::EISCONN)) => {
                return fail(libc::EISCONN);
            }
            Err(error) => give_way(number, &socket, &format_args!("connect: {error}")),
        }
    }
    next!(connect(number => c_int, to => *const sockaddr, length => socklen_t) -> c_int)
}

/// `shutdown(2)`
#[unsafe(no_mangle)]
pub extern "C" fn shutdown(number: c_int, how: c_int) -> c_int {
    match stream(number) {
        Some(socket) => {
            socket.with_beside(|it| next!(shutdown(it => c_int, how => c_int) -> c_int));
            inside(|| c::rshutdown(number, how))
        }
        None => next!(shutdown(number => c_int, how => c_int) -> c_int),
    }
}

/// `close(2)`
#[unsafe(no_mangle)]
pub extern "C" fn close(number: c_int) -> c_int {
    if stream(number).is_some() {
        return inside(|| c::rclose(number));
    }
    if !is_inside() {
        calls::forget_of_parent(number);
    }
    next!(close(number => c_int) -> c_int)
}

/// `getpeername(2)`
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getpeername(
    number: c_int,
    to: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    match stream(number) {
        // SAFETY: the caller's promise.
        Some(_) => inside(|| unsafe { c::rgetpeername(number, to, length) }),
        None => {
            next!(getpeername(number => c_int, to => *mut sockaddr, length => *mut socklen_t) -> c_int)
        }
    }
}

/// `getsockname(2)`
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockname(
    number: c_int,
    to: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    match stream(number) {
        // SAFETY: the caller's promise.
        Some(_) => inside(|| unsafe { c::rgetsockname(number, to, length) }),
        None => {
            next!(getsockname(number => c_int, to => *mut sockaddr, length => *mut socklen_t) -> c_int)
        }
    }
}

/// `setsockopt(2)`. The ordinary socket beside a stream gets all options, and its answer counts for
/// those that a stream does not know.
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    number: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    let set = |number: c_int| next!(setsockopt(number => c_int, level => c_int, name => c_int, value => *const c_void, length => socklen_t) -> c_int);
    let Some(socket) = stream(number) else { return set(number) };
    let beside = socket.with_beside(set);
    let kept = errno();
    // SAFETY: the caller's promise.
    let own = inside(|| unsafe { c::rsetsockopt(number, level, name, value, length) });
    match beside {
        Some(result) if own < 0 && errno() == libc::ENOPROTOOPT => {
            fail(kept);
            result
        }
        _ => own,
    }
}

/// `getsockopt(2)`
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    number: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    match stream(number) {
        // SAFETY: the caller's promise.
        Some(_) => inside(|| unsafe { c::rgetsockopt(number, level, name, value, length) }),
        None => {
            next!(getsockopt(number => c_int, level => c_int, name => c_int, value => *mut c_void, length => *mut socklen_t) -> c_int)
        }
    }
}

/// `fcntl(2)`. An argument that was not passed is a register with any value, which is passed on and
/// not used.
#[unsafe(no_mangle)]
pub extern "C" fn fcntl(number: c_int, command: c_int, argument: c_long) -> c_int {
    let Some(socket) = stream(number) else {
        return next!(fcntl(number => c_int, command => c_int, argument => c_long) -> c_int);
    };
    if command == libc::F_SETFL && !socket.is_listening() {
        socket.with_beside(
            |it| next!(fcntl(it => c_int, command => c_int, argument => c_long) -> c_int),
        );
    }
    inside(|| c::rfcntl(number, command, argument))
}

/// `fcntl(2)` of programs with large files.
#[unsafe(no_mangle)]
pub extern "C" fn fcntl64(number: c_int, command: c_int, argument: c_long) -> c_int {
    fcntl(number, command, argument)
}

/// `ioctl(2)`: whether a socket blocks, and how much waits to be read.
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ioctl(number: c_int, request: c_ulong, argument: *mut c_int) -> c_int {
    if let Some(socket) = stream(number) {
        match request {
            libc::FIONBIO if !argument.is_null() => {
                // SAFETY: the argument of this request is a number: ioctl(2).
                let flags = if unsafe { *argument } != 0 { libc::O_NONBLOCK } else { 0 };
                return fcntl(number, libc::F_SETFL, flags.into());
            }
            libc::FIONREAD if !argument.is_null() => {
                let unread = inside(|| socket.unread_bytes());
                // SAFETY: as above.
                unsafe { *argument = c_int::try_from(unread).unwrap_or(c_int::MAX) };
                return 0;
            }
            _ => {}
        }
    }
    next!(ioctl(number => c_int, request => c_ulong, argument => *mut c_int) -> c_int)
}

/// After the kernel has made a copy.
fn copied(number: c_int, copy: c_int) -> c_int {
    if copy >= 0 && stream(number).is_some() {
        inside(|| calls::copied(number, copy).expect("it is a stream"));
    }
    copy
}

/// A number is about to be replaced.
fn replaced(number: c_int) {
    if stream(number).is_some() {
        // Its descriptor is closed by who replaces it.
        let _ = inside(|| calls::release(number));
    } else if !is_inside() {
        calls::forget_of_parent(number);
    }
}

/// `dup(2)`
#[unsafe(no_mangle)]
pub extern "C" fn dup(number: c_int) -> c_int {
    copied(number, next!(dup(number => c_int) -> c_int))
}

/// `dup2(2)`
#[unsafe(no_mangle)]
pub extern "C" fn dup2(number: c_int, copy: c_int) -> c_int {
    if number != copy {
        replaced(copy);
    }
    let result = next!(dup2(number => c_int, copy => c_int) -> c_int);
    if number == copy { result } else { copied(number, result) }
}

/// `dup3(2)`
#[unsafe(no_mangle)]
pub extern "C" fn dup3(number: c_int, copy: c_int, flags: c_int) -> c_int {
    if number != copy {
        replaced(copy);
    }
    copied(number, next!(dup3(number => c_int, copy => c_int, flags => c_int) -> c_int))
}
