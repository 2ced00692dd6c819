//! Read and write.

use crate::{fail, inside, is_of_parent, stream};
use bellwire_rsockets::c;
use libc::{c_int, c_void, iovec, msghdr, off_t, sockaddr, socklen_t, ssize_t};

/// Functions by their parameters, and the call of a stream that each becomes.
macro_rules! functions {
    ($($name:ident($number:ident $(, $argument:ident: $type:ty)*) => $call:expr;)*) => {$(
        /// # Safety
        /// As the function of the C library.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($number: c_int $(, $argument: $type)*) -> ssize_t {
            match stream($number) {
                // SAFETY: the caller's promise.
                Some(_) => inside(|| unsafe { $call }),
                None if is_of_parent($number) => fail(libc::EBADF) as ssize_t,
                None => next!($name($number => c_int $(, $argument => $type)*) -> ssize_t),
            }
        }
    )*};
}

functions! {
    read(number, to: *mut c_void, length: usize) => c::rread(number, to, length);
    __read_chk(number, to: *mut c_void, length: usize, _room: usize) => c::rread(number, to, length);
    recv(number, to: *mut c_void, length: usize, flags: c_int) => c::rrecv(number, to, length, flags);
    __recv_chk(number, to: *mut c_void, length: usize, _room: usize, flags: c_int) =>
        c::rrecv(number, to, length, flags);
    recvfrom(number, to: *mut c_void, length: usize, flags: c_int, from: *mut sockaddr, size: *mut socklen_t) =>
        c::rrecvfrom(number, to, length, flags, from, size);
    recvmsg(number, message: *mut msghdr, flags: c_int) => c::rrecvmsg(number, message, flags);
    readv(number, list: *const iovec, count: c_int) => c::rreadv(number, list, count);
    write(number, from: *const c_void, length: usize) => c::rwrite(number, from, length);
    send(number, from: *const c_void, length: usize, flags: c_int) => c::rsend(number, from, length, flags);
    sendto(number, from: *const c_void, length: usize, flags: c_int, to: *const sockaddr, size: socklen_t) =>
        c::rsendto(number, from, length, flags, to, size);
    sendmsg(number, message: *const msghdr, flags: c_int) => c::rsendmsg(number, message, flags);
    writev(number, list: *const iovec, count: c_int) => c::rwritev(number, list, count);
}

/// `sendfile(2)`, from a file to a stream.
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile(
    to: c_int,
    from: c_int,
    offset: *mut off_t,
    length: usize,
) -> ssize_t {
    /// Bytes at a time.
    const PART: usize = 64 << 10;
    let is_stream = stream(to).is_some();
    if !is_stream {
        return next!(sendfile(to => c_int, from => c_int, offset => *mut off_t, length => usize) -> ssize_t);
    }
    let mut part = vec![0; PART.min(length)];
    let mut sent = 0;
    while sent < length {
        let most = part.len().min(length - sent);
        // SAFETY: the caller's promise.
        let at = unsafe { offset.as_ref() }.copied();
        // A part that is not sent must not be taken out of the file, so its place is kept.
        // SAFETY: the part has that many bytes.
        let place = at.unwrap_or_else(|| unsafe { libc::lseek(from, 0, libc::SEEK_CUR) });
        // SAFETY: as above.
        let got = unsafe { libc::pread(from, part.as_mut_ptr().cast(), most, place) };
        if got <= 0 {
            return if sent > 0 { sent as ssize_t } else { got };
        }
        // SAFETY: as above.
        let done = inside(|| unsafe { c::rsend(to, part.as_ptr().cast(), got as usize, 0) });
        if done < 0 {
            return if sent > 0 { sent as ssize_t } else { done };
        }
        sent += done as usize;
        let next = place + done as off_t;
        // SAFETY: the caller's promise.
        match unsafe { offset.as_mut() } {
            Some(offset) => *offset = next,
            // SAFETY: it takes numbers.
            None => drop(unsafe { libc::lseek(from, next, libc::SEEK_SET) }),
        }
        if done < got {
            break;
        }
    }
    sent as ssize_t
}

/// `sendfile(2)` of programs with large files.
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendfile64(
    to: c_int,
    from: c_int,
    offset: *mut off_t,
    length: usize,
) -> ssize_t {
    // SAFETY: the caller's promise.
    unsafe { sendfile(to, from, offset, length) }
}
