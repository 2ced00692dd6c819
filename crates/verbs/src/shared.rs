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
            // Whether others have had the function since that look.
            let mut let_go = false;
            if self.wanted.load(Ordering::Relaxed) > 0 {
                driving.kicks = news;
                drop(driving);
                self.let_others_in();
                (driving, news, let_go) = (self.lock()?, false, true);
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
                (driving, let_go) = (self.lock()?, true);
            }
            let Next::Sleep(left) = next else { continue };
            if self.is_virtual {
                driving.pass_time(left)?;
                continue;
            }
            if let_go {
                // They took in what they found, and told only those that slept.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Completion, CompletionQueue, Device, Message, QueuePair, QueuePairOptions};
    use std::sync::atomic::AtomicBool;
    use std::thread;

    /// Longest wait for anything.
    const LONG: Duration = Duration::from_secs(8);

    /// A shared function of a node that no other test has, its queue, and a pair with a receive
    /// and a link to itself.
    fn shared(test: &str) -> (SharedFunction, CompletionQueue, QueuePair) {
        let device = Device::open(&format!("shm:driven-{test}-{}", std::process::id())).unwrap();
        let mut function = device.open_function(0).unwrap();
        let queue = function.create_completion_queue(64).unwrap();
        let pair = function.create_queue_pair(&QueuePairOptions::new(queue)).unwrap();
        function.post_receive(pair, vec![0; 8], 6).unwrap();
        let to = function.query(pair).unwrap().address;
        function.post_send(pair, Message::inline(b"link").to(to).unsignaled()).unwrap();
        assert_eq!(function.wait(queue, Wait::Spin, LONG).unwrap().context, 6);
        function.post_receive(pair, vec![0; 8], 7).unwrap();
        (SharedFunction::new(function, false).unwrap(), queue, pair)
    }

    /// Sends a message from the queue pair to itself. It is taken in by the next progress.
    fn send(shared: &SharedFunction, pair: QueuePair) {
        let mut driving = shared.lock().unwrap();
        let to = driving.query(pair).unwrap().address;
        driving.post_send(pair, Message::inline(b"message").to(to).unsignaled()).unwrap();
    }

    fn look(queue: CompletionQueue) -> impl Fn(&mut Function, bool) -> Result<Option<Completion>> {
        move |function, progress| match progress {
            true => function.poll(queue),
            false => function.next_completion(queue),
        }
    }

    #[track_caller]
    fn until(what: &str, mut is: impl FnMut() -> bool) {
        let since = Instant::now();
        while !is() {
            assert!(since.elapsed() < LONG, "{what}");
            thread::yield_now();
        }
    }

    /// Without the wake-up that a lock by a user of the function brings.
    fn sleepers(shared: &SharedFunction) -> u32 {
        shared.state.lock().unwrap().sleepers
    }

    fn is_readable(shared: &SharedFunction) -> bool {
        let mut fds = [PollFd::new(&shared.events, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).unwrap() > 0
    }

    /// Begins a sleep of an event loop that waits for something else.
    fn begin(shared: &SharedFunction) {
        until("nothing is left to do", || shared.begin_sleep(|_| Ok(false)).unwrap());
    }

    /// The lock is had at once if it is free, and is waited for otherwise.
    #[test]
    fn the_lock_is_waited_for() {
        let (shared, ..) = shared("lock");
        assert_eq!(shared.wanted.load(Ordering::Relaxed), 0);
        assert!(shared.try_lock().unwrap().is_some() && shared.is_same_process());
        let held = shared.lock().unwrap();
        thread::scope(|scope| {
            assert!(scope.spawn(|| shared.try_lock().unwrap().is_none()).join().unwrap());
            let waiter = scope.spawn(|| shared.wait_until_free().unwrap());
            until("it waits", || shared.wanted.load(Ordering::Relaxed) == 1);
            assert!(!waiter.is_finished());
            drop(held);
            waiter.join().unwrap();
        });
        assert_eq!(shared.wanted.load(Ordering::Relaxed), 0);
    }

    /// A thread that polls stays aside for a while at each look at which another wants the lock.
    #[test]
    fn a_poller_stays_aside() {
        let (shared, ..) = shared("aside");
        let (ended, has_ended) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let _want = shared.want();
            let (begin, mut looks) = (Instant::now(), 0);
            let found = shared.wait_for(
                Wait::Spin,
                LONG,
                || false,
                |_, _| {
                    looks += 1;
                    Ok((looks == 20).then_some(()))
                },
            );
            ended.send((found.unwrap(), begin.elapsed())).unwrap();
        });
        let (found, took) = has_ended.recv_timeout(LONG).expect("it ends");
        assert_eq!(found, Some(()));
        assert!(took >= 19 * LET_IN);
    }

    /// All ways of waiting get their message. `Block` sleeps until it comes. A signal that ends the
    /// sleep only has `stop` asked.
    #[test]
    fn a_wait_sleeps_and_gets_its_message() {
        extern "C" fn nothing(_: libc::c_int) {}
        // SAFETY: the handler does nothing, and no other test uses the signal.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
            assert_eq!(libc::sigaction(libc::SIGUSR2, &raw const action, std::ptr::null_mut()), 0);
        }
        let (shared, queue, pair) = shared("sleeps");
        send(&shared, pair);
        let done = shared.wait_for(Wait::Spin, LONG, || false, look(queue)).unwrap();
        assert_eq!(done.expect("a message").context, 7);
        shared.lock().unwrap().post_receive(pair, vec![0; 8], 8).unwrap();

        let (asked, stops) = (AtomicU32::new(0), AtomicBool::new(false));
        let asks = || asked.load(Ordering::Relaxed);
        let stop = || {
            asked.fetch_add(1, Ordering::Relaxed);
            stops.load(Ordering::Relaxed)
        };
        thread::scope(|scope| {
            let wait = || {
                let (tell, told) = std::sync::mpsc::channel();
                let shared = &shared;
                let waiter = scope.spawn(move || {
                    // SAFETY: the number of the calling thread.
                    tell.send(unsafe { libc::pthread_self() }).unwrap();
                    shared.wait_for(Wait::Block, LONG, stop, look(queue)).unwrap()
                });
                let it = told.recv().unwrap();
                until("it sleeps", || sleepers(shared) == 1);
                (waiter, it)
            };
            // SAFETY: the thread has not been joined yet.
            let signal = |thread| unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };

            let (waiter, it) = wait();
            let before = asks();
            thread::sleep(3 * STOP_PERIOD);
            assert_eq!((asks(), waiter.is_finished()), (before, false), "it sleeps undisturbed");
            // The first ones may come before it is in the kernel.
            until("a signal has it ask", || {
                signal(it);
                asks() > before
            });
            until("it sleeps again", || sleepers(&shared) == 1);
            assert!(!waiter.is_finished());
            send(&shared, pair);
            assert_eq!(waiter.join().unwrap().expect("a message").context, 8);

            let (waiter, it) = wait();
            stops.store(true, Ordering::Relaxed);
            until("it stops", || {
                signal(it);
                waiter.is_finished()
            });
            assert!(waiter.join().unwrap().is_none());
        });
        assert_eq!(sleepers(&shared), 0);
    }

    /// An event loop does not sleep while what it waits for is there, or there is something to do.
    #[test]
    fn an_event_loop_sleeps_when_there_is_nothing_to_do() {
        let (shared, queue, pair) = shared("loop");
        begin(&shared);
        drop(shared.end_sleep().unwrap());
        assert!(!shared.begin_sleep(|_| Ok(true)).unwrap(), "it is there");
        send(&shared, pair);
        assert!(!shared.begin_sleep(|_| Ok(false)).unwrap(), "there is something to do");
        assert!(shared.lock().unwrap().next_completion(queue).unwrap().is_some());
        begin(&shared);
        assert!(!is_readable(&shared));
        send(&shared, pair);
        assert!(is_readable(&shared));
        drop(shared.end_sleep().unwrap());
    }

    /// Each sleeper is told once. What one of them has taken is not the next one's.
    #[test]
    fn sleepers_are_told_one_by_one() {
        let (shared, ..) = shared("one");
        begin(&shared);
        drop(shared.lock().unwrap());
        begin(&shared);
        assert_eq!(sleepers(&shared), 2);
        drop(shared.lock().unwrap());
        drop(shared.end_sleep().unwrap());
        assert!(is_readable(&shared), "the second has not looked");
        begin(&shared);
        drop(shared.end_sleep().unwrap());
        assert!(is_readable(&shared), "a third one leaves that to the second");
        drop(shared.end_sleep().unwrap());
        assert!(!is_readable(&shared), "all have looked");
    }

    /// On a simulated device a wait has time pass, and nobody sleeps outside of the device.
    #[test]
    fn virtual_time_passes_in_waits() {
        let name = format!("model:chpp:driven-{}", std::process::id());
        let device = Device::open(&name).unwrap();
        let mut function = device.open_function(0).unwrap();
        let queue = function.create_completion_queue(4).unwrap();
        let shared = SharedFunction::new(function, true).unwrap();
        let (ended, has_ended) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let wait = shared.wait_for(Wait::Spin, 50 * VIRTUAL_STEP, || false, look(queue));
            let slept = shared.begin_sleep(|_| Ok(false));
            ended.send((wait.map(drop), slept)).unwrap();
        });
        let (wait, slept) = has_ended.recv_timeout(LONG).expect("it ends");
        assert!(matches!(wait, Err(Error::TimedOut { waited_ms: 1 })), "{wait:?}");
        assert!(matches!(slept, Ok(false)));
    }
}
