//! An adapter that several threads use, and a thread that makes progress while the program does
//! not.
//!
//! A program that polls makes its own progress, and so does one that waits for an event
//! (`wait.rs`); then the thread only checks that.

use crate::adapter::Adapter;
use crate::attend::Attention;
use crate::error::Result;
use crate::looks::Looks;
use crate::sleep::{Woken, wait};
use bellwire_ring::signals;
use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a program may be idle before the thread makes progress.
const PAUSE: Duration = Duration::from_millis(1);
/// How long the thread looks for the next packet when packets come close to each other. If each had
/// to wake it, a read of memory would take several times as long.
const FOLLOWS: Duration = Duration::from_micros(100);
/// Packets closer to each other than this are close.
const CLOSE: Duration = Duration::from_millis(1);
/// How long a program that looked in vain has to look again, before the thread looks.
const GLANCE: Duration = Duration::from_micros(20);
/// Longest sleep while a request waits for a time.
const SHORT_SLEEP: Duration = Duration::from_millis(1);
/// Longest sleep while queue pairs are connected: their peers are asked now and then. Tests wait
/// for ever, so that a lost wake-up does not pass.
pub(crate) const LONG_SLEEP: Duration =
    if cfg!(test) { Duration::from_secs(3600) } else { Duration::from_millis(100) };
/// How long the end of a context or a program waits for peers to acknowledge what was sent.
const LINGER: Duration = Duration::from_millis(500);

/// An adapter behind a lock. Dropping it ends the thread, and then the adapter.
pub struct Context {
    pub(crate) shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Who waits for the function's descriptor.
pub(crate) mod dozer {
    pub(crate) const NOBODY: u8 = 0;
    /// The thread.
    pub(crate) const THREAD: u8 = 1;
    /// A thread of the program.
    pub(crate) const PROGRAM: u8 = 2;
}

pub(crate) struct Shared {
    pub(crate) adapter: Mutex<Adapter>,
    /// Locks by the program.
    pub(crate) turns: AtomicU64,
    ends: AtomicBool,
    /// The program sleeps, so the thread takes over at once.
    asleep: AtomicBool,
    /// A value of [`dozer`]. Somebody is entered only under the lock.
    pub(crate) dozer: AtomicU8,
    /// Wakes the thread.
    wake: OwnedFd,
    /// Threads of the program that poll and doze. One begins only under the lock.
    dozes: AtomicU32,
    /// Wakes the program's thread that waits for the function's descriptor.
    pub(crate) wake_program: OwnedFd,
    /// A thread of the program waits for an event, and makes progress.
    pub(crate) watched: AtomicBool,
    /// Threads of the program that wait for an event, and do not.
    pub(crate) others: AtomicU32,
    /// Whether a thread that waits for an event looks before it sleeps.
    looks: Mutex<Looks>,
    /// The thread leaves the progress to that.
    resting: AtomicBool,
    /// The thread made progress since the program slept here. So the program sleeps elsewhere, such
    /// as at the descriptor of a channel.
    pub(crate) was_needed: AtomicBool,
    /// A copy of the function's own, for sleepers without the lock.
    pub(crate) descriptor: OwnedFd,
}

impl Context {
    /// Opens an adapter of the device `name`.
    pub fn open(name: &str) -> Result<Context> {
        let mut adapter = Adapter::open(name)?;
        // The thread sees to those that the program takes nowhere.
        adapter.let_answers_wait();
        let descriptor = adapter.wait_fd().try_clone_to_owned()?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let shared = Arc::new(Shared {
            adapter: Mutex::new(adapter),
            turns: AtomicU64::new(0),
            ends: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            dozer: AtomicU8::new(dozer::NOBODY),
            dozes: AtomicU32::new(0),
            wake: eventfd(0, flags).map_err(std::io::Error::from)?,
            wake_program: eventfd(0, flags).map_err(std::io::Error::from)?,
            watched: AtomicBool::new(false),
            others: AtomicU32::new(0),
            looks: Mutex::new(Looks::new()),
            resting: AtomicBool::new(false),
            was_needed: AtomicBool::new(true),
            descriptor,
        });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("bellwire".to_owned());
        // From then on it has its name, by which the device knows that it is not the program's.
        let thread = signals::spawn(thread, move || theirs.run())?;
        Ok(Context { shared, thread: Some(thread) })
    }

    /// The adapter, for a call of the program.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, Adapter> {
        let guard = self.shared.adapter.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: only the guard's holder writes, and a stale value delays the thread once.
        let turns = self.shared.turns.load(Ordering::Relaxed);
        self.shared.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
        // The call may take what the descriptor tells, and nothing arms the function again. Who
        // waits there would sleep on.
        match self.shared.dozer.load(Ordering::Relaxed) {
            dozer::NOBODY => {}
            who => self.shared.wake_dozer(who),
        }
        guard
    }

    /// Tells all peers that the program ends, unless another thread uses the adapter.
    pub fn leave(&self) {
        if let Ok(mut adapter) = self.shared.adapter.try_lock() {
            adapter.leave();
            adapter.finish(LINGER);
        }
    }

    /// Sleeps until a packet comes, at most for `limit`. For programs that poll while others need
    /// the processor.
    pub fn doze(&self, limit: Duration) {
        let (ready, groups) = {
            let mut adapter = self.lock();
            self.shared.dozes.fetch_add(1, Ordering::Relaxed);
            (adapter.may_sleep(), adapter.group_fd())
        };
        if ready {
            let _ = wait(&[&self.shared.descriptor], groups.as_deref(), limit, None);
        }
        self.shared.dozes.fetch_sub(1, Ordering::Relaxed);
    }

    /// The program may sleep at the descriptor of a channel next, without a further call.
    pub fn may_sleep(&self) {
        // If it sleeps here each time, the thread would be woken in vain. If it does not this time,
        // the thread finds that out.
        if self.shared.was_needed.load(Ordering::Relaxed) {
            self.sleeps();
        }
    }

    /// The program sleeps now, so the thread makes progress.
    pub fn sleeps(&self) {
        self.shared.asleep.store(true, Ordering::Relaxed);
        self.shared.wake();
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // What the device still holds ends with it.
        let mut adapter = self.lock();
        adapter.leave();
        adapter.finish(LINGER);
        drop(adapter);
        // Relaxed: joining the thread orders everything else.
        self.shared.ends.store(true, Ordering::Relaxed);
        self.sleeps();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            debug_assert!(ended.is_ok(), "it does not panic");
        }
    }
}

impl Shared {
    fn run(&self) {
        let (mut turns, mut last) = (0, Instant::now());
        // Without it the thread looks once in a pause.
        let mut attention = Attention::new(&self.wake, &self.descriptor);
        while !self.ends.load(Ordering::Relaxed) {
            let seen = self.turns.load(Ordering::Relaxed);
            let is_active = seen != turns && !self.asleep.swap(false, Ordering::Relaxed);
            turns = seen;
            if is_active {
                // Who waits for an event takes the packets itself.
                if self.watched.load(Ordering::Relaxed) {
                    self.pause(PAUSE);
                } else if !attention.is_on() {
                    self.disarm();
                    self.pause(PAUSE);
                } else if attention.sleep(PAUSE) {
                    attention.looked(self.stand_in());
                } else {
                    self.clear_wake();
                }
                continue;
            }
            // SeqCst: `end_watch` stores and loads the two the other way round, so that one of both
            // sees the other.
            self.resting.store(true, Ordering::SeqCst);
            if self.watched.load(Ordering::SeqCst) {
                self.pause(LONG_SLEEP);
                continue;
            }
            self.resting.store(false, Ordering::Relaxed);
            let (ready, limit, groups) = {
                let mut adapter = self.adapter.lock().unwrap_or_else(PoisonError::into_inner);
                // A thread of the program waits for the descriptor.
                if self.dozer.load(Ordering::Relaxed) == dozer::PROGRAM {
                    continue;
                }
                let prepared = prepare(&mut adapter);
                let who = if prepared.0 { dozer::THREAD } else { dozer::NOBODY };
                self.dozer.store(who, Ordering::Relaxed);
                prepared
            };
            if !ready {
                self.was_needed.store(true, Ordering::Relaxed);
                continue;
            }
            let woken = wait(&[&self.wake, &self.descriptor], groups.as_deref(), limit, None);
            self.clear_wake();
            if let Ok(Woken { by_first: false, by_other: true }) = woken {
                attention.turn_on();
                if last.elapsed() < CLOSE {
                    self.serve(seen);
                }
                last = Instant::now();
            }
        }
    }

    /// The program takes its packets itself: they wake nobody.
    fn disarm(&self) {
        let Ok(mut adapter) = self.adapter.try_lock() else { return };
        let is_free = self.dozer.load(Ordering::Relaxed) == dozer::NOBODY;
        if is_free && self.dozes.load(Ordering::Relaxed) == 0 {
            adapter.disarm();
        }
    }

    /// Serves peers until no packet has come for a while. Leaves it to a program that calls again:
    /// its calls were `seen`.
    fn serve(&self, seen: u64) {
        // A thread of the program may have taken the place meanwhile.
        let (own, nobody) = (dozer::THREAD, dozer::NOBODY);
        let _ = self.dozer.compare_exchange(own, nobody, Ordering::Relaxed, Ordering::Relaxed);
        let mut last = Instant::now();
        while last.elapsed() < FOLLOWS && self.turns.load(Ordering::Relaxed) == seen {
            let Ok(mut adapter) = self.adapter.try_lock() else { return };
            if adapter.serve() > 0 {
                last = Instant::now();
            }
        }
    }

    /// A packet has come. Takes it, unless the program does. Returns whether it did.
    fn stand_in(&self) -> bool {
        let seen = self.turns.load(Ordering::Relaxed);
        let looks = |adapter: &MutexGuard<'_, Adapter>| adapter.looks_again;
        let mut guard = self.adapter.try_lock().ok();
        // Who has the lock makes progress, and who looked in vain looks again. But it may have been
        // the last time.
        if guard.as_ref().is_none_or(looks) {
            drop(guard);
            std::thread::sleep(GLANCE);
            if self.turns.load(Ordering::Relaxed) != seen {
                return false;
            }
            guard = self.adapter.try_lock().ok();
        }
        let Some(mut adapter) = guard else { return false };
        while !adapter.may_sleep() {}
        true
    }

    /// The program's thread that made progress does so no more.
    pub(crate) fn end_watch(&self) {
        self.watched.store(false, Ordering::SeqCst);
        if self.resting.load(Ordering::SeqCst) {
            self.resting.store(false, Ordering::Relaxed);
            self.wake();
        }
    }

    pub(crate) fn looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cold]
    fn wake_dozer(&self, who: u8) {
        self.dozer.store(dozer::NOBODY, Ordering::Relaxed);
        let descriptor = if who == dozer::THREAD { &self.wake } else { &self.wake_program };
        let _ = rustix::io::write(descriptor, &1u64.to_ne_bytes());
    }

    fn wake(&self) {
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    /// Sleeps until the program wakes the thread.
    fn pause(&self, limit: Duration) {
        let _ = wait(&[&self.wake], None, limit, None);
        self.clear_wake();
    }

    /// Takes back what has woken the thread, if anything has.
    fn clear_wake(&self) {
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }
}

/// Prepares a sleep: whether one is due, for how long at most, and the descriptor of groups.
pub(crate) fn prepare(adapter: &mut Adapter) -> (bool, Duration, Option<Arc<OwnedFd>>) {
    let ready = adapter.may_sleep();
    let limit = if adapter.waits_for_time() { SHORT_SLEEP } else { LONG_SLEEP };
    (ready, limit, adapter.group_fd())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LIMIT, Side, until};
    use rustix::event::{PollFd, PollFlags, poll};

    /// A datagram to a group wakes the thread, which gives it to its queue pair.
    #[test]
    fn a_group_wakes_the_thread() {
        let contexts = [(); 2].map(|()| Context::open("udp:127.0.0.1").expect("UDP"));
        let [.., high, low] = std::process::id().to_be_bytes();
        let group = std::net::Ipv4Addr::new(239, high, low, 0);
        let [sender, receiver] = [Side::new(&contexts[0], 1), Side::new(&contexts[1], 2)];
        contexts[1].lock().attach(receiver.number, group).unwrap();
        let waits = || contexts[1].shared.dozer.load(Ordering::Relaxed) == dozer::THREAD;
        until("the receiver's thread waits", waits);
        sender.send(&contexts[0], (group, crate::GROUP_QUEUE_PAIR));
        assert_eq!(receiver.channel.pop().unwrap(), 2);
        assert!(contexts[1].lock().next(receiver.queue).is_some());
    }

    /// While the program polls, packets make the function's descriptor readable no more. So each
    /// costs the kernel less. They do again when the program stops, and while a thread dozes there.
    #[test]
    fn packets_for_a_polling_program_wake_nobody() {
        let contexts = [(); 2].map(|()| Context::open("udp:127.0.0.1").expect("UDP"));
        let readable = || {
            let nothing = Some(&rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 });
            let mut fds = [PollFd::new(&contexts[1].shared.descriptor, PollFlags::IN)];
            poll(&mut fds, nothing).unwrap() > 0
        };
        let [sender, receiver] = [Side::new(&contexts[0], 1), Side::new(&contexts[1], 2)];
        let waits = || contexts[1].shared.dozer.load(Ordering::Relaxed) == dozer::THREAD;
        until("the thread waits", waits);
        let to = (contexts[1].lock().host(), receiver.number);
        let polls = || {
            for _ in 0..50 {
                contexts[1].lock().look();
                std::thread::sleep(Duration::from_micros(100));
            }
        };
        // Whether a packet is told while nobody takes it.
        let is_told = |patience: Duration| {
            let _adapter = contexts[1].lock();
            sender.send(&contexts[0], to);
            let begin = Instant::now();
            while !readable() && begin.elapsed() < patience {
                contexts[0].lock().look();
            }
            readable()
        };
        until("packets are not told", || {
            polls();
            !is_told(Duration::from_millis(50))
        });
        until("the thread waits again", waits);
        contexts[1].shared.dozes.store(1, Ordering::Relaxed);
        polls();
        assert!(is_told(LIMIT), "a thread dozes");
        contexts[1].shared.dozes.store(0, Ordering::Relaxed);
    }

    /// A call of the program may take the descriptor's news away, so it wakes the thread, which
    /// arms the function again.
    #[test]
    fn a_call_wakes_the_thread() {
        let context = Context::open(&format!("shm:rdma-context-{}", std::process::id()))
            .expect("shared memory");
        let dozes = || context.shared.dozer.load(Ordering::Relaxed) == dozer::THREAD;
        for call in 0..20 {
            until(&format!("the thread waits before call {call}"), dozes);
            let adapter = context.lock();
            assert!(!dozes(), "call {call}");
            drop(adapter);
        }
        until("the thread waits at the end", dozes);
    }
}
