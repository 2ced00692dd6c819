//! An adapter that several threads use, and a thread that makes progress while the program does
//! not.
//!
//! A program that polls makes its own progress; then the thread only checks that.

use crate::adapter::Adapter;
use crate::attend::Attention;
use crate::error::Result;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a program may be idle before the thread makes progress.
const PAUSE: Duration = Duration::from_millis(1);
/// Longest sleep while a request waits for a time.
const SHORT_SLEEP: Duration = Duration::from_millis(1);
/// Longest sleep while queue pairs are connected: their peers are asked now and then. Tests wait
/// for ever, so that a lost wake-up does not pass.
const LONG_SLEEP: Duration =
    if cfg!(test) { Duration::from_secs(3600) } else { Duration::from_millis(100) };
/// How long the end of a context or a program waits for peers to acknowledge what was sent.
const LINGER: Duration = Duration::from_millis(500);

/// An adapter behind a lock. Dropping it ends the thread, and then the adapter.
pub struct Context {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    adapter: Mutex<Adapter>,
    /// Locks by the program.
    turns: AtomicU64,
    ends: AtomicBool,
    /// The program sleeps, so the thread takes over at once.
    asleep: AtomicBool,
    /// The thread waits for the function's descriptor. Changed only under the lock.
    dozing: AtomicBool,
    wake: OwnedFd,
    /// A copy of the function's own, for sleepers without the lock.
    descriptor: OwnedFd,
}

impl Context {
    /// Opens an adapter of the device `name`.
    pub fn open(name: &str) -> Result<Context> {
        let adapter = Adapter::open(name)?;
        let descriptor = adapter.wait_fd().try_clone_to_owned()?;
        let shared = Arc::new(Shared {
            adapter: Mutex::new(adapter),
            turns: AtomicU64::new(0),
            ends: AtomicBool::new(false),
            asleep: AtomicBool::new(false),
            dozing: AtomicBool::new(false),
            wake: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
                .map_err(std::io::Error::from)?,
            descriptor,
        });
        let theirs = shared.clone();
        let thread = std::thread::Builder::new().name("bellwire".to_owned());
        let (starts, started) = std::sync::mpsc::channel();
        let run = move || {
            let _ = starts.send(());
            theirs.run();
        };
        let thread = thread.spawn(run)?;
        // From now on it has its name, by which the device knows that it is not the program's.
        let _ = started.recv();
        Ok(Context { shared, thread: Some(thread) })
    }

    /// The adapter, for a call of the program.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, Adapter> {
        let guard = self.shared.adapter.lock().unwrap_or_else(PoisonError::into_inner);
        // Relaxed: only the guard's holder writes, and a stale value delays the thread once.
        let turns = self.shared.turns.load(Ordering::Relaxed);
        self.shared.turns.store(turns.wrapping_add(1), Ordering::Relaxed);
        // The call may take what the descriptor tells, and nothing arms the function again. The
        // thread would sleep on, so it looks after the program from now on.
        if self.shared.dozing.load(Ordering::Relaxed) {
            self.shared.dozing.store(false, Ordering::Relaxed);
            self.shared.wake();
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
            (adapter.may_sleep(), adapter.group_fd())
        };
        if ready {
            wait([Some(&self.shared.descriptor), groups.as_deref()], limit);
        }
    }

    /// The program may sleep now, so the thread makes progress.
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
        let mut turns = 0;
        // Without it the thread looks once in a pause.
        let mut attention = Attention::new(&self.wake, &self.descriptor);
        while !self.ends.load(Ordering::Relaxed) {
            let seen = self.turns.load(Ordering::Relaxed);
            let is_active = seen != turns && !self.asleep.swap(false, Ordering::Relaxed);
            turns = seen;
            if is_active && !attention.is_on() {
                self.pause([None, None], PAUSE);
                continue;
            }
            if is_active {
                if attention.sleep(PAUSE) {
                    attention.looked(self.stand_in());
                }
                continue;
            }
            let (ready, limit, groups) = {
                let mut adapter = self.adapter.lock().unwrap_or_else(PoisonError::into_inner);
                let ready = adapter.may_sleep();
                self.dozing.store(ready, Ordering::Relaxed);
                let limit = if adapter.waits_for_time() { SHORT_SLEEP } else { LONG_SLEEP };
                (ready, limit, adapter.group_fd())
            };
            if ready && self.pause([Some(&self.descriptor), groups.as_deref()], limit) {
                attention.rouse();
            }
        }
    }

    /// A packet has come. Takes it, unless the program is about to. Returns whether it did.
    fn stand_in(&self) -> bool {
        // Who has the lock makes progress.
        let Ok(mut adapter) = self.adapter.try_lock() else { return false };
        if adapter.looks_again {
            return false;
        }
        while !adapter.may_sleep() {}
        true
    }

    fn wake(&self) {
        let _ = rustix::io::write(self.wake.as_fd(), &1u64.to_ne_bytes());
    }

    /// Sleeps until the program or a peer wakes the thread.
    /// Returns whether a peer did.
    fn pause(&self, others: [Option<&OwnedFd>; 2], limit: Duration) -> bool {
        let [first, second] = others;
        let woken = wait([Some(&self.wake), first, second], limit);
        let mut count = [0; 8];
        let _ = rustix::io::read(self.wake.as_fd(), &mut count);
        woken == [false, true]
    }
}

/// Sleeps until one of the descriptors is readable. Returns whether the first one is, and whether
/// any is.
fn wait<const N: usize>(descriptors: [Option<&OwnedFd>; N], limit: Duration) -> [bool; 2] {
    let limit = rustix::time::Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    let mut fds: Vec<PollFd<'_>> =
        descriptors.into_iter().flatten().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let count = poll(&mut fds, Some(&limit)).unwrap_or(0);
    [fds.first().is_some_and(|first| !first.revents().is_empty()), count > 0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    fn until(what: &str, condition: impl Fn() -> bool) {
        let started = Instant::now();
        while !condition() {
            assert!(started.elapsed() < Duration::from_secs(60), "{what}");
            std::thread::yield_now();
        }
    }

    /// A datagram to a group wakes the thread, which gives it to its queue pair.
    #[test]
    fn a_group_wakes_the_thread() {
        use crate::{
            Attributes, Bytes, Capacity, Datagram, GROUP_QUEUE_PAIR, Mask, Operation, QpState,
            QueuePairOptions, SendRequest, Service,
        };
        let contexts = [(); 2].map(|()| Context::open("udp:127.0.0.1").expect("UDP"));
        let [.., high, low] = std::process::id().to_be_bytes();
        let group = std::net::Ipv4Addr::new(239, high, low, 0);
        let channel = Arc::new(crate::EventQueue::new().unwrap());
        let sides = contexts.each_ref().map(|context| {
            let mut adapter = context.lock();
            let domain = adapter.create_domain().unwrap();
            let queue = adapter.create_queue(16, Some(channel.clone()), 1).unwrap();
            let capacity = Capacity {
                sends: 4,
                receives: 4,
                send_parts: 1,
                receive_parts: 1,
                inline_bytes: 64,
            };
            let options = QueuePairOptions {
                service: Service::Datagram,
                domain,
                send_queue: queue,
                receive_queue: queue,
                shared: None,
                capacity,
                signal_all: true,
                object: 1,
            };
            let number = adapter.create_queue_pair(&options).unwrap();
            for (state, mask) in [
                (QpState::Init, Mask::PKEY_INDEX | Mask::PORT | Mask::QKEY),
                (QpState::ReadyToReceive, Mask::empty()),
                (QpState::ReadyToSend, Mask::SEND_PSN),
            ] {
                let new = Attributes { state, ..Attributes::new() };
                adapter.modify(number, Mask::STATE | mask, &new).unwrap();
            }
            (number, queue)
        });
        let [(sender, _), (receiver, queue)] = sides;
        {
            let mut adapter = contexts[1].lock();
            // A receive without parts has no room for a route header, so its completion is an
            // error. Here it only has to come.
            adapter.post_receive(receiver, 5, &[]).unwrap();
            adapter.attach(receiver, group).unwrap();
            adapter.arm(queue, false).unwrap();
        }
        until("the receiver's thread waits", || contexts[1].shared.dozing.load(Ordering::Relaxed));
        let request = SendRequest {
            id: 6,
            operation: Operation::Send { immediate: None, invalidate: None },
            bytes: Bytes::Inline(b"wake"),
            signaled: true,
            solicited: false,
            fence: false,
            to: Some(Datagram { host: group, queue_pair: GROUP_QUEUE_PAIR, key: 0 }),
        };
        contexts[0].lock().post_send(sender, &request).unwrap();
        assert_eq!(channel.pop().unwrap(), 1);
        assert_eq!(contexts[1].lock().next(queue).map(|done| done.id), Some(5));
    }

    /// A call of the program may take the descriptor's news away, so it wakes the thread, which
    /// arms the function again.
    #[test]
    fn a_call_wakes_the_thread() {
        let context = Context::open(&format!("shm:rdma-context-{}", std::process::id()))
            .expect("shared memory");
        let dozes = || context.shared.dozing.load(Ordering::Relaxed);
        for call in 0..20 {
            until(&format!("the thread waits before call {call}"), dozes);
            let adapter = context.lock();
            assert!(!dozes(), "call {call}");
            drop(adapter);
        }
        until("the thread waits at the end", dozes);
    }
}
