//! Waiting for sockets and ordinary descriptors together.

use crate::socket::Socket;
use libc::{POLLERR, POLLHUP, POLLIN, POLLNVAL, c_short, pollfd};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long to look again and again before sleeping. It bridges the pause between a request and its
/// answer, and costs little beside the sleep.
const SPIN: Duration = Duration::from_micros(20);

/// What is waited for, as in poll(2).
pub struct Item {
    pub fd: RawFd,
    /// `None`: an ordinary descriptor.
    pub socket: Option<Arc<Socket>>,
    pub events: c_short,
    pub revents: c_short,
}

impl Item {
    /// A wait for one socket.
    pub fn of(socket: &Arc<Socket>, events: c_short) -> Item {
        Item { fd: -1, socket: Some(socket.clone()), events, revents: 0 }
    }
}

/// The time after which a wait ends.
pub fn deadline_in(time: Option<Duration>) -> Option<Instant> {
    time.and_then(|time| Instant::now().checked_add(time))
}

/// Waits until something is ready, or until the deadline. Returns how many are.
///
/// # Errors
/// `EINTR`: a signal came. Those of poll(2).
pub fn wait(items: &mut [Item], deadline: Option<Instant>) -> io::Result<usize> {
    loop {
        look_at_others(items)?;
        if let count @ 1.. = look_at_sockets(items) {
            return Ok(count);
        }
        let started = Instant::now();
        if deadline.is_some_and(|deadline| started >= deadline) {
            return Ok(0);
        }
        let spins = items.iter().any(|it| it.socket.as_ref().is_some_and(|it| it.is_busy()));
        while spins && started.elapsed() < SPIN {
            if let count @ 1.. = look_at_sockets(items) {
                return Ok(count);
            }
            std::hint::spin_loop();
        }
        sleep(items, deadline)?;
    }
}

/// Counts what is ready, with what is known of ordinary descriptors.
fn look_at_sockets(items: &mut [Item]) -> usize {
    let mut count = 0;
    for item in items {
        if let Some(socket) = &item.socket {
            item.revents = socket.ready() & (item.events | POLLERR | POLLHUP);
        }
        count += usize::from(item.revents != 0);
    }
    count
}

fn look_at_others(items: &mut [Item]) -> io::Result<()> {
    let others = || items.iter().filter(|item| item.socket.is_none());
    let mut fds: Vec<pollfd> = others().map(ordinary).collect();
    if fds.is_empty() {
        return Ok(());
    }
    poll(&mut fds, Some(Duration::ZERO))?;
    for (item, fd) in items.iter_mut().filter(|item| item.socket.is_none()).zip(fds) {
        item.revents = fd.revents;
    }
    Ok(())
}

fn ordinary(item: &Item) -> pollfd {
    pollfd { fd: item.fd, events: item.events, revents: 0 }
}

/// Sleeps until something happens to one of them.
fn sleep(items: &mut [Item], deadline: Option<Instant>) -> io::Result<()> {
    let mut fds: Vec<pollfd> = Vec::with_capacity(2 * items.len());
    // The sockets that are prepared, each with the place of its channel.
    let mut prepared: Vec<(Arc<Socket>, usize)> = Vec::with_capacity(items.len());
    for item in items.iter() {
        let Some(socket) = &item.socket else {
            fds.push(ordinary(item));
            continue;
        };
        let Some((near, beside)) = socket.prepare() else { continue };
        prepared.push((socket.clone(), fds.len()));
        fds.push(pollfd { fd: socket.channel.fd().as_raw_fd(), events: POLLIN, revents: 0 });
        fds.push(pollfd { fd: near, events: item.events, revents: 0 });
        fds.extend(beside.map(|fd| pollfd { fd, events: POLLIN, revents: 0 }));
    }
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let result = poll(&mut fds, left);
    for (socket, channel) in prepared {
        socket.woken(fds[channel].revents & (POLLIN | POLLNVAL) != 0);
    }
    result.map(|_| ())
}

/// poll(2) of the kernel.
fn poll(fds: &mut [pollfd], timeout: Option<Duration>) -> io::Result<usize> {
    let time = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let no_mask = std::ptr::null::<libc::sigset_t>();
    // SAFETY: the list and the time last as long as the call. It is made by its number, because a
    // library that is preloaded stands in for the function.
    let count = unsafe {
        libc::syscall(libc::SYS_ppoll, fds.as_mut_ptr(), fds.len(), time, no_mask, 8usize)
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}
