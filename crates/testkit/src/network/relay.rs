//! A host between two others that forwards frames with the faults of bad networks.

use super::garbage::{Garbage, is_ours};
use super::socket::{self, PacketSocket};
use crate::conformance::bytes::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

/// Fault rates for frames of the protocol, in thousandths. Other frames, such as ARP, pass.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The seed of all choices.
    pub seed: u64,
    /// Lost.
    pub lose: usize,
    /// Sent twice.
    pub repeat: usize,
    /// Some bits flipped.
    pub damage: usize,
    /// Sent after the next one of its direction.
    pub delay: usize,
    /// Hostile frames to the second host, for each frame that passes.
    pub hostile: usize,
}

/// What was done.
#[derive(Debug, Default)]
pub struct Done {
    /// Frames of the protocol that came.
    pub frames: AtomicU64,
    /// Lost.
    pub lost: AtomicU64,
    /// Sent twice.
    pub repeated: AtomicU64,
    /// Damaged.
    pub damaged: AtomicU64,
    /// Overtaken by the next one.
    pub delayed: AtomicU64,
    /// Hostile frames that were sent.
    pub hostile: AtomicU64,
}

/// A thread that forwards frames until this is dropped.
pub struct Relay {
    done: Arc<Done>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Forwards between two interfaces of this thread's namespace.
    pub fn start(ports: [&str; 2], faults: Faults) -> Relay {
        let sockets = ports.map(PacketSocket::open);
        let done = Arc::<Done>::default();
        let is_over = Arc::<AtomicBool>::default();
        let (counts, over) = (done.clone(), is_over.clone());
        let thread = std::thread::spawn(move || {
            let mut forwarding = Forwarding::new(sockets, faults, counts);
            while !over.load(Ordering::Relaxed) {
                forwarding.turn();
            }
        });
        Relay { done, is_over, thread: Some(thread) }
    }

    /// What was done so far, by name.
    pub fn done(&self) -> [(&'static str, u64); 6] {
        let Done { frames, lost, repeated, damaged, delayed, hostile } = &*self.done;
        [
            ("frames", frames),
            ("lost", lost),
            ("repeated", repeated),
            ("damaged", damaged),
            ("delayed", delayed),
            ("hostile", hostile),
        ]
        .map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }

    /// One of [`Self::done`].
    pub fn count(&self, name: &str) -> u64 {
        let found = self.done().into_iter().find(|(other, _)| *other == name);
        found.unwrap_or_else(|| panic!("{name} is not counted")).1
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let result = self.thread.take().map(JoinHandle::join);
        assert!(matches!(result, Some(Ok(()))) || std::thread::panicking(), "the relay panicked");
    }
}

/// Longest frame that is forwarded, in bytes: more than any MTU.
const FRAME_BYTES: usize = 65_600;

struct Forwarding {
    sockets: [PacketSocket; 2],
    faults: Faults,
    done: Arc<Done>,
    random: Random,
    /// Delayed frames, by direction: sent after the next frame.
    held: [Option<Vec<u8>>; 2],
    garbage: Garbage,
    room: Vec<u8>,
}

impl Forwarding {
    fn new(sockets: [PacketSocket; 2], faults: Faults, done: Arc<Done>) -> Forwarding {
        Forwarding {
            sockets,
            faults,
            done,
            random: Random(faults.seed),
            held: [None, None],
            garbage: Garbage::new(faults.seed),
            room: vec![0; FRAME_BYTES],
        }
    }

    fn turn(&mut self) {
        let mut frames = 0;
        for from in [0, 1] {
            for _ in 0..64 {
                let Some(length) = self.sockets[from].receive(&mut self.room) else { break };
                let mut frame = self.room[..length].to_owned();
                frames += 1;
                self.forward(1 - from, &mut frame);
            }
        }
        if frames == 0 {
            // Nothing is held for ever: the next frame may wait for this one.
            for to in [0, 1] {
                if let Some(frame) = self.held[to].take() {
                    self.sockets[to].send(&frame);
                }
            }
            self.attack();
            socket::wait(&self.sockets);
        }
    }

    /// True with a probability of `per_mille` / 1000.
    fn hits(&mut self, per_mille: usize) -> bool {
        self.random.below(1000) < per_mille
    }

    fn forward(&mut self, to: usize, frame: &mut [u8]) {
        let Some(start) = is_ours(frame) else {
            self.sockets[to].send(frame);
            return;
        };
        count(&self.done.frames);
        if self.faults.hostile > 0 && to == 1 {
            self.garbage.learn(frame, start);
        }
        if self.hits(self.faults.lose) {
            count(&self.done.lost);
            return;
        }
        let faults = self.faults;
        let mut copies = 1;
        if self.hits(faults.repeat) {
            count(&self.done.repeated);
            copies = 2;
        }
        let whole = frame.to_owned();
        if self.hits(faults.damage) {
            count(&self.done.damaged);
            for _ in 0..=self.random.below(3) {
                let at = start + self.random.below(frame.len() - start);
                frame[at] ^= 1 << self.random.below(8);
            }
        }
        if self.held[to].is_none() && self.hits(faults.delay) {
            count(&self.done.delayed);
            self.held[to] = Some(frame.to_owned());
            copies -= 1;
        }
        for copy in 0..copies {
            self.sockets[to].send(if copy == 0 { frame } else { &whole });
        }
        if copies > 0
            && let Some(late) = self.held[to].take()
        {
            self.sockets[to].send(&late);
        }
        self.attack();
    }

    /// Sends hostile frames to the second host.
    fn attack(&mut self) {
        for _ in 0..self.faults.hostile {
            let Some(frame) = self.garbage.next() else { return };
            if self.sockets[1].send(frame) {
                count(&self.done.hostile);
            }
        }
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
