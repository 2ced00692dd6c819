//! Calls that move bytes.

use super::{answer, bytes, room};
use crate::calls;
use crate::state::error;
use libc::{c_int, c_void, iovec, msghdr, sockaddr, socklen_t, ssize_t};
use std::io;

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
