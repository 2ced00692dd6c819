//! Waiting without using the processor.

use crate::abi::{Fid, error, value};
use crate::object::{given, object_of};
use crate::waitset::WaitSet;
use std::ffi::{c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Empty polls before the first yield: with more processes than cores, the awaited peer needs the
/// processor.
const LOOKS_BEFORE_YIELD: u32 = 4000;
/// Empty polls between later yields.
const YIELD_EVERY: u32 = 16;
/// How long a wait polls before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// Longest sleep in milliseconds, so that periodic work runs.
const NAP_MS: c_int = 100;

/// Counts empty polls. It is outside the lock: a thread that yields with the lock held would block
/// other threads. Relaxed: a lost count only delays a yield.
#[derive(Default)]
pub struct Looks(AtomicU32);

impl Looks {
    /// A poll found something.
    #[inline(always)]
    pub fn found(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// A poll found nothing.
    #[inline]
    pub fn nothing(&self) {
        let looks = self.0.load(Ordering::Relaxed).wrapping_add(1);
        self.0.store(looks, Ordering::Relaxed);
        if looks >= LOOKS_BEFORE_YIELD && looks.is_multiple_of(YIELD_EVERY) {
            std::thread::yield_now();
        }
    }
}

/// The remaining time of a wait.
pub struct Patience {
    started: Instant,
    timeout: Option<Duration>,
}

impl Patience {
    /// `timeout_ms` below zero: no limit.
    pub fn new(timeout_ms: c_int) -> Self {
        let timeout = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        Patience { started: Instant::now(), timeout }
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
        // SAFETY: one live entry.
        unsafe { libc::poll(&mut poll, 1, left) };
    }
}

/// Several descriptors behind one, including one for wake-ups.
pub struct WaitObject {
    epoll: OwnedFd,
    wakeup: OwnedFd,
    /// The wait set that it belongs to; null: none.
    set: *mut WaitSet,
}

impl WaitObject {
    /// The wait object that a program asks for by `wait_obj`; `set` is its wait set, if it names
    /// one. `None`: the program does not sleep. Writes the actual kind to `wait_obj`.
    ///
    /// # Errors
    /// The negative error number.
    ///
    /// # Safety
    /// `set` is as [`object_of`] requires.
    pub unsafe fn wanted(
        wait_obj: &mut c_int,
        set: *mut c_void,
    ) -> Result<Option<WaitObject>, c_int> {
        let set = match *wait_obj {
            value::WAIT_NONE | value::WAIT_YIELD => return Ok(None),
            value::WAIT_UNSPEC | value::WAIT_FD => {
                *wait_obj = value::WAIT_FD;
                null_mut()
            }
            // SAFETY: the caller's promise.
            value::WAIT_SET => match unsafe { object_of::<WaitSet>(set.cast()) } {
                Some(set) => (&raw const *set).cast_mut(),
                None => return Err(-error::EINVAL),
            },
            _ => return Err(-error::ENOSYS),
        };
        WaitObject::new(set).map(Some).ok_or(-libc::EMFILE)
    }

    /// `None`: the process has no more descriptors.
    pub fn new(set: *mut WaitSet) -> Option<WaitObject> {
        // SAFETY: new descriptors, which are ours.
        unsafe {
            let epoll = owned(libc::epoll_create1(libc::EPOLL_CLOEXEC))?;
            let wakeup = owned(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?;
            let object = WaitObject { epoll, wakeup, set };
            object.add(object.wakeup.as_raw_fd());
            Some(object)
        }
    }

    /// Watches `fd` too, while it is open.
    pub fn add(&self, fd: c_int) {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: descriptors and a live structure.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, fd, &mut event) };
    }

    /// Stops watching `fd`.
    pub fn remove(&self, fd: c_int) {
        let none = std::ptr::null_mut();
        // SAFETY: as above.
        unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), libc::EPOLL_CTL_DEL, fd, none) };
    }

    /// Adds the queue of this object to its wait set.
    ///
    /// # Safety
    /// The queue [leaves](WaitObject::leave) before it is closed, and the set is closed after that.
    pub unsafe fn join(&self, queue: *mut Fid) {
        // SAFETY: the caller's promise.
        if let Some(set) = unsafe { self.set.as_ref() } {
            set.add(queue, self.fd());
        }
    }

    /// Removes a queue that is being closed from its wait set.
    pub fn leave(&self, queue: *mut Fid) {
        // SAFETY: the promise of `join`.
        if let Some(set) = unsafe { self.set.as_ref() } {
            set.remove(queue, self.fd());
        }
    }

    /// Wakes the sleeping threads.
    pub fn wake(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes.
        unsafe { libc::write(self.wakeup.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Clears all wake-ups so far.
    pub fn settle(&self) {
        let mut count = 0_u64;
        // SAFETY: eight bytes.
        unsafe { libc::read(self.wakeup.as_raw_fd(), (&raw mut count).cast(), 8) };
    }

    /// The descriptor to sleep on.
    pub fn fd(&self) -> BorrowedFd<'_> {
        use std::os::fd::AsFd;
        self.epoll.as_fd()
    }
}

/// Whether a program may sleep on the descriptor of a queue: it is empty, and wake-ups are armed.
/// `None`: not an object that programs sleep on.
///
/// # Safety
/// As for [`object_of`].
pub unsafe fn may_sleep(queue: *mut Fid) -> Option<bool> {
    // SAFETY: the caller's promise.
    unsafe {
        let cq = object_of(queue).map(crate::cq::Cq::may_sleep);
        let eq = || object_of(queue).map(crate::eq::Eq::may_sleep);
        let cntr = || object_of(queue).map(crate::cntr::Cntr::may_sleep);
        cq.or_else(eq).or_else(cntr)
    }
}

/// `fi_control` of an object that programs may sleep on.
///
/// # Safety
/// `argument` is as the command requires.
pub unsafe fn control(
    wait: Option<&WaitObject>,
    wait_obj: c_int,
    command: c_int,
    argument: *mut c_void,
) -> c_int {
    given!(argument);
    let answer = match (command, wait) {
        (value::CONTROL_GETWAIT, Some(wait)) => wait.fd().as_raw_fd(),
        (value::CONTROL_GETWAIT, None) => return -error::ENODATA,
        (value::CONTROL_GETWAITOBJ, _) => wait_obj,
        _ => return -error::ENOSYS,
    };
    // SAFETY: both commands take a pointer to an `int`.
    unsafe { argument.cast::<c_int>().write(answer) };
    0
}

/// # Safety
/// `fd` is negative or a new descriptor.
unsafe fn owned(fd: c_int) -> Option<OwnedFd> {
    // SAFETY: the caller's promise.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}
