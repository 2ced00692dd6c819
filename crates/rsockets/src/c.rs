//! The calls of C: `rdma/rsocket.h`. Each returns -1 and sets `errno` as the call without its `r`.

use crate::calls::{self, Accepted};
use crate::options::{Options, RDMA_ROUTE, SOL_RDMA};
use crate::socket::Socket;
use crate::state::error;
use crate::wait::{Item, deadline_in, wait};
use libc::{c_int, c_long, c_short, c_void, fd_set, iovec, msghdr, nfds_t, pollfd, sockaddr};
use libc::{socklen_t, ssize_t, timeval};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

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

// Data.

/// `recv(2)`
///
/// # Safety
/// `to` has `length` bytes.
pub unsafe extern "C" fn rrecv(
    socket: c_int,
    to: *mut c_void,
    length: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    let to = unsafe { room(to, length) };
    let got = calls::find(socket).and_then(|socket| calls::receive(&socket, &mut [to], flags));
    answer(got.map(|got| got as ssize_t))
}

/// `recvfrom(2)`. A stream gives no address.
///
/// # Safety
/// `to` has `length` bytes; `from_length` is null or a length.
pub unsafe extern "C" fn rrecvfrom(
    socket: c_int,
    to: *mut c_void,
    length: usize,
    flags: c_int,
    _from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe {
        if let Some(from_length) = from_length.as_mut() {
            *from_length = 0;
        }
        rrecv(socket, to, length, flags)
    }
}

/// The parts of a list.
///
/// # Safety
/// `list` has `count` parts.
unsafe fn parts<'a>(list: *const iovec, count: usize) -> io::Result<&'a [iovec]> {
    if count > 1024 {
        return Err(error(libc::EINVAL));
    }
    if count == 0 || list.is_null() {
        return Ok(&[]);
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(list, count) })
}

/// # Safety
/// `list` has `count` parts, each with as many bytes as it says.
unsafe fn receive_list(
    socket: c_int,
    list: *const iovec,
    count: usize,
    flags: c_int,
) -> io::Result<ssize_t> {
    // SAFETY: the caller's promise.
    let mut parts: Vec<&mut [u8]> = unsafe {
        parts(list, count)?.iter().map(|part| room(part.iov_base, part.iov_len)).collect()
    };
    Ok(calls::receive(&calls::find(socket)?, &mut parts, flags)? as ssize_t)
}

/// # Safety
/// As for [`receive_list`].
unsafe fn send_list(
    socket: c_int,
    list: *const iovec,
    count: usize,
    flags: c_int,
) -> io::Result<ssize_t> {
    let socket = calls::find(socket)?;
    let mut sent = 0;
    // SAFETY: the caller's promise.
    for part in unsafe { parts(list, count) }? {
        // SAFETY: the caller's promise.
        let part = unsafe { bytes(part.iov_base, part.iov_len) };
        match calls::send(&socket, part, flags) {
            Ok(count) => sent += count as ssize_t,
            Err(_) if sent > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(sent)
}

/// `recvmsg(2)`, without control messages.
///
/// # Safety
/// `message` is a message whose parts have as many bytes as they say.
pub unsafe extern "C" fn rrecvmsg(socket: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    answer(match unsafe { message.as_mut() } {
        Some(message) => {
            (message.msg_namelen, message.msg_controllen, message.msg_flags) = (0, 0, 0);
            // SAFETY: the caller's promise.
            unsafe { receive_list(socket, message.msg_iov, message.msg_iovlen, flags) }
        }
        None => Err(error(libc::EFAULT)),
    })
}

/// `send(2)`
///
/// # Safety
/// `from` has `length` bytes.
pub unsafe extern "C" fn rsend(
    socket: c_int,
    from: *const c_void,
    length: usize,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    let from = unsafe { bytes(from, length) };
    let sent = calls::find(socket).and_then(|socket| calls::send(&socket, from, flags));
    answer(sent.map(|sent| sent as ssize_t))
}

/// `sendto(2)`. A stream takes no address.
///
/// # Safety
/// `from` has `length` bytes.
pub unsafe extern "C" fn rsendto(
    socket: c_int,
    from: *const c_void,
    length: usize,
    flags: c_int,
    to: *const sockaddr,
    _to_length: socklen_t,
) -> ssize_t {
    if !to.is_null() {
        return answer(calls::find(socket).and(Err(error(libc::EISCONN))));
    }
    // SAFETY: the caller's promise.
    unsafe { rsend(socket, from, length, flags) }
}

/// `sendmsg(2)`, without control messages.
///
/// # Safety
/// `message` is a message whose parts have as many bytes as they say.
pub unsafe extern "C" fn rsendmsg(socket: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's promise.
    answer(match unsafe { message.as_ref() } {
        Some(message) if message.msg_controllen > 0 && !message.msg_control.is_null() => {
            Err(error(libc::EOPNOTSUPP))
        }
        // SAFETY: the caller's promise.
        Some(message) => unsafe { send_list(socket, message.msg_iov, message.msg_iovlen, flags) },
        None => Err(error(libc::EFAULT)),
    })
}

/// `read(2)`
///
/// # Safety
/// `to` has `length` bytes.
pub unsafe extern "C" fn rread(socket: c_int, to: *mut c_void, length: usize) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { rrecv(socket, to, length, 0) }
}

/// `readv(2)`
///
/// # Safety
/// `list` has `count` parts, each with as many bytes as it says.
pub unsafe extern "C" fn rreadv(socket: c_int, list: *const iovec, count: c_int) -> ssize_t {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    // SAFETY: the caller's promise.
    answer(unsafe { receive_list(socket, list, count, 0) })
}

/// `write(2)`
///
/// # Safety
/// `from` has `length` bytes.
pub unsafe extern "C" fn rwrite(socket: c_int, from: *const c_void, length: usize) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { rsend(socket, from, length, 0) }
}

/// `writev(2)`
///
/// # Safety
/// `list` has `count` parts, each with as many bytes as it says.
pub unsafe extern "C" fn rwritev(socket: c_int, list: *const iovec, count: c_int) -> ssize_t {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    // SAFETY: the caller's promise.
    answer(unsafe { send_list(socket, list, count, 0) })
}

// Waiting.

/// `poll(2)`, of sockets and others.
///
/// # Safety
/// `fds` has `count` elements.
pub unsafe extern "C" fn rpoll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    let time = u64::try_from(timeout).ok().map(Duration::from_millis);
    // SAFETY: the caller's promise.
    unsafe { timed_poll(fds, count, time) }
}

/// `poll(2)` with a time; `None`: for ever.
///
/// # Safety
/// `fds` has `count` elements.
pub unsafe fn timed_poll(fds: *mut pollfd, count: nfds_t, time: Option<Duration>) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { poll(fds, count, time) })
}

/// # Safety
/// `fds` has `count` elements.
unsafe fn poll(fds: *mut pollfd, count: nfds_t, time: Option<Duration>) -> io::Result<c_int> {
    let fds = match usize::try_from(count).unwrap_or(usize::MAX) {
        0 => &mut [],
        count if count <= 1 << 20 && !fds.is_null() => {
            // SAFETY: the caller's promise.
            unsafe { std::slice::from_raw_parts_mut(fds, count) }
        }
        _ => return Err(error(libc::EINVAL)),
    };
    let item = |fd: &pollfd| Item {
        fd: fd.fd,
        socket: calls::find(fd.fd).ok(),
        events: fd.events,
        revents: 0,
    };
    let mut items: Vec<Item> = fds.iter().map(item).collect();
    let ready = wait(&mut items, deadline_in(time));
    fds.iter_mut().zip(items).for_each(|(fd, item)| fd.revents = item.revents);
    ready.map(|ready| ready as c_int)
}

/// `select(2)`, of sockets and others.
///
/// # Safety
/// Each set is null or a set; `time` is null or a time.
pub unsafe extern "C" fn rselect(
    count: c_int,
    reads: *mut fd_set,
    writes: *mut fd_set,
    others: *mut fd_set,
    time: *mut timeval,
) -> c_int {
    // SAFETY: the caller's promise.
    let time = unsafe { time.as_ref() }.map(|time| {
        Duration::from_secs(time.tv_sec.max(0) as u64)
            + Duration::from_micros(time.tv_usec.max(0) as u64)
    });
    // SAFETY: the caller's promise.
    unsafe { timed_select(count, [reads, writes, others], time) }
}

/// `select(2)` with a time; `None`: for ever.
///
/// # Safety
/// Each set is null or a set.
pub unsafe fn timed_select(count: c_int, sets: [*mut fd_set; 3], time: Option<Duration>) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { select(count, sets, time) })
}

/// # Safety
/// Each set is null or a set.
unsafe fn select(
    count: c_int,
    sets: [*mut fd_set; 3],
    time: Option<Duration>,
) -> io::Result<c_int> {
    /// What makes a descriptor a member of each set: select(2).
    const EVENTS: [(c_short, c_short); 3] = [
        (libc::POLLIN, libc::POLLIN | libc::POLLHUP | libc::POLLERR),
        (libc::POLLOUT, libc::POLLOUT | libc::POLLERR),
        (libc::POLLPRI, libc::POLLPRI),
    ];
    if count < 0 || count > libc::FD_SETSIZE as c_int {
        return Err(error(libc::EINVAL));
    }
    let mut items = Vec::new();
    for fd in 0..count {
        let mut events = 0;
        for (set, (wanted, _)) in sets.iter().zip(EVENTS) {
            // SAFETY: the caller's promise; the number is in the set's range.
            if !set.is_null() && unsafe { libc::FD_ISSET(fd, *set) } {
                events |= wanted;
            }
        }
        if events != 0 {
            items.push(Item { fd, socket: calls::find(fd).ok(), events, revents: 0 });
        }
    }
    wait(&mut items, deadline_in(time))?;
    if items.iter().any(|item| item.revents & libc::POLLNVAL != 0) {
        return Err(error(libc::EBADF));
    }
    let mut ready = 0;
    for (set, (wanted, made)) in sets.into_iter().zip(EVENTS) {
        if set.is_null() {
            continue;
        }
        // SAFETY: the caller's promise.
        unsafe { libc::FD_ZERO(set) };
        for item in &items {
            if item.events & wanted != 0 && item.revents & made != 0 {
                ready += 1;
                // SAFETY: the caller's promise; the number is in the set's range.
                unsafe { libc::FD_SET(item.fd, set) };
            }
        }
    }
    Ok(ready)
}

// Options.

/// `setsockopt(2)`
///
/// # Safety
/// `value` has `length` bytes.
pub unsafe extern "C" fn rsetsockopt(
    socket: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    // SAFETY: the caller's promise.
    let value = unsafe { bytes(value, length as usize) };
    let done = calls::find(socket).and_then(|socket| set_option(&socket, level, name, value));
    answer(done.map(|()| 0))
}

fn time_of(value: &[u8]) -> io::Result<Option<Duration>> {
    let part = |at: usize| {
        let bytes = value.get(at..at + 8).and_then(|part| part.try_into().ok());
        bytes.map(i64::from_ne_bytes).ok_or_else(|| error(libc::EINVAL))
    };
    let time =
        Duration::from_secs(part(0)?.max(0) as u64) + Duration::from_micros(part(8)?.max(0) as u64);
    Ok((!time.is_zero()).then_some(time))
}

fn set_option(socket: &Arc<Socket>, level: c_int, name: c_int, value: &[u8]) -> io::Result<()> {
    let word = |at: usize| {
        let bytes = value.get(at..at + 4).and_then(|part| part.try_into().ok());
        bytes.map(c_int::from_ne_bytes).ok_or_else(|| error(libc::EINVAL))
    };
    match (level, name) {
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            let (on, seconds) = (word(0)? != 0, word(4)?);
            let time = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
            socket.with_options(|options| options.linger = on.then_some(time));
            Ok(())
        }
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => {
            let time = time_of(value)?;
            socket.with_options(|options| options.receive_timeout = time);
            Ok(())
        }
        (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => {
            let time = time_of(value)?;
            socket.with_options(|options| options.send_timeout = time);
            Ok(())
        }
        (SOL_RDMA, RDMA_ROUTE) => Err(error(libc::EOPNOTSUPP)),
        _ => {
            let value = word(0)?;
            if socket.with_options(|options: &mut Options| options.set(level, name, value)) {
                return Ok(());
            }
            crate::log::say(format_args!("no socket option {name} of level {level}"));
            Err(error(libc::ENOPROTOOPT))
        }
    }
}

/// `getsockopt(2)`
///
/// # Safety
/// `value` has `*length` bytes.
pub unsafe extern "C" fn rgetsockopt(
    socket: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    let found = calls::find(socket).and_then(|socket| option(&socket, level, name));
    answer(found.and_then(|found| {
        // SAFETY: the caller's promise.
        let length = unsafe { length.as_mut() }.ok_or_else(|| error(libc::EFAULT))?;
        // SAFETY: the caller's promise.
        let to = unsafe { room(value, *length as usize) };
        let count = found.len().min(to.len());
        to[..count].copy_from_slice(&found[..count]);
        *length = count as socklen_t;
        Ok(0)
    }))
}

fn option(socket: &Arc<Socket>, level: c_int, name: c_int) -> io::Result<Vec<u8>> {
    let time = |time: Option<Duration>| {
        let time = time.unwrap_or_default();
        let parts = [time.as_secs() as i64, i64::from(time.subsec_micros())];
        parts.map(i64::to_ne_bytes).concat()
    };
    let number = match (level, name) {
        (libc::SOL_SOCKET, libc::SO_LINGER) => {
            let linger = socket.with_options(|options| options.linger);
            let seconds = linger.unwrap_or_default().as_secs() as c_int;
            return Ok([c_int::from(linger.is_some()), seconds].map(c_int::to_ne_bytes).concat());
        }
        (libc::SOL_SOCKET, libc::SO_RCVTIMEO) => {
            return Ok(time(socket.with_options(|options| options.receive_timeout)));
        }
        (libc::SOL_SOCKET, libc::SO_SNDTIMEO) => {
            return Ok(time(socket.with_options(|options| options.send_timeout)));
        }
        (libc::SOL_SOCKET, libc::SO_ERROR) => socket.take_error(),
        (libc::SOL_SOCKET, libc::SO_TYPE) => libc::SOCK_STREAM,
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => libc::IPPROTO_TCP,
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => socket.family,
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => c_int::from(socket.is_listening()),
        _ => {
            let known = socket.with_options(|options| options.value(level, name));
            known.ok_or_else(|| error(libc::ENOPROTOOPT))?
        }
    };
    Ok(number.to_ne_bytes().to_vec())
}

/// `fcntl(2)`, of the state flags: others are the kernel's, whose descriptor it is.
pub extern "C" fn rfcntl(number: c_int, command: c_int, argument: c_long) -> c_int {
    answer(calls::find(number).and_then(|socket| {
        // SAFETY: the number is open, and the argument is a number for all commands of sockets. The
        // call is made by its number, as a preloaded library stands in for the function.
        let result = unsafe { libc::syscall(libc::SYS_fcntl, number, command, argument) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        match command {
            libc::F_SETFL => {
                socket.set_nonblocking(argument as c_int & libc::O_NONBLOCK != 0);
            }
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => {
                socket.add_number(result as c_int);
                socket.runtime.insert(result as c_int, socket.clone());
            }
            _ => {}
        }
        Ok(result as c_int)
    }))
}

// Memory that the peer writes.

/// `riomap` of rsocket(7): lets the peer write to memory of the program, from `offset` on; -1: its
/// address. Returns the offset.
///
/// # Safety
/// The memory stays mapped until [`riounmap`], or until the socket is closed.
pub unsafe extern "C" fn riomap(
    socket: c_int,
    start: *mut c_void,
    length: usize,
    rights: c_int,
    _flags: c_int,
    offset: libc::off_t,
) -> libc::off_t {
    answer(calls::find(socket).and_then(|socket| {
        if rights & !libc::PROT_WRITE != 0 || start.is_null() || length == 0 {
            return Err(error(libc::EINVAL));
        }
        let offset = if offset == -1 { start as libc::off_t } else { offset };
        // Without a right for the peer there is nothing to do.
        if rights & libc::PROT_WRITE != 0 {
            // SAFETY: the caller's promise.
            unsafe { socket.map(start.cast(), length, offset as u64) }?;
        }
        Ok(offset as ssize_t)
    })) as libc::off_t
}

/// `riounmap` of rsocket(7): the peer may not write there any more.
pub extern "C" fn riounmap(socket: c_int, start: *mut c_void, length: usize) -> c_int {
    let done = calls::find(socket).and_then(|socket| socket.unmap(start.cast(), length));
    answer(done.map(|()| 0))
}

/// `riowrite` of rsocket(7): writes to memory that the peer has mapped at `offset`, before all that
/// is sent later.
///
/// # Safety
/// `from` has `length` bytes.
pub unsafe extern "C" fn riowrite(
    socket: c_int,
    from: *const c_void,
    length: usize,
    offset: libc::off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's promise.
    let from = unsafe { bytes(from, length) };
    let sent =
        calls::find(socket).and_then(|socket| calls::write_at(&socket, from, offset as u64, flags));
    answer(sent.map(|sent| sent as ssize_t))
}

// epoll.

/// `epoll_create1(2)`
pub extern "C" fn repoll_create(flags: c_int) -> c_int {
    // SAFETY: it takes a number.
    unsafe { libc::epoll_create1(flags) }
}

/// `epoll_ctl(2)`: from now on the kernel knows of the socket what epoll(7) asks.
///
/// # Safety
/// `event` is null or an event.
pub unsafe extern "C" fn repoll_ctl(
    poller: c_int,
    operation: c_int,
    fd: c_int,
    event: *mut libc::epoll_event,
) -> c_int {
    if operation == libc::EPOLL_CTL_ADD
        && let Ok(socket) = calls::find(fd)
        && let Err(error) = socket.watch()
    {
        return answer(Err(error));
    }
    // SAFETY: the caller's promise. By its number, as a preloaded library stands in for it.
    unsafe { libc::syscall(libc::SYS_epoll_ctl, poller, operation, fd, event) as c_int }
}

/// `epoll_wait(2)`
///
/// # Safety
/// `events` has `count` elements.
pub unsafe extern "C" fn repoll_wait(
    poller: c_int,
    events: *mut libc::epoll_event,
    count: c_int,
    timeout: c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { libc::epoll_wait(poller, events, count, timeout) }
}
