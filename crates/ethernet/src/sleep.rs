//! Sleeping until a frame comes or a timer of the protocol is due.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// The descriptors that a function sleeps on.
pub(crate) struct Sleeper {
    /// Readable when the network or the alarm is: for programs that wait for several things.
    epoll: OwnedFd,
    alarm: OwnedFd,
    /// Whether the alarm is set.
    is_set: bool,
    sleeps: u64,
    woken: u64,
}

impl Sleeper {
    pub fn new() -> io::Result<Sleeper> {
        let alarm = own(|| {
            // SAFETY: a plain system call.
            unsafe {
                let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
                libc::timerfd_create(libc::CLOCK_MONOTONIC, flags)
            }
        })?;
        // SAFETY: a plain system call.
        let epoll = own(|| unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        watch(epoll.as_fd(), alarm.as_fd())?;
        Ok(Sleeper { epoll, alarm, is_set: false, sleeps: 0, woken: 0 })
    }

    /// From now on the epoll descriptor is readable when one of `network` is, too. It is not so
    /// from the start, because each arriving frame then costs the kernel a wake-up. `false`: the
    /// kernel refuses.
    pub fn watch(&self, network: &[BorrowedFd<'_>]) -> bool {
        network.iter().all(|&fd| watch(self.epoll.as_fd(), fd).is_ok())
    }

    pub fn wait_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// The descriptor becomes readable after `delay_ns`, if nothing comes before; `None`: only when
    /// something comes. An alarm that went off is reset. `false`: the kernel refuses, so do not
    /// sleep.
    pub fn set_alarm(&mut self, delay_ns: Option<u64>) -> bool {
        if delay_ns.is_none() && !self.is_set {
            return true;
        }
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would disarm the timer.
        let delay = delay_ns.map_or(zero, |ns| timespec(Duration::from_nanos(ns.max(1))));
        let time = libc::itimerspec { it_interval: zero, it_value: delay };
        // SAFETY: the kernel reads a time, which is ours.
        let result = unsafe {
            libc::timerfd_settime(self.alarm.as_raw_fd(), 0, &raw const time, std::ptr::null_mut())
        };
        self.is_set = delay_ns.is_some();
        self.sleeps += 1;
        result == 0
    }

    /// Sleeps until one of `network` is readable, at most for `timeout`, by one system call. Tells
    /// `wake` the indices of the readable ones.
    pub fn sleep(
        &mut self,
        network: &[BorrowedFd<'_>],
        timeout: Option<Duration>,
        wake: impl FnMut(usize),
    ) -> io::Result<()> {
        let mut fds = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; 80];
        let count = network.len();
        for (entry, fd) in fds.iter_mut().zip(network) {
            entry.fd = fd.as_raw_fd();
        }
        let by_epoll = count > fds.len();
        if by_epoll {
            // More queues than cards have: wait on the epoll descriptor that contains them all.
            self.watch(network);
            fds[0].fd = self.epoll.as_raw_fd();
        }
        let count = if by_epoll { 1 } else { count };
        let time = timeout.map(timespec);
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        self.sleeps += 1;
        // SAFETY: the kernel reads and writes the first `count` entries, and reads a time or
        // nothing.
        let result = unsafe { libc::ppoll(fds.as_mut_ptr(), count as u64, time, std::ptr::null()) };
        if result > 0 {
            self.woken += 1;
            let told = |index: &usize| by_epoll || fds[*index].revents != 0;
            (0..network.len()).filter(told).for_each(wake);
        }
        let error = io::Error::last_os_error();
        if result < 0 && error.kind() != io::ErrorKind::Interrupted { Err(error) } else { Ok(()) }
    }

    /// How often the function slept, and how often a frame woke it. All other frames are received
    /// by polling (H-08).
    pub fn rows(&self) -> [(&'static str, u64); 2] {
        [("sleeps", self.sleeps), ("woken_by_frames", self.woken)]
    }
}

/// Adds a descriptor to `epoll`; one that is there already stays.
fn watch(epoll: BorrowedFd<'_>, fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
    let (epoll, fd) = (epoll.as_raw_fd(), fd.as_raw_fd());
    // SAFETY: the kernel reads one event, which is ours.
    let result = unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &raw mut event) };
    let error = io::Error::last_os_error();
    if result < 0 && error.kind() != io::ErrorKind::AlreadyExists { Err(error) } else { Ok(()) }
}

fn own(call: impl FnOnce() -> i32) -> io::Result<OwnedFd> {
    let fd = call();
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has just made it; nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn timespec(time: Duration) -> libc::timespec {
    libc::timespec {
        tv_sec: time.as_secs().min(i64::MAX as u64) as i64,
        tv_nsec: time.subsec_nanos().into(),
    }
}
