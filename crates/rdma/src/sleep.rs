//! A sleep until descriptors are readable.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// What ended a sleep. Neither: its time is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Woken {
    /// The first descriptor.
    pub by_first: bool,
    /// Another one.
    pub by_other: bool,
}

/// Sleeps until one of the descriptors is readable, with `mask` as the thread's mask of signals.
///
/// # Errors
/// `Interrupted`.
pub(crate) fn wait(
    descriptors: &[&OwnedFd],
    groups: Option<&OwnedFd>,
    limit: Duration,
    mask: Option<&libc::sigset_t>,
) -> io::Result<Woken> {
    let limit = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos().into(),
    };
    let mask = mask.map_or(std::ptr::null(), std::ptr::from_ref);
    let all = descriptors.iter().copied().chain(groups);
    let own = |fd: &OwnedFd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut fds: Vec<libc::pollfd> = all.map(own).collect();
    // SAFETY: list, time and mask last as long as the call, of which the kernel writes the list.
    // Made by its number, because a library that is preloaded stands in for the function.
    let count = unsafe {
        libc::syscall(libc::SYS_ppoll, fds.as_mut_ptr(), fds.len(), &raw const limit, mask, 8usize)
    };
    if count < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut ready = fds.iter().map(|fd| fd.revents != 0);
    Ok(Woken { by_first: ready.next().unwrap_or(false), by_other: ready.any(|is| is) })
}
