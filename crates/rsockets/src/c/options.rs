//! Options and state flags.

use super::{answer, bytes, room};
use crate::calls;
use crate::options::{Options, RDMA_ROUTE, SOL_RDMA};
use crate::socket::Socket;
use crate::state::error;
use libc::{c_int, c_long, c_void, socklen_t};
use std::io;
use std::sync::Arc;
use std::time::Duration;

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
        (libc::SOL_SOCKET, libc::SO_TYPE) => socket.kind,
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) if socket.is_of_datagrams() => libc::IPPROTO_UDP,
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
