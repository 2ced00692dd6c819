//! Memory that the peer writes.

use super::{answer, bytes};
use crate::calls;
use crate::state::error;
use libc::{c_int, c_void, ssize_t};

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
