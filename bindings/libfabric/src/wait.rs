//! Waiting without using the processor.

use crate::abi::{error, value};
use crate::cntr::Counter;
use crate::cq::CompletionQueue;
use crate::eq::EventQueue;
use crate::errno::{Errno, Result};
use crate::object::Handle;
use crate::pointer::{Buffer, write_bytes};
use crate::reference::{Ref, Use};
use crate::waitset::WaitSet;
use std::ffi::c_int;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Empty polls before the first yield.
const PATIENCE: u32 = 4000;
/// The same, with more endpoints than processors: the awaited peer needs the processor.
const CROWDED_PATIENCE: u32 = 16;
/// Empty polls between later yields.
const YIELD_EVERY: u32 = 16;
/// How long a wait polls before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// Longest sleep in milliseconds, so that periodic work runs.
const NAP_MS: c_int = 100;

/// Counts empty polls, and yields the processor when there are many. It is outside the lock: a
/// thread that yields with the lock held would block other threads. Relaxed: a lost count only
/// delays a yield.
pub struct EmptyPolls {
    polls: AtomicU32,
    patience: AtomicU32,
}

impl Default for EmptyPolls {
    fn default() -> Self {
        EmptyPolls { polls: AtomicU32::new(0), patience: AtomicU32::new(PATIENCE) }
    }
}

impl EmptyPolls {
    /// A poll found something.
    #[inline(always)]
    pub fn found(&self) {
        self.polls.store(0, Ordering::Relaxed);
    }

    /// A poll found nothing.
    #[inline]
    pub fn nothing(&self) {
        let polls = self.polls.load(Ordering::Relaxed).wrapping_add(1);
        self.polls.store(polls, Ordering::Relaxed);
        let patience = self.patience.load(Ordering::Relaxed);
        if polls >= patience && polls.is_multiple_of(YIELD_EVERY) {
            std::thread::yield_now();
        }
    }

    /// `endpoints` of this host belong to the program's job, as far as is known. From now on polls
    /// yield early if that is more than the host has processors.
    pub fn share_host(&self, endpoints: usize) {
        if endpoints > processors() {
            self.patience.store(CROWDED_PATIENCE, Ordering::Relaxed);
        }
    }
}

/// The number of the host's processors. Not only of those that this process may use: a launcher
/// often binds each rank to a processor of its own.
fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| {
        // SAFETY: sysconf(3) takes any number.
        let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
        usize::try_from(online).unwrap_or(usize::MAX)
    })
}

/// The remaining time of a wait.
pub struct Timeout {
    started: Instant,
    timeout: Option<Duration>,
}

impl Timeout {
    /// `timeout_ms` below zero: no limit.
    pub fn new(timeout_ms: c_int) -> Self {
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        Timeout { started: Instant::now(), timeout }
    }

    /// Whether the time is over.
    pub fn is_over(&self) -> bool {
        self.timeout.is_some_and(|timeout| self.started.elapsed() >= timeout)
    }

    /// Whether to sleep instead of polling.
    pub fn sleeps(&self) -> bool {
        self.started.elapsed() >= SPIN
    }

    /// Sleeps until `fd` is readable, for a limited time.
    pub fn sleep(&self, fd: BorrowedFd<'_>) {
        let left = self.timeout.map(|timeout| timeout.saturating_sub(self.started.elapsed()));
        let left = left.map_or(NAP_MS, |left| (left.as_millis() as c_int + 1).min(NAP_MS));
        let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: poll(2) gets one entry, `poll`.
        unsafe { libc::poll(&mut poll, 1, left) };
    }
}

/// What the threads of a program sleep on, if they do.
pub struct Waiting {
    /// As the program asked for it.
    kind: c_int,
    object: Option<WaitObject>,
    /// A thread may be asleep.
    asleep: AtomicBool,
}

/// Several descriptors behind one, including one for wake-ups.
struct WaitObject {
    epoll: OwnedFd,
    wakeup: File,
    /// The wait set that it belongs to.
    set: Option<Ref<WaitSet>>,
}

impl Waiting {
    /// The object that a program asks for by `kind`; `set` is its wait set, if it names one.
    /// Writes the actual kind. `EINVAL`: no wait set. `ENOSYS`: an unknown kind. `EMFILE`: no more
    /// descriptors.
    pub fn wanted(kind: &mut c_int, set: Handle) -> Result<Waiting> {
        let asleep = AtomicBool::new(false);
        let set = match *kind {
            value::WAIT_NONE | value::WAIT_YIELD => {
                return Ok(Waiting { kind: *kind, object: None, asleep });
            }
            value::WAIT_UNSPEC | value::WAIT_FD => {
                *kind = value::WAIT_FD;
                None
            }
            value::WAIT_SET => Some(Ref::to(set.object().ok_or(error::EINVAL)?)),
            _ => return Err(error::ENOSYS),
        };
        // SAFETY: epoll_create1(2) makes a new descriptor.
        let epoll = unsafe { owned(libc::epoll_create1(libc::EPOLL_CLOEXEC)) }?;
        // SAFETY: eventfd(2) makes a new descriptor.
        let wakeup = unsafe { owned(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)) }?;
        let object = WaitObject { epoll, wakeup: wakeup.into(), set };
        object.control(libc::EPOLL_CTL_ADD, object.wakeup.as_raw_fd());
        Ok(Waiting { kind: *kind, object: Some(object), asleep })
    }

    /// Whether threads can sleep.
    #[inline(always)]
    pub fn is_possible(&self) -> bool {
        self.object.is_some()
    }

    /// Watches `fd` too, while it is open.
    pub fn add(&self, fd: c_int) {
        self.object.iter().for_each(|object| object.control(libc::EPOLL_CTL_ADD, fd));
    }

    /// Stops watching `fd`.
    pub fn remove(&self, fd: c_int) {
        self.object.iter().for_each(|object| object.control(libc::EPOLL_CTL_DEL, fd));
    }

    /// Adds the queue that it belongs to, to its wait set.
    pub fn join(&self, queue: Handle) {
        if let Some(WaitObject { set: Some(set), epoll, .. }) = &self.object {
            set.add(queue, epoll.as_fd());
        }
    }

    /// Removes a queue that is being closed from its wait set.
    pub fn leave(&self, queue: Handle) {
        if let Some(WaitObject { set: Some(set), epoll, .. }) = &self.object {
            set.remove(queue, epoll.as_fd());
        }
    }

    /// Wakes the sleeping threads.
    pub fn wake(&self) {
        if let Some(object) = &self.object {
            // A full counter is a wake-up, too.
            let _ = (&object.wakeup).write(&1_u64.to_ne_bytes());
        }
    }

    /// Wakes a thread that [`Waiting::may_fall_asleep`] announced: something has happened.
    // SeqCst, with that store: either the sleeper sees what happened, or we see the sleeper.
    #[cold]
    pub fn wake_sleeper(&self) {
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.wake();
        }
    }

    /// A thread may fall asleep, if it then finds nothing. Clears all wake-ups so far.
    pub fn may_fall_asleep(&self) {
        self.settle();
        self.asleep.store(true, Ordering::SeqCst);
    }

    /// Clears all wake-ups so far.
    pub fn settle(&self) {
        if let Some(object) = &self.object {
            // Without wake-ups there is nothing to read.
            let _ = (&object.wakeup).read(&mut [0; 8]);
        }
    }

    /// The descriptor to sleep on.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.object.as_ref().map(|object| object.epoll.as_fd())
    }

    /// `fi_control` of an object that programs may sleep on: writes an `int`. `EINVAL`: no
    /// argument. `ENODATA`: no wait object. `ENOSYS`: another command.
    pub fn control(&self, command: c_int, argument: Buffer) -> Result {
        let place = argument.room(size_of::<c_int>())?;
        let answer = match command {
            value::CONTROL_GETWAIT => self.fd().ok_or(error::ENODATA)?.as_raw_fd(),
            value::CONTROL_GETWAITOBJ => self.kind,
            _ => return Err(error::ENOSYS),
        };
        write_bytes(place, &answer.to_ne_bytes());
        Ok(())
    }
}

impl WaitObject {
    fn control(&self, operation: c_int, fd: c_int) {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: epoll_ctl(2) reads `event`, and refuses what is no descriptor.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) };
    }
}

/// An object that programs wait for.
pub enum Waitable<'a> {
    Completions(&'a CompletionQueue),
    Events(&'a EventQueue),
    Counter(&'a Counter),
}

impl<'a> Waitable<'a> {
    /// `None`: null, of another kind, not ours, or closed.
    pub fn of(handle: Handle) -> Option<Waitable<'a>> {
        let completions = handle.object().map(Waitable::Completions);
        let events = || handle.object().map(Waitable::Events);
        completions.or_else(events).or_else(|| handle.object().map(Waitable::Counter))
    }

    /// Whether a program may sleep on its descriptor: it is empty, and wake-ups are armed.
    pub fn may_sleep(&self) -> bool {
        match self {
            Waitable::Completions(cq) => cq.may_sleep(),
            Waitable::Events(eq) => eq.may_sleep(),
            Waitable::Counter(cntr) => cntr.may_sleep(),
        }
    }

    /// Keeps it open.
    pub fn keep(&self) -> Use {
        match *self {
            Waitable::Completions(cq) => Use::of(cq),
            Waitable::Events(eq) => Use::of(eq),
            Waitable::Counter(cntr) => Use::of(cntr),
        }
    }
}

/// # Safety
/// `fd` is negative or a new descriptor.
unsafe fn owned(fd: c_int) -> Result<OwnedFd> {
    // SAFETY: the caller's promise: nobody else has `fd`.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) }).ok_or(Errno::new(libc::EMFILE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls yield early only with more endpoints than processors.
    #[test]
    fn a_crowded_host_is_noticed() {
        let polls = EmptyPolls::default();
        for (endpoints, patience) in
            [(processors(), PATIENCE), (processors() + 1, CROWDED_PATIENCE)]
        {
            polls.share_host(endpoints);
            assert_eq!(polls.patience.load(Ordering::Relaxed), patience);
        }
        assert!(processors() < 1 << 20, "the system knows their number");
    }
}
