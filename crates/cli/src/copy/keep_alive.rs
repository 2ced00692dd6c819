//! Signs of life while a side is busy with its disc.

use anyhow::{Context, Result};
use bellwire::Function;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two signs of life. Over a network, a peer silent for 5 s counts as dead, and a disc
/// may stall for longer.
const PULSE: Duration = Duration::from_millis(200);

/// A function that answers its peers even while no other code uses it.
pub struct Alive {
    function: Arc<Mutex<Function>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Alive {
    /// Keeps `function` alive until this is dropped.
    pub fn keep(function: Function) -> Result<Alive> {
        let function = Arc::new(Mutex::new(function));
        let (stop, stopped) = channel::<()>();
        let shared = function.clone();
        let beat = move || {
            while stopped.recv_timeout(PULSE) == Err(RecvTimeoutError::Timeout) {
                // If the lock is held, its holder makes progress.
                if let Ok(mut function) = shared.try_lock() {
                    // The next user of the function gets the error.
                    let _ = function.progress();
                }
            }
        };
        let thread = std::thread::Builder::new().name("keep-alive".into()).spawn(beat);
        let thread = Some(thread.context("cannot start a thread")?);
        Ok(Alive { function, stop: Some(stop), thread })
    }

    pub fn function(&self) -> MutexGuard<'_, Function> {
        self.function.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Alive {
    /// Closes the function here and not in the thread, so that its number is free afterwards.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bellwire::{Address, Completion, Device, Message, QueuePairOptions, Status, Wait};
    use std::time::Instant;

    /// A function of the UDP node 127.x.y.`host`, with a queue pair.
    fn open(host: u8) -> (Function, bellwire::QueuePair, bellwire::CompletionQueue) {
        let number = std::process::id();
        let name = format!("udp:127.{}.{}.{host}", 130 + number % 100, number / 100 % 250);
        let device = Device::open(&name).expect("loopback");
        let mut function = device.open_function(0).expect("nobody else has it");
        let queue = function.create_completion_queue(16).expect("room");
        let pair = function.create_queue_pair(&QueuePairOptions::new(queue)).expect("room");
        (function, pair, queue)
    }

    /// Sends a message that is long enough to complete only when the other program has it, or never
    /// will.
    fn send(function: &mut Function, pair: bellwire::QueuePair, to: Address) {
        let send = Message::buffer(vec![0; 1 << 20]).to(to);
        function.post_send(pair, send).map_err(bellwire::Error::from).expect("room");
    }

    fn done(function: &mut Function, queue: bellwire::CompletionQueue) -> Completion {
        function.wait(queue, Wait::Block, Duration::from_secs(60)).expect("in time")
    }

    /// A side is busy for longer than the timeout of a dead peer. It counts as alive if it is kept
    /// alive, and as dead if not.
    #[test]
    fn who_is_busy_is_not_taken_for_dead() {
        let tried = |host: u8, kept: bool| {
            let (mut near, pair, queue) = open(host);
            let (mut far, far_pair, _) = open(host + 1);
            far.post_receive(far_pair, vec![0; 1 << 20], 0)
                .map_err(bellwire::Error::from)
                .expect("room");
            let to = Address::new(far.address().node, 0, far_pair.number);
            let far = if kept { Ok(Alive::keep(far).expect("a thread")) } else { Err(far) };
            if let Err(mut far) = far {
                // Both sides exchange a message before one falls silent.
                send(&mut near, pair, to);
                while near.poll(queue).expect("a queue").is_none() {
                    far.progress().expect("open");
                }
                send(&mut near, pair, to);
                return done(&mut near, queue).status;
            }
            send(&mut near, pair, to);
            assert_eq!(done(&mut near, queue).status, Status::Success);
            // No receive is posted for this one, so it waits.
            send(&mut near, pair, to);
            let busy = Instant::now();
            while busy.elapsed() < Duration::from_secs(12) {
                assert!(near.poll(queue).expect("a queue").is_none());
                std::thread::sleep(Duration::from_millis(10));
            }
            Status::Success
        };
        let (kept, left) = std::thread::scope(|scope| {
            let kept = scope.spawn(|| tried(1, true));
            (kept.join(), tried(3, false))
        });
        assert_eq!(kept.expect("no panic"), Status::Success);
        assert_eq!(left, Status::PeerGone, "the check would not notice a dead one");
    }
}
