//! A sleep until descriptors are readable.

use bellwire_ring::signals::FAULTS;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// What ended a sleep. Neither: its time is over, or a handler of a signal ran.
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
/// `Interrupted`, if a read would end with it.
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
        let error = io::Error::last_os_error();
        let goes_on = error.kind() == io::ErrorKind::Interrupted && !handlers_interrupt();
        return if goes_on { Ok(Woken { by_first: false, by_other: false }) } else { Err(error) };
    }
    let mut ready = fds.iter().map(|fd| fd.revents != 0);
    Ok(Woken { by_first: ready.next().unwrap_or(false), by_other: ready.any(|is| is) })
}

/// Whether a signal that a handler has taken ends a read. poll(2) ends in any case, and does not
/// say which signal it was.
fn handlers_interrupt() -> bool {
    // No fault of the thread ends a sleep.
    (1..=libc::SIGRTMAX()).filter(|signal| !FAULTS.contains(signal)).any(|signal| {
        // SAFETY: all zeroes are a `sigaction`, which sigaction(2) fills, or refuses the signal.
        let (found, action) = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            (libc::sigaction(signal, std::ptr::null(), &mut action) == 0, action)
        };
        let has_handler =
            action.sa_sigaction != libc::SIG_DFL && action.sa_sigaction != libc::SIG_IGN;
        found && has_handler && action.sa_flags & libc::SA_RESTART == 0
    })
}
