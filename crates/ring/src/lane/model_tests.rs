//! The lane and the doorbell in every interleaving that the memory model allows (loom). Sizes are
//! the smallest with every part: two-packet chunks, two chunks in the pool, two host chunks.
//!
//! The receiver here acts as a device does: it answers bells, polls, grants, parks when idle, and
//! sleeps when parked. It keeps the pool's accounts: every chunk is either here or with the lane. A
//! chunk that is here is poisoned, so a late write by a former owner is detected. A lost wake-up is
//! a deadlock, which the checker reports.
//!
//! Each model states its preemption bound. It is exhaustive for this number of thread switches at
//! any place, besides those where a thread blocks or yields. Without a bound two of them do not end
//! within 90 seconds. [`super::exhaustive_tests`] checks the races in these models without a bound.

use super::*;
use crate::doorbell::{DOORBELL_LINES, Doorbell};
use crate::memory::View;
use crate::segment::{ModelSegment, Words};
use crate::sync::{Fences, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use std::sync::Arc;

/// Every run holds one packet and a LINK.
pub(super) const ONE_PACKET_RUNS: Geometry =
    Geometry { pool_chunks: 2, chunk_lines: 2, small_lines: 2, host_chunks: 2 };

/// Every run holds two packets and a LINK.
pub(super) const TWO_PACKET_RUNS: Geometry =
    Geometry { pool_chunks: 2, chunk_lines: 3, small_lines: 3, host_chunks: 2 };

/// First value of the receiver's counters: the second grant carries sequence 0.
const START: u64 = u32::MAX as u64 - 1;

/// Third word of a line in a chunk of the receiver. Packets and LINKs overwrite it. The tag stays
/// as the sender wrote it.
const POISON: u64 = 0xdead_beef_0000_0000;

/// A model: the actions of the two sides.
#[derive(Clone, Copy)]
pub(super) struct Model {
    pub(super) geometry: Geometry,
    /// The preemption bound: thread switches that the checker may add.
    pub(super) preemptions: usize,
    /// Lanes, each with a sending thread.
    pub(super) senders: usize,
    /// Packets that each sender sends.
    pub(super) packets: u64,
    /// Most chunks that a lane may hold.
    pub(super) credit: usize,
    /// Whether it grants them only after the lane has fallen back on host memory.
    pub(super) grant_late: bool,
    /// Times that the receiver parks each lane.
    pub(super) parkings: u32,
    /// Whether it parks a lane at once after its bell has rung, instead of when it is idle.
    pub(super) park_early: bool,
    /// Times between two sleeps that it answers a lane's bell and leaves the lane parked.
    pub(super) parked_serves: u32,
}

/// One sender whose packets each need a run; its receiver never parks the lane.
pub(super) const MODEL: Model = Model {
    geometry: ONE_PACKET_RUNS,
    preemptions: 3,
    senders: 1,
    packets: 3,
    credit: 1,
    grant_late: false,
    parkings: 0,
    park_early: false,
    parked_serves: 0,
};

fn memory(geometry: &Geometry) -> LaneMemory<ModelSegment> {
    LaneMemory {
        pool: ModelSegment::new(geometry.pool_chunks * geometry.chunk_lines * LINE_WORDS),
        control: ModelSegment::new(geometry.control_lines() * LINE_WORDS),
        host: ModelSegment::new(geometry.host_lines() * LINE_WORDS),
    }
}

/// The kernel's part for a sleeping receiver.
pub(super) struct Kernel {
    woken: Mutex<bool>,
    wake: Condvar,
}

impl Kernel {
    pub(super) fn sleep(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.wake.wait(woken).unwrap();
        }
        *woken = false;
    }

    pub(super) fn wake(&self) {
        *self.woken.lock().unwrap() = true;
        self.wake.notify_one();
    }
}

/// State that both sides share beside the lanes.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) doorbell: Arc<Doorbell<ModelSegment>>,
    pub(super) kernel: Arc<Kernel>,
}

impl Shared {
    pub(super) fn new() -> Self {
        Shared {
            doorbell: Arc::new(Doorbell::new(ModelSegment::new(DOORBELL_LINES * LINE_WORDS))),
            kernel: Arc::new(Kernel { woken: Mutex::new(false), wake: Condvar::new() }),
        }
    }
}

/// One sending function: sends the numbers 1 to `packets`, rings when asked to, waits when full.
pub(super) struct Source {
    lane: LaneSender<ModelSegment>,
    index: usize,
    shared: Shared,
}

impl Source {
    fn run(mut self, packets: u64) {
        for number in 1..=packets {
            while !self.send(number) {
                thread::yield_now();
            }
        }
    }

    /// Sends one packet, if there is room.
    pub(super) fn send(&mut self, number: u64) -> bool {
        let body = number.to_le_bytes();
        let sent = self.lane.send([1 | 8 << 32, number, 0], &[], View::of(&body), || true);
        if sent == Ok(Sent::Ring) && self.shared.doorbell.ring(self.index) {
            self.shared.kernel.wake();
        }
        sent.is_ok()
    }
}

/// One receiving end with its pool.
pub(super) struct Sink {
    pub(super) lane: LaneReceiver<ModelSegment>,
    memory: LaneMemory<ModelSegment>,
    model: Model,
    /// Whether the receiver polls the lane without a bell.
    pub(super) polled: bool,
    /// Chunks of the receiver that are not with the lane.
    free: Vec<u16>,
    pub(super) taken: u64,
    parkings_left: u32,
    pub(super) parked_serves_left: u32,
}

impl Sink {
    /// Does one action. Returns whether there was one.
    pub(super) fn step(&mut self) -> bool {
        match self.lane.peek() {
            Arrival::Nothing => match self.lane.state() {
                LaneState::Parking => self.try_park(),
                LaneState::Parked => {
                    self.polled = false;
                    true
                }
                LaneState::Active if self.parkings_left > 0 => {
                    self.park();
                    true
                }
                _ => false,
            },
            Arrival::Packet(words, payload) => {
                self.taken += 1;
                let payload = payload.load(Ordering::Relaxed);
                assert_eq!(words, [1 | 8 << 32, self.taken, 0], "header of the next packet");
                assert_eq!(payload, self.taken, "payload of the next packet");
                self.lane.take(words[0]);
                true
            }
            Arrival::Moved { freed, starved } => {
                freed.into_iter().for_each(|extent| self.take_back(extent));
                self.model.grant_late &= !starved;
                if starved && self.lane.state() == LaneState::Parked {
                    self.lane.unpark();
                }
                self.grant();
                true
            }
            Arrival::Violation => panic!("the sender broke no rule"),
        }
    }

    pub(super) fn try_park(&mut self) -> bool {
        let mut freed = Vec::new();
        let parked = self.lane.try_park(|extent| freed.push(extent));
        freed.into_iter().for_each(|extent| self.take_back(extent));
        if parked {
            self.polled = false;
            assert_eq!(
                self.free.len(),
                self.model.geometry.pool_chunks,
                "parking returns every extent"
            );
            if self.lane.is_ready() && !crate::canary::planted("bell-forgotten") {
                self.rang();
            }
        }
        parked
    }

    pub(super) fn rang(&mut self) {
        self.polled = true;
        if self.lane.state() == LaneState::Parked {
            if self.parked_serves_left > 0 {
                self.parked_serves_left -= 1;
                return;
            }
            self.lane.unpark();
            self.grant();
            if self.model.park_early && self.parkings_left > 0 {
                self.park();
            }
        }
    }

    pub(super) fn park(&mut self) {
        self.parkings_left -= 1;
        self.lane.begin_park();
        self.lane.fences().heavy(|| ());
    }

    pub(super) fn set_credit(&mut self, chunks: usize) {
        self.model.credit = chunks;
    }

    pub(super) fn grant(&mut self) {
        if self.lane.state() != LaneState::Active || self.model.grant_late {
            return;
        }
        while self.model.geometry.pool_chunks - self.free.len() < self.model.credit {
            let chunk = self.free.remove(0);
            self.check_poison(chunk);
            self.lane.grant(chunk, 1);
        }
    }

    fn take_back(&mut self, (first, chunks): Freed) {
        for chunk in first..first + chunks {
            assert!(!self.free.contains(&chunk), "chunk {chunk} came back twice");
            for line in 0..self.model.geometry.chunk_lines {
                self.third_word(chunk, line).store(POISON, Ordering::Relaxed);
            }
            self.free.push(chunk);
        }
    }

    fn check_poison(&self, chunk: u16) {
        for line in 0..self.model.geometry.chunk_lines {
            let word = self.third_word(chunk, line).load(Ordering::Relaxed);
            assert!(
                word == POISON || word == 0,
                "somebody wrote to chunk {chunk}, which was not granted"
            );
        }
    }

    fn third_word(&self, chunk: u16, line: usize) -> &crate::sync::AtomicU64 {
        let first = usize::from(chunk) * self.model.geometry.chunk_lines;
        self.memory.pool.word((first + line) * LINE_WORDS + 2)
    }

    /// Checks the pool's accounts after the senders have ended.
    pub(super) fn check_accounts(&self) {
        for chunk in &self.free {
            self.check_poison(*chunk);
        }
    }
}

pub(super) fn lane(model: Model, index: usize, shared: &Shared) -> (Source, Sink) {
    let geometry = model.geometry;
    let memory = memory(&geometry);
    let receiver = LaneReceiver::new(memory.clone(), geometry, Fences::Symmetric, 11, START);
    let sender = LaneSender::new(memory.clone(), geometry, Fences::Symmetric, 22);
    let sink = Sink {
        lane: receiver,
        memory,
        model,
        free: (0..geometry.pool_chunks as u16).collect(),
        polled: false,
        taken: 0,
        parkings_left: model.parkings,
        parked_serves_left: model.parked_serves,
    };
    (Source { lane: sender, index, shared: shared.clone() }, sink)
}

/// Receives until every sink has `packets`; sleeps whenever all are parked.
fn receive(sinks: &mut [Sink], packets: u64, shared: &Shared) {
    while sinks.iter().any(|sink| sink.taken < packets) {
        if shared.doorbell.is_rung() {
            shared.doorbell.answer(|index| sinks[index].rang());
        }
        let mut busy = false;
        for sink in sinks.iter_mut().filter(|sink| sink.polled) {
            busy |= sink.step();
        }
        if !sinks.iter().any(|sink| sink.polled) {
            if shared.doorbell.prepare_sleep() {
                shared.kernel.sleep();
                shared.doorbell.end_sleep();
                sinks
                    .iter_mut()
                    .for_each(|sink| sink.parked_serves_left = sink.model.parked_serves);
            }
        } else if !busy {
            thread::yield_now();
        }
    }
}

impl Model {
    fn check(self) {
        let mut builder = loom::model::Builder::new();
        // LOOM_MAX_PREEMPTIONS, which the builder has read, overrides the bound.
        builder.preemption_bound = builder.preemption_bound.or(Some(self.preemptions));
        builder.max_branches = 5_000;
        builder.check(move || {
            let shared = Shared::new();
            let (sources, mut sinks): (Vec<_>, Vec<_>) =
                (0..self.senders).map(|index| lane(self, index, &shared)).unzip();
            let threads: Vec<_> = sources
                .into_iter()
                .map(|source| thread::spawn(move || source.run(self.packets)))
                .collect();
            receive(&mut sinks, self.packets, &shared);
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            sinks.iter().for_each(Sink::check_accounts);
        });
    }
}

/// Packets pass from the small chunk through one granted extent to the next: each once, in order,
/// whole.
// shows: D-02, D-13
#[test]
fn granting() {
    Model { geometry: TWO_PACKET_RUNS, ..MODEL }.check();
}

/// Without credit the lane continues in host memory, in order. A host chunk is reused only after it
/// was read.
// shows: D-16, D-19
#[test]
fn host_memory() {
    Model { preemptions: 2, packets: 4, credit: 0, ..MODEL }.check();
}

/// Credit that comes while the lane is in host memory brings it back to the pool, in order.
// shows: D-16, D-17, D-19
#[test]
fn back_from_host_memory() {
    Model { grant_late: true, ..MODEL }.check();
}

/// A lane parks when idle, and its receiver then sleeps. No wake-up is lost, and no extent is taken
/// back while a sender writes to it.
// shows: D-02, D-13
#[test]
fn parking() {
    Model { preemptions: 4, packets: 2, parkings: 1, ..MODEL }.check();
}

/// A second parking, while the sender may not have moved to the first one's small chunk yet.
// shows: D-02, D-13
#[test]
fn parking_twice() {
    Model { parkings: 2, ..MODEL }.check();
}

/// A parking that begins before the packet that rang is read: the sender's next packet must not
/// overwrite it.
// shows: D-02
#[test]
fn parking_early() {
    Model { packets: 2, parkings: 1, park_early: true, ..MODEL }.check();
}

/// Two senders ring one doorbell, and either may wake the receiver.
// shows: D-02
#[test]
fn two_senders() {
    Model { senders: 2, packets: 1, parkings: 1, ..MODEL }.check();
}

/// A lane that stays parked while it delivers: every packet rings, and no wake-up is lost when the
/// receiver sleeps again at once.
// shows: D-02, D-13
#[test]
fn served_while_parked() {
    Model { geometry: TWO_PACKET_RUNS, parkings: 1, parked_serves: 2, ..MODEL }.check();
}
