//! The calls of programs by number, which wait if they must.

use crate::datagram::Received;
use crate::mirror::Mirror;
use crate::runtime::Runtime;
use crate::socket::Socket;
use crate::state::error;
use crate::wait::{Item, deadline_in, wait};
use libc::{POLLIN, POLLOUT, c_int, c_short};
use rustix::net::SocketFlags;
use std::io;
use std::net::SocketAddrV4;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The socket of a number.
///
/// # Errors
/// `EBADF`: it is none, or one of the parent process.
pub fn find(number: RawFd) -> io::Result<Arc<Socket>> {
    stream(number).ok_or_else(|| {
        let _ = is_of_parent(number);
        error(libc::EBADF)
    })
}

/// The socket of a number, if it is one.
#[inline]
pub fn stream(number: RawFd) -> Option<Arc<Socket>> {
    Runtime::if_any().and_then(|runtime| runtime.find(number))
}

/// Whether the number is a stream of the process that forked this one. Tells the log if so.
pub fn is_of_parent(number: RawFd) -> bool {
    let is = Runtime::is_of_parent(number);
    if is {
        crate::log::say(format_args!("{number} belongs to the process that forked this one"));
    }
    is
}

/// A number of the parent process is closed in this one.
pub fn forget_of_parent(number: RawFd) {
    if Runtime::is_of_parent(number) {
        Runtime::forget_of_parent(number);
    }
}

/// A new socket of `AF_INET` or `AF_INET6`; `kind` is `SOCK_STREAM` or `SOCK_DGRAM`, with flags.
/// Returns its number.
///
/// # Errors
/// `EAFNOSUPPORT`, `EPROTONOSUPPORT`: only streams and datagrams are offered.
pub fn open(family: c_int, kind: c_int, protocol: c_int) -> io::Result<RawFd> {
    let flags = kind & (libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    if family != libc::AF_INET && family != libc::AF_INET6 {
        return Err(error(libc::EAFNOSUPPORT));
    }
    let runtime = Runtime::current();
    let socket = match (kind & !flags, protocol) {
        (libc::SOCK_STREAM, 0 | libc::IPPROTO_TCP) => Socket::new(runtime, family)?,
        (libc::SOCK_DGRAM, 0 | libc::IPPROTO_UDP) => Socket::of_datagrams(runtime, family)?,
        _ => {
            crate::log::say("only streams and datagrams are offered");
            return Err(error(libc::EPROTONOSUPPORT));
        }
    };
    number(runtime, socket, flags)
}

/// Gives a socket its number.
fn number(runtime: &Runtime, socket: Arc<Socket>, flags: c_int) -> io::Result<RawFd> {
    let mut kind = SocketFlags::empty();
    kind.set(SocketFlags::CLOEXEC, flags & libc::SOCK_CLOEXEC != 0);
    kind.set(SocketFlags::NONBLOCK, flags & libc::SOCK_NONBLOCK != 0);
    let (mirror, near) = Mirror::new(kind)?;
    socket.set_nonblocking(flags & libc::SOCK_NONBLOCK != 0);
    let number = socket.number(mirror, near);
    runtime.insert(number, socket);
    Ok(number)
}

/// What came to a listener.
pub enum Accepted {
    /// A number of ours.
    Socket(RawFd, SocketAddrV4),
    /// A connection at the ordinary listener beside it.
    Ordinary(RawFd),
}

/// Takes a connection.
///
/// # Errors
/// `EAGAIN`, `EINVAL`, `EINTR`.
pub fn accept(socket: &Arc<Socket>, flags: c_int) -> io::Result<Accepted> {
    let until = deadline_in(socket.with_options(|options| options.receive_timeout));
    let found =
        blocking(socket, POLLIN, socket.is_nonblocking(), until, || match socket.accept() {
            Ok(found) => Ok(Ok(found)),
            Err(error) if is_again(&error) => {
                let ordinary = socket.with_beside(|beside| accept_ordinary(beside, flags));
                ordinary.flatten().map(Err).ok_or(error)
            }
            Err(error) => Err(error),
        })?;
    match found {
        Ok(found) => {
            let peer = found.peer().unwrap_or(SocketAddrV4::new([0, 0, 0, 0].into(), 0));
            number(socket.runtime, found, flags).map(|number| Accepted::Socket(number, peer))
        }
        Err(ordinary) => Ok(Accepted::Ordinary(ordinary)),
    }
}

/// A connection at an ordinary listener, which does not block.
fn accept_ordinary(listener: RawFd, flags: c_int) -> Option<RawFd> {
    // SAFETY: no address is wanted. By its number, as a preloaded library stands in for it.
    let number = unsafe { libc::syscall(libc::SYS_accept4, listener, 0usize, 0usize, flags) };
    (number >= 0).then_some(number as RawFd)
}

/// Connects.
///
/// # Errors
/// `EINPROGRESS`: a socket that does not block is on its way. Why it cannot be.
pub fn connect(socket: &Arc<Socket>, to: SocketAddrV4) -> io::Result<()> {
    socket.begin_to_connect(to)?;
    if socket.is_nonblocking() && !socket.is_of_datagrams() {
        return Err(error(libc::EINPROGRESS));
    }
    connected(socket, None)
}

/// Waits until a connection stands, or for the deadline.
///
/// # Errors
/// Why it does not. `ETIMEDOUT`.
pub fn connected(socket: &Arc<Socket>, until: Option<Instant>) -> io::Result<()> {
    loop {
        match socket.finish_to_connect() {
            Err(error) if is_again(&error) => {}
            result => return result,
        }
        match wait(&mut [Item::of(socket, POLLOUT)], until) {
            Ok(0) => return Err(error(libc::ETIMEDOUT)),
            // It goes on after a signal's handler, as a restarted call.
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
    }
}

fn is_again(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EAGAIN)
}

/// Tries until it does not have to wait any more.
fn blocking<R>(
    socket: &Arc<Socket>,
    events: c_short,
    returns: bool,
    until: Option<Instant>,
    mut attempt: impl FnMut() -> io::Result<R>,
) -> io::Result<R> {
    loop {
        match attempt() {
            Err(error) if is_again(&error) && !returns => {}
            result => return result,
        }
        if wait(&mut [Item::of(socket, events)], until)? == 0 {
            return Err(error(libc::EAGAIN));
        }
    }
}

/// Sends all bytes, or what there is room for if it does not block.
///
/// # Errors
/// As [`Socket::send`]; after a part has gone that part is the answer.
pub fn send(socket: &Arc<Socket>, bytes: &[u8], flags: c_int) -> io::Result<usize> {
    if flags & libc::MSG_OOB != 0 {
        return Err(error(libc::EOPNOTSUPP));
    }
    each(socket, bytes.len(), flags, |sent| socket.send(&bytes[sent..]))
}

/// Writes to the peer's memory, as [`send`] does into the stream.
///
/// # Errors
/// As [`Socket::write_at`].
pub fn write_at(
    socket: &Arc<Socket>,
    bytes: &[u8],
    offset: u64,
    flags: c_int,
) -> io::Result<usize> {
    each(socket, bytes.len(), flags, |sent| socket.write_at(&bytes[sent..], offset + sent as u64))
}

fn each(
    socket: &Arc<Socket>,
    length: usize,
    flags: c_int,
    mut write: impl FnMut(usize) -> io::Result<usize>,
) -> io::Result<usize> {
    let returns = socket.is_nonblocking() || flags & libc::MSG_DONTWAIT != 0;
    let until = deadline_in(socket.with_options(|options| options.send_timeout));
    let mut sent = 0;
    while sent < length {
        match blocking(socket, POLLOUT, returns || until.is_some() && sent > 0, until, || {
            write(sent)
        }) {
            Ok(count) => sent += count,
            Err(_) if sent > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

/// Receives into the parts, one after the other. 0: the peer sends nothing any more.
///
/// # Errors
/// As [`Socket::receive`]; `EOPNOTSUPP`: a flag that is not offered.
pub fn receive(socket: &Arc<Socket>, parts: &mut [&mut [u8]], flags: c_int) -> io::Result<usize> {
    if flags & (libc::MSG_OOB | libc::MSG_TRUNC | libc::MSG_ERRQUEUE) != 0 {
        return Err(error(libc::EOPNOTSUPP));
    }
    let peeks = flags & libc::MSG_PEEK != 0;
    let waits_for_all = flags & libc::MSG_WAITALL != 0 && !peeks;
    let returns = socket.is_nonblocking() || flags & libc::MSG_DONTWAIT != 0;
    let until = deadline_in(socket.with_options(|options| options.receive_timeout));
    let mut got = 0;
    for part in parts {
        let mut filled = 0;
        while filled < part.len() {
            let has_some = got + filled > 0;
            let returns = returns || has_some && !waits_for_all;
            let attempt = || socket.receive(&mut part[filled..], peeks);
            match blocking(socket, POLLIN, returns, until, attempt) {
                Ok(0) => return Ok(got + filled),
                Ok(count) => filled += count,
                Err(_) if has_some => return Ok(got + filled),
                Err(error) => return Err(error),
            }
            if peeks {
                return Ok(got + filled);
            }
        }
        got += filled;
    }
    Ok(got)
}

/// Sends the parts as one datagram.
///
/// # Errors
/// As [`Socket::send_datagram`].
pub fn send_datagram(
    socket: &Arc<Socket>,
    parts: &[&[u8]],
    to: Option<SocketAddrV4>,
    flags: c_int,
) -> io::Result<usize> {
    if flags & libc::MSG_OOB != 0 {
        return Err(error(libc::EOPNOTSUPP));
    }
    let returns = socket.is_nonblocking() || flags & libc::MSG_DONTWAIT != 0;
    let until = deadline_in(socket.with_options(|options| options.send_timeout));
    blocking(socket, POLLOUT, returns, until, || socket.send_datagram(parts, to))
}

/// Receives a datagram into the parts, or looks at it. `None`: it was shut.
///
/// # Errors
/// As [`Socket::receive_datagram`]; `EOPNOTSUPP`: a flag that is not offered.
pub fn receive_datagram(
    socket: &Arc<Socket>,
    parts: &mut [&mut [u8]],
    flags: c_int,
) -> io::Result<Option<Received>> {
    if flags & (libc::MSG_OOB | libc::MSG_ERRQUEUE) != 0 {
        return Err(error(libc::EOPNOTSUPP));
    }
    let returns = socket.is_nonblocking() || flags & libc::MSG_DONTWAIT != 0;
    let until = deadline_in(socket.with_options(|options| options.receive_timeout));
    let peeks = flags & libc::MSG_PEEK != 0;
    blocking(socket, POLLIN, returns, until, || socket.receive_datagram(parts, peeks))
}

/// Makes `copy`, a duplicate that the kernel made of `number`, the same socket.
pub fn copied(number: RawFd, copy: RawFd) -> io::Result<()> {
    let socket = find(number)?;
    socket.add_number(copy);
    socket.runtime.insert(copy, socket.clone());
    Ok(())
}

/// Closes a number.
///
/// # Errors
/// `EBADF`.
pub fn close(number: RawFd) -> io::Result<()> {
    release(number)?;
    // By its number, so that a preloaded library does not stand in for it.
    // SAFETY: the number is the program's, which closes it.
    unsafe { rustix::io::close(number) };
    Ok(())
}

/// A number is no longer the socket's; its descriptor stays open.
///
/// # Errors
/// `EBADF`.
pub fn release(number: RawFd) -> io::Result<()> {
    if Runtime::if_any().is_none_or(|runtime| runtime.find(number).is_none())
        && Runtime::is_of_parent(number)
    {
        Runtime::forget_of_parent(number);
        return Ok(());
    }
    let socket = find(number)?;
    socket.runtime.remove(number);
    if !socket.remove_number(number) || !socket.close() {
        return Ok(());
    }
    let runtime = socket.runtime;
    if let Some(time) = socket.with_options(|options| options.linger) {
        let until = Instant::now() + time.min(Duration::from_secs(3600));
        while !socket.drain() && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    if !socket.drain() {
        runtime.service()?.drain(socket);
    }
    Ok(())
}
