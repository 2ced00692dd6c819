//! Calls that move bytes.

use super::{address, answer, bytes, give, room};
use crate::calls;
use crate::socket::Socket;
use crate::state::error;
use libc::{c_int, c_void, iovec, msghdr, sockaddr, socklen_t, ssize_t};
use std::io;
use std::net::SocketAddrV4;
use std::sync::Arc;

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
    let got = calls::find(socket).and_then(|socket| receive(&socket, &mut [to], flags));
    answer(got.map(|got| got.count as ssize_t))
}

/// What a call of a program has received.
struct Got {
    /// What the call returns.
    count: usize,
    /// Of a datagram.
    from: Option<SocketAddrV4>,
    /// A datagram had more bytes than there was room for.
    truncated: bool,
}

fn receive(socket: &Arc<Socket>, parts: &mut [&mut [u8]], flags: c_int) -> io::Result<Got> {
    if !socket.is_of_datagrams() {
        let count = calls::receive(socket, parts, flags)?;
        return Ok(Got { count, from: None, truncated: false });
    }
    Ok(match calls::receive_datagram(socket, parts, flags)? {
        Some(got) => {
            let count = if flags & libc::MSG_TRUNC != 0 { got.whole } else { got.copied };
            Got { count, from: Some(got.from), truncated: got.copied < got.whole }
        }
        None => Got { count: 0, from: None, truncated: false },
    })
}

/// `recvfrom(2)`. A stream gives no address.
///
/// # Safety
/// `to` has `length` bytes; `from` is null, or has `*from_length` bytes.
pub unsafe extern "C" fn rrecvfrom(
    socket: c_int,
    to: *mut c_void,
    length: usize,
    flags: c_int,
    from: *mut sockaddr,
    from_length: *mut socklen_t,
) -> ssize_t {
    // SAFETY: the caller's promise.
    let to = unsafe { room(to, length) };
    let got = calls::find(socket).and_then(|socket| {
        let got = receive(&socket, &mut [to], flags)?;
        // SAFETY: the caller's promise.
        unsafe {
            match (got.from, from_length.as_mut()) {
                (Some(at), _) => give(at, socket.family, from, from_length),
                (None, Some(from_length)) => *from_length = 0,
                (None, None) => {}
            }
        }
        Ok(got.count as ssize_t)
    });
    answer(got)
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
    socket: &Arc<Socket>,
    list: *const iovec,
    count: usize,
    flags: c_int,
) -> io::Result<Got> {
    // SAFETY: the caller's promise.
    let mut parts: Vec<&mut [u8]> = unsafe {
        parts(list, count)?.iter().map(|part| room(part.iov_base, part.iov_len)).collect()
    };
    receive(socket, &mut parts, flags)
}

/// # Safety
/// As for [`receive_list`].
unsafe fn send_list(
    socket: c_int,
    list: *const iovec,
    count: usize,
    flags: c_int,
    to: Option<SocketAddrV4>,
) -> io::Result<ssize_t> {
    let socket = calls::find(socket)?;
    if socket.is_of_datagrams() {
        // SAFETY: the caller's promise.
        let parts: Vec<&[u8]> = unsafe {
            parts(list, count)?.iter().map(|part| bytes(part.iov_base, part.iov_len)).collect()
        };
        return Ok(calls::send_datagram(&socket, &parts, to, flags)? as ssize_t);
    }
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
            calls::find(socket).and_then(|socket| {
                // SAFETY: the caller's promise.
                let got =
                    unsafe { receive_list(&socket, message.msg_iov, message.msg_iovlen, flags) }?;
                (message.msg_controllen, message.msg_flags) = (0, 0);
                match got.from {
                    Some(at) => {
                        let name = message.msg_name.cast();
                        // SAFETY: the caller's promise.
                        unsafe { give(at, socket.family, name, &raw mut message.msg_namelen) };
                    }
                    None => message.msg_namelen = 0,
                }
                if got.truncated {
                    message.msg_flags |= libc::MSG_TRUNC;
                }
                Ok(got.count as ssize_t)
            })
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
    let sent = calls::find(socket).and_then(|socket| match socket.is_of_datagrams() {
        true => calls::send_datagram(&socket, &[from], None, flags),
        false => calls::send(&socket, from, flags),
    });
    answer(sent.map(|sent| sent as ssize_t))
}

/// `sendto(2)`. A stream takes no address.
///
/// # Safety
/// `from` has `length` bytes; `to` is null, or has `to_length` bytes.
pub unsafe extern "C" fn rsendto(
    socket: c_int,
    from: *const c_void,
    length: usize,
    flags: c_int,
    to: *const sockaddr,
    to_length: socklen_t,
) -> ssize_t {
    if to.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { rsend(socket, from, length, flags) };
    }
    let sent = calls::find(socket).and_then(|socket| {
        if !socket.is_of_datagrams() {
            return Err(error(libc::EISCONN));
        }
        // SAFETY: the caller's promise.
        let (from, to) = unsafe { (bytes(from, length), address(to, to_length)?) };
        calls::send_datagram(&socket, &[from], Some(to), flags)
    });
    answer(sent.map(|sent| sent as ssize_t))
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
        Some(message) => {
            let name = message.msg_name.cast_const().cast();
            // SAFETY: the caller's promise.
            let to = match unsafe { address(name, message.msg_namelen) } {
                Ok(to) => Ok(Some(to)),
                Err(_) if name.is_null() || message.msg_namelen == 0 => Ok(None),
                Err(error) => Err(error),
            };
            to.and_then(|to| {
                let (list, count) = (message.msg_iov, message.msg_iovlen);
                // SAFETY: the caller's promise.
                unsafe { send_list(socket, list, count, flags, to) }
            })
        }
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
    let got =
        calls::find(socket).and_then(|socket| unsafe { receive_list(&socket, list, count, 0) });
    answer(got.map(|got| got.count as ssize_t))
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
    answer(unsafe { send_list(socket, list, count, 0, None) })
}
