//! `poll`, `select` and `epoll`, of sockets and ordinary descriptors.

use super::answer;
use crate::calls;
use crate::state::error;
use crate::wait::{Item, deadline_in, wait};
use libc::{c_int, c_short, fd_set, nfds_t, pollfd, timeval};
use std::io;
use std::time::Duration;

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
