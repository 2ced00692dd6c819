//! poll, select and epoll.

use crate::{inside, is_inside, stream};
use bellwire_rsockets::c;
use libc::{c_int, fd_set, nfds_t, pollfd, sigset_t, timespec, timeval};
use std::ptr::null_mut;
use std::time::Duration;

/// Whether a stream is among them.
///
/// # Safety
/// `fds` has `count` elements.
unsafe fn has_stream(fds: *const pollfd, count: nfds_t) -> bool {
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: the caller's promise.
    !is_inside() && (0..count).any(|index| stream(unsafe { (*fds.add(index)).fd }).is_some())
}

/// `poll(2)`
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { has_stream(fds, count) } {
        // SAFETY: the caller's promise.
        return inside(|| unsafe { c::rpoll(fds, count, timeout) });
    }
    next!(poll(fds => *mut pollfd, count => nfds_t, timeout => c_int) -> c_int)
}

/// `poll(2)` of programs that are built with checks.
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    _room: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { poll(fds, count, timeout) }
}

/// Does something with other signals blocked. Unlike in the kernel, a signal may come in between.
///
/// # Safety
/// `mask` is null or a set.
unsafe fn masked(mask: *const sigset_t, work: impl FnOnce() -> c_int) -> c_int {
    if mask.is_null() {
        return work();
    }
    // SAFETY: a set is numbers.
    let mut before: sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: the caller's promise.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, &raw mut before) };
    let result = work();
    // SAFETY: what was set before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, null_mut()) };
    result
}

/// # Safety
/// `time` is null or a time.
unsafe fn span(time: *const timespec) -> Option<Duration> {
    // SAFETY: the caller's promise.
    unsafe { time.as_ref() }.map(|time| {
        Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec.clamp(0, 999_999_999) as u32)
    })
}

/// `ppoll(2)`
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ppoll(
    fds: *mut pollfd,
    count: nfds_t,
    time: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { has_stream(fds, count) } {
        // SAFETY: the caller's promise.
        let work = || inside(|| unsafe { c::timed_poll(fds, count, span(time)) });
        // SAFETY: the caller's promise.
        return unsafe { masked(mask, work) };
    }
    next!(ppoll(fds => *mut pollfd, count => nfds_t, time => *const timespec, mask => *const sigset_t) -> c_int)
}

/// Whether a stream is in one of the sets.
///
/// # Safety
/// Each set is null or a set.
unsafe fn sets_have_stream(count: c_int, sets: [*mut fd_set; 3]) -> bool {
    let has = |number: c_int| {
        // SAFETY: the caller's promise; the number is in the range of a set.
        let member = |set: &*mut fd_set| !set.is_null() && unsafe { libc::FD_ISSET(number, *set) };
        sets.iter().any(member) && stream(number).is_some()
    };
    !is_inside() && (0..count.clamp(0, libc::FD_SETSIZE as c_int)).any(has)
}

/// `select(2)`
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    count: c_int,
    reads: *mut fd_set,
    writes: *mut fd_set,
    others: *mut fd_set,
    time: *mut timeval,
) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { sets_have_stream(count, [reads, writes, others]) } {
        // SAFETY: the caller's promise.
        return inside(|| unsafe { c::rselect(count, reads, writes, others, time) });
    }
    next!(select(count => c_int, reads => *mut fd_set, writes => *mut fd_set, others => *mut fd_set, time => *mut timeval) -> c_int)
}

/// `pselect(2)`
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pselect(
    count: c_int,
    reads: *mut fd_set,
    writes: *mut fd_set,
    others: *mut fd_set,
    time: *const timespec,
    mask: *const sigset_t,
) -> c_int {
    // SAFETY: the caller's promise.
    if unsafe { sets_have_stream(count, [reads, writes, others]) } {
        let sets = [reads, writes, others];
        // SAFETY: the caller's promise.
        let work = || inside(|| unsafe { c::timed_select(count, sets, span(time)) });
        // SAFETY: the caller's promise.
        return unsafe { masked(mask, work) };
    }
    next!(pselect(count => c_int, reads => *mut fd_set, writes => *mut fd_set, others => *mut fd_set, time => *const timespec, mask => *const sigset_t) -> c_int)
}

/// `epoll_ctl(2)`. `epoll_wait(2)` is the kernel's: it knows of a stream what it asks.
///
/// # Safety
/// As the function of the C library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn epoll_ctl(
    poller: c_int,
    operation: c_int,
    number: c_int,
    event: *mut libc::epoll_event,
) -> c_int {
    if stream(number).is_some() {
        // SAFETY: the caller's promise.
        return inside(|| unsafe { c::repoll_ctl(poller, operation, number, event) });
    }
    next!(epoll_ctl(poller => c_int, operation => c_int, number => c_int, event => *mut libc::epoll_event) -> c_int)
}
