//! A function that several threads, or the tasks of an event loop, drive.

use crate::fork::ForkGuard;
use crate::wait::{Next, Patience};
use crate::{Error, Function, Result, Wait};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::io::{Errno, read, write};
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A function behind a lock, with sleep that needs no lock. While one thread sleeps, others post
/// and poll. A thread that takes in what a sleeper may wait for wakes it.
///
/// ```no_run
/// # use bellwire::{Completion, CompletionQueue, Function, Result, SharedFunction, Wait};
/// # use std::time::Duration;
/// # fn example(function: Function, completions: CompletionQueue) -> Result<()> {
/// let shared = SharedFunction::new(function, false)?;
/// let patience = Duration::from_secs(1);
/// let done = shared.wait_for(Wait::Adaptive, patience, || false, |function, progress| {
///     match progress {
///         true => function.poll(completions),
///         false => function.next_completion(completions),
///     }
/// })?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SharedFunction {
    /// Outside of the lock: a child may inherit a lock that no thread of its own will release.
    fork: ForkGuard,
    state: Mutex<State>,
    /// Threads that want the lock. A thread that polls lets them in.
    wanted: AtomicU32,
    /// Readable when `kick` is, or the function's own descriptor.
    events: OwnedFd,
    /// One count for each sleeper that was told to look.
    kick: OwnedFd,
    /// Time passes only while threads wait inside of the device.
    is_virtual: bool,
}

#[derive(Debug)]
struct State {
    function: Option<Function>,
    sleepers: u32,
    /// Of these, the ones that were told to look and have not yet. Equals the count of `kick`.
    kicked: u32,
}

/// How often a thread that polls asks whether it should stop.
const STOP_PERIOD: Duration = Duration::from_millis(10);
/// How long a thread that polls stays aside for others.
const LET_IN: Duration = Duration::from_micros(200);
/// Longest step under the lock with virtual time.
const VIRTUAL_STEP: Duration = Duration::from_micros(20);

impl SharedFunction {
    /// Shares a function. `is_virtual`: its device simulates time
    /// ([`Device::virtual_time`](crate::Device::virtual_time)).
    ///
    /// # Errors
    /// [`Error::System`] if there are no more descriptors.
    pub fn new(function: Function, is_virtual: bool) -> Result<SharedFunction> {
        let system = |cause: Errno| Error::System {
            what: "make a descriptor that tells of completions",
            cause: cause.into(),
        };
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
        let kick = eventfd(0, flags).map_err(system)?;
        let events = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system)?;
        for fd in [kick.as_fd(), function.wait_fd()] {
            let data = epoll::EventData::new_u64(0);
            epoll::add(&events, fd, data, epoll::EventFlags::IN).map_err(system)?;
        }
        Ok(SharedFunction {
            fork: ForkGuard::new()?,
            state: Mutex::new(State { function: Some(function), sleepers: 0, kicked: 0 }),
            wanted: AtomicU32::new(0),
            events,
            kick,
            is_virtual,
        })
    }

    /// The function, for one call or a few.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::Closed`] after [`SharedFunction::close`].
    #[inline]
    pub fn lock(&self) -> Result<Driving<'_>> {
        self.fork.check()?;
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(_) => self.lock_later(),
        };
        self.driving(state)
    }

    #[inline]
    fn driving<'a>(&'a self, state: MutexGuard<'a, State>) -> Result<Driving<'a>> {
        let driving = Driving { shared: self, state, kicks: true };
        if driving.state.function.is_some() { Ok(driving) } else { Err(Error::Closed) }
    }

    #[cold]
    fn lock_later(&self) -> MutexGuard<'_, State> {
        let _want = self.want();
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks threads that poll to let others in, as long as the result lives. For a thread that
    /// must not hold another lock while it waits for this one:
    /// [`wait_until_free`](SharedFunction::wait_until_free), then
    /// [`try_lock`](SharedFunction::try_lock), and again.
    #[must_use]
    pub fn want(&self) -> impl Drop + '_ {
        struct Want<'a>(&'a AtomicU32);
        impl Drop for Want<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        // Relaxed: a hint to the thread that polls; the lock orders what matters.
        self.wanted.fetch_add(1, Ordering::Relaxed);
        Want(&self.wanted)
    }

    /// Waits until no thread has the function.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn wait_until_free(&self) -> Result<()> {
        self.fork.check()?;
        drop(self.lock_later());
        Ok(())
    }

    /// The function, if no other thread has it now.
    ///
    /// # Errors
    /// As [`SharedFunction::lock`].
    #[inline]
    pub fn try_lock(&self) -> Result<Option<Driving<'_>>> {
        self.fork.check()?;
        let Ok(state) = self.state.try_lock() else { return Ok(None) };
        self.driving(state).map(Some)
    }

    /// Whether this is the process that shared the function.
    #[must_use]
    pub fn is_same_process(&self) -> bool {
        self.fork.is_same_process()
    }

    /// Takes the function out: all calls, and all threads that wait, end with [`Error::Closed`].
    /// `None` if that was done before, or in a child of the process that shared the function.
    pub fn close(&self) -> Option<Function> {
        if !self.fork.is_same_process() {
            return None;
        }
        let mut state = self.lock_later();
        let function = state.function.take();
        self.kick(&mut state);
        function
    }

    /// Makes progress until `look` finds something. `None`: `stop` said so, which is asked after a
    /// signal and every few milliseconds of polling. The second argument of `look` says whether
    /// it may make progress itself ([`Function::poll`]) or not ([`Function::next_completion`]).
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::Closed`], [`Error::Forked`]; [`Error::Standstill`] on a
    /// simulated device; the errors of `look`.
    pub fn wait_for<R>(
        &self,
        how: Wait,
        timeout: Duration,
        mut stop: impl FnMut() -> bool,
        mut look: impl FnMut(&mut Function, bool) -> Result<Option<R>>,
    ) -> Result<Option<R>> {
        let mut driving = self.lock()?;
        // Virtual time passes in sleeps only.
        let mut patience = Patience::new(if self.is_virtual { Wait::Block } else { how }, timeout);
        let mut asked: Option<Instant> = None;
        // Whether progress was made that a sleeper does not know of.
        let mut news = false;
        loop {
            let others_sleep = driving.state.sleepers > 0;
            if others_sleep {
                news |= driving.progress()? > 0;
            }
            if let Some(found) = look(&mut driving, !others_sleep)? {
                return Ok(Some(found));
            }
            if self.wanted.load(Ordering::Relaxed) > 0 {
                driving.kicks = news;
                drop(driving);
                self.let_others_in();
                (driving, news) = (self.lock()?, false);
            }
            let looked = Cell::new(None);
            let next = patience.after_empty_poll(false, || {
                let now = driving.now();
                looked.set(Some(now));
                now
            });
            if let Next::GiveUp(waited_ms) = next {
                return Err(Error::TimedOut { waited_ms });
            }
            if let Some(now) = looked.get()
                && now.saturating_duration_since(*asked.get_or_insert(now)) >= STOP_PERIOD
            {
                asked = Some(now);
                // Without the lock: `stop` may wait for another one.
                driving.kicks = std::mem::take(&mut news);
                drop(driving);
                if stop() {
                    return Ok(None);
                }
                driving = self.lock()?;
            }
            let Next::Sleep(left) = next else { continue };
            if self.is_virtual {
                driving.pass_time(left)?;
                continue;
            }
            if !driving.arm()? {
                news = true;
                continue;
            }
            let limit = driving.sleep_limit().map_or(left, |limit| limit.min(left));
            driving.kicks = std::mem::take(&mut news);
            driving.state.sleepers += 1;
            drop(driving);
            let interrupted = self.sleep(limit)?;
            let stops = interrupted && stop();
            driving = self.end_sleep()?;
            if stops {
                return Ok(None);
            }
        }
    }

    /// A descriptor for an event loop. After [`SharedFunction::begin_sleep`] has returned `true`
    /// it becomes readable when there may be something to do.
    #[must_use]
    pub fn events(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }

    /// Prepares a sleep at [`SharedFunction::events`]. `false`: there is something to do already.
    /// Otherwise [`SharedFunction::end_sleep`] follows. `is_ready` tells whether what the sleeper
    /// waits for is there; it makes no progress.
    ///
    /// # Errors
    /// As [`SharedFunction::lock`], and those of `is_ready`.
    pub fn begin_sleep(
        &self,
        is_ready: impl FnOnce(&mut Function) -> Result<bool>,
    ) -> Result<bool> {
        let mut driving = self.lock()?;
        if self.is_virtual || !driving.arm()? || is_ready(&mut driving)? {
            return Ok(false);
        }
        driving.kicks = false;
        driving.state.sleepers += 1;
        Ok(true)
    }

    /// Ends a sleep that [`SharedFunction::begin_sleep`] began.
    ///
    /// # Errors
    /// As [`SharedFunction::lock`]. The sleep has ended all the same.
    pub fn end_sleep(&self) -> Result<Driving<'_>> {
        self.fork.check()?;
        let mut state = self.lock_later();
        state.sleepers = state.sleepers.saturating_sub(1);
        if state.kicked > state.sleepers {
            state.kicked = state.sleepers;
            // Takes one count. It cannot block: `kicked` was the count.
            let _ = read(&self.kick, &mut [0u8; 8]);
        }
        self.driving(state)
    }

    /// Yields until the threads that want the lock have had it, or for a moment if they are slow.
    #[cold]
    fn let_others_in(&self) {
        let begin = Instant::now();
        while self.wanted.load(Ordering::Relaxed) > 0 && begin.elapsed() < LET_IN {
            std::thread::yield_now();
        }
    }

    /// Sleeps without the lock. Whether a signal ended it.
    fn sleep(&self, limit: Duration) -> Result<bool> {
        // A time that the kernel cannot count is as good as none.
        let limit = Timespec::try_from(limit).ok();
        let mut fds = [PollFd::new(&self.events, PollFlags::IN)];
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) => Ok(false),
            Err(Errno::INTR) => Ok(true),
            Err(error) => {
                drop(self.end_sleep());
                Err(Error::System { what: "wait for events", cause: error.into() })
            }
        }
    }

    /// Tells all sleepers to look.
    fn kick(&self, state: &mut State) {
        let more = u64::from(state.sleepers - state.kicked);
        if more > 0 {
            state.kicked = state.sleepers;
            let _ = write(&self.kick, &more.to_ne_bytes());
        }
    }
}

/// A function that the calling thread has for itself. Its end wakes the sleepers, because the
/// thread may have taken in what they wait for.
#[derive(Debug)]
pub struct Driving<'a> {
    shared: &'a SharedFunction,
    state: MutexGuard<'a, State>,
    kicks: bool,
}

impl Driving<'_> {
    /// Lets virtual time pass.
    fn pass_time(&mut self, left: Duration) -> Result<()> {
        // The device ends this wait when it has delivered something, or when time is over.
        match self.sleep_in_device(left.min(VIRTUAL_STEP)) {
            Err(Error::TimedOut { .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Deref for Driving<'_> {
    type Target = Function;

    fn deref(&self) -> &Function {
        self.state.function.as_ref().expect("looked at when the lock was taken")
    }
}

impl DerefMut for Driving<'_> {
    fn deref_mut(&mut self) -> &mut Function {
        self.state.function.as_mut().expect("looked at when the lock was taken")
    }
}

impl Drop for Driving<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.kicks && self.state.sleepers > self.state.kicked {
            self.shared.kick(&mut self.state);
        }
    }
}
