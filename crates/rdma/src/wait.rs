//! Threads of the program that wait for an event of a completion channel.
//!
//! The first makes the progress of all, and sleeps at the descriptors of channel and function. So a
//! packet wakes the thread that waits for it, and no other one.

use crate::context::{Context, LONG_SLEEP, dozer, prepare};
use crate::events::EventQueue;
use crate::sleep::wait;
use bellwire_ring::signals::Blocked;
use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Context {
    /// Takes the oldest event of a channel. Waits for a tenth of a second, unless the program has
    /// set `O_NONBLOCK`; `None`: no event came.
    ///
    /// # Errors
    /// `EAGAIN`; `EINTR`, if a read would end with it.
    pub fn next_event(&self, channel: &EventQueue<usize>) -> io::Result<Option<usize>> {
        if channel.has_events() {
            return channel.pop().map(Some);
        }
        if channel.is_nonblocking()? {
            // A program that asks again and again leaves no time to the thread.
            self.lock().look();
            return channel.pop().map(Some);
        }
        let shared = &*self.shared;
        // SeqCst: see `Shared::run`.
        if shared.watched.swap(true, Ordering::SeqCst) {
            shared.others.fetch_add(1, Ordering::Relaxed);
            let event = channel.next();
            shared.others.fetch_sub(1, Ordering::Relaxed);
            return event;
        }
        let watch = Watch(self);
        watch.wait(channel)?;
        drop(watch);
        if channel.has_events() { channel.pop().map(Some) } else { Ok(None) }
    }
}

/// The right to make the progress of all that wait.
struct Watch<'c>(&'c Context);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.shared.end_watch();
        // The thread makes their progress from now on.
        if self.0.shared.others.load(Ordering::Relaxed) > 0 {
            self.0.sleeps();
        }
    }
}

impl Watch<'_> {
    /// Waits until the channel has an event, or for a while. Looks for it first where that pays.
    fn wait(&self, channel: &EventQueue<usize>) -> io::Result<()> {
        let looks = || self.0.shared.looks();
        let (began, limit) = (Instant::now(), looks().limit());
        let waited = match limit {
            Some(limit) => self.look_first(channel, limit).map(|_| ()),
            None => self.sleep(channel, None),
        };
        looks().ended(began.elapsed());
        waited
    }

    /// Looks until the channel has an event, at most for `limit`, and sleeps then. Returns whether
    /// it did not have to sleep.
    fn look_first(&self, channel: &EventQueue<usize>, limit: Duration) -> io::Result<bool> {
        // A handler that ran before the sleep would not end it.
        let blocked = Blocked::new();
        let began = Instant::now();
        while began.elapsed() < limit {
            self.0.lock().look();
            if channel.has_events() {
                return Ok(true);
            }
            // Other threads get the adapter in between.
            std::hint::spin_loop();
        }
        self.sleep(channel, Some(blocked.before())).map(|()| false)
    }

    /// Sleeps until the channel has an event, or for a while, with `mask` as the thread's mask of
    /// signals.
    fn sleep(&self, channel: &EventQueue<usize>, mask: Option<&libc::sigset_t>) -> io::Result<()> {
        let shared = &*self.0.shared;
        let began = Instant::now();
        loop {
            let (ready, limit, groups) = {
                let mut adapter = self.0.lock();
                let prepared = prepare(&mut adapter);
                if channel.has_events() {
                    return Ok(());
                }
                if prepared.0 {
                    shared.dozer.store(dozer::PROGRAM, Ordering::Relaxed);
                }
                prepared
            };
            if !ready {
                continue;
            }
            shared.was_needed.store(false, Ordering::Relaxed);
            let places = [&shared.wake_program, channel.descriptor(), &shared.descriptor];
            let woken = wait(&places, groups.as_deref(), limit, mask);
            // Only this thread leaves the place, or a call of another one that wakes it.
            if shared.dozer.load(Ordering::Relaxed) == dozer::PROGRAM {
                shared.dozer.store(dozer::NOBODY, Ordering::Relaxed);
            }
            if woken?.by_first {
                let _ = rustix::io::read(&shared.wake_program, &mut [0; 8]);
            }
            if channel.has_events() || began.elapsed() >= LONG_SLEEP {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LIMIT, Side, until};
    use std::os::unix::thread::JoinHandleExt;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, mpsc};

    fn contexts(name: &str) -> Vec<[Context; 2]> {
        let job = format!("shm:rdma-{name}-{}", std::process::id());
        let open = |device: &str| [(); 2].map(|()| Context::open(device).expect("a device"));
        [&job, "udp:127.0.0.1"].map(open).into()
    }

    fn dozes(context: &Context) -> bool {
        context.shared.dozer.load(Ordering::Relaxed) == dozer::PROGRAM
    }

    /// A packet wakes the thread that waits for its event, again and again, also after calls of
    /// another thread, which take what the descriptor tells.
    #[test]
    fn packets_wake_the_thread_that_waits() {
        for [near, far] in contexts("wait") {
            let (sender, receiver) = (Side::new(&near, 1), Side::new(&far, 2));
            let to = (far.lock().host(), receiver.number);
            std::thread::scope(|scope| {
                let (tells, told) = mpsc::channel();
                let (far, receiver) = (&far, &receiver);
                let waits = scope.spawn(move || {
                    for _ in 0..12 {
                        assert_eq!(far.next_event(&receiver.channel).unwrap(), Some(2));
                        let mut adapter = far.lock();
                        assert!(adapter.next(receiver.queue).is_some());
                        adapter.arm(receiver.queue, false).unwrap();
                        drop(adapter);
                        tells.send(()).unwrap();
                    }
                });
                for message in 0..12 {
                    until("the program waits", || dozes(far));
                    if message % 2 == 1 {
                        far.lock().progress();
                        until("it waits again", || dozes(far));
                    }
                    sender.send(&near, to);
                    told.recv_timeout(LIMIT).expect("a lost wake-up");
                }
                waits.join().unwrap();
            });
        }
    }

    /// What [`Context::next_event`] does if it looks for so long.
    fn look_first(
        context: &Context,
        channel: &EventQueue<usize>,
        limit: Duration,
    ) -> io::Result<bool> {
        assert!(!context.shared.watched.swap(true, Ordering::SeqCst));
        Watch(context).look_first(channel, limit)
    }

    /// A wait that looks finds its event without a sleep. One that looked in vain sleeps.
    #[test]
    fn a_look_finds_the_event() {
        for [near, far] in contexts("look") {
            let (sender, receiver) = (Side::new(&near, 1), Side::new(&far, 2));
            let to = (far.lock().host(), receiver.number);
            for limit in [LIMIT, Duration::from_micros(50), LIMIT] {
                std::thread::scope(|scope| {
                    let turns = || far.shared.turns.load(Ordering::Relaxed);
                    let before = turns();
                    let waits = scope.spawn(|| look_first(&far, &receiver.channel, limit));
                    until(
                        "it looks",
                        || if limit == LIMIT { turns() != before } else { dozes(&far) },
                    );
                    sender.send(&near, to);
                    assert_eq!(waits.join().unwrap().unwrap(), limit == LIMIT);
                });
                assert_eq!(receiver.channel.pop().unwrap(), 2);
                far.lock().arm(receiver.queue, false).unwrap();
            }
        }
    }

    /// Two threads wait for events of two queues. Each gets its own, whichever comes first.
    #[test]
    fn each_thread_gets_its_event() {
        for [near, far] in contexts("waits") {
            let sender = Side::new(&near, 1);
            let receivers = [Side::new(&far, 2), Side::new(&far, 3)];
            let host = far.lock().host();
            for order in [[0, 1], [1, 0]] {
                std::thread::scope(|scope| {
                    let (tells, told) = mpsc::channel();
                    for (place, receiver) in receivers.iter().enumerate() {
                        let (tells, far) = (tells.clone(), &far);
                        scope.spawn(move || {
                            let event = far.next_event(&receiver.channel);
                            assert_eq!(event.unwrap(), Some(2 + place));
                            far.lock().arm(receiver.queue, false).unwrap();
                            tells.send(place).unwrap();
                        });
                    }
                    let others = || far.shared.others.load(Ordering::Relaxed);
                    until("both wait", || dozes(&far) && others() == 1);
                    for place in order {
                        sender.send(&near, (host, receivers[place].number));
                        assert_eq!(told.recv_timeout(LIMIT), Ok(place));
                    }
                });
            }
        }
    }

    /// A channel that does not block says so. It makes progress before, so that a program which
    /// asks again and again gets its event.
    #[test]
    fn a_channel_that_does_not_block() {
        for [near, far] in contexts("nowait") {
            let (sender, receiver) = (Side::new(&near, 1), Side::new(&far, 2));
            let channel = &receiver.channel;
            rustix::fs::fcntl_setfl(channel.descriptor(), rustix::fs::OFlags::NONBLOCK).unwrap();
            let blocked = |result: io::Result<Option<usize>>| {
                result.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
            };
            assert!(blocked(far.next_event(channel)));
            sender.send(&near, (far.lock().host(), receiver.number));
            until("the event comes", || !blocked(far.next_event(channel)));
        }
    }

    static HANDLED: AtomicBool = AtomicBool::new(false);

    extern "C" fn note(_: libc::c_int) {
        HANDLED.store(true, Ordering::Relaxed);
    }

    /// A signal ends the wait if its handler would end a read, and only then. One that comes while
    /// the wait looks ends the sleep that follows.
    #[test]
    fn signals_end_a_wait_as_they_end_a_read() {
        let [near, far] = contexts("signal").remove(0);
        let (sender, receiver) = (Side::new(&near, 1), Side::new(&far, 2));
        let to = (far.lock().host(), receiver.number);
        let (far, receiver) = (Arc::new(far), Arc::new(receiver));
        for (flags, looks) in
            [(libc::SA_RESTART, false), (0, false), (libc::SA_RESTART, true), (0, true)]
        {
            HANDLED.store(false, Ordering::Relaxed);
            // SAFETY: a handler that only stores to an atomic.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = note as *const () as usize;
                action.sa_flags = flags;
                assert_eq!(libc::sigaction(libc::SIGURG, &action, std::ptr::null_mut()), 0);
            }
            let turns = || far.shared.turns.load(Ordering::Relaxed);
            let before = turns();
            let (own, channel) = (far.clone(), receiver.clone());
            let waits = std::thread::spawn(move || match looks {
                // On a busy machine the signal may find it asleep.
                true => look_first(&own, &channel.channel, Duration::from_millis(300))
                    .and_then(|_| channel.channel.next()),
                false => own.next_event(&channel.channel),
            });
            until("the program waits", || if looks { turns() != before } else { dozes(&far) });
            // SAFETY: the thread has not been joined.
            unsafe { libc::pthread_kill(waits.as_pthread_t(), libc::SIGURG) };
            until("the handler runs", || HANDLED.load(Ordering::Relaxed));
            if flags != 0 {
                sender.send(&near, to);
            }
            // `errno` for programs of C.
            let result = waits.join().unwrap().map_err(|error| error.raw_os_error());
            let wanted = if flags == 0 { Err(Some(libc::EINTR)) } else { Ok(Some(2)) };
            assert_eq!(result, wanted, "looks: {looks}");
            if flags != 0 {
                far.lock().arm(receiver.queue, false).unwrap();
            }
        }
        // SAFETY: the default is to ignore it.
        unsafe { libc::signal(libc::SIGURG, libc::SIG_DFL) };
    }
}
