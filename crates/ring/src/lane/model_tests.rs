//! The lane and the doorbell in every interleaving that the memory model allows (loom), at the smallest sizes that still
//! have every part: two-packet chunks, two chunks in the pool, two host chunks.
//!
//! The receiver here acts as a device does: it answers bells, polls, grants, parks when idle, and sleeps when parked. It
//! keeps the pool's accounts: every chunk is either here or with the lane, and one that is here is poisoned, so that a write
//! by a sender that no longer owns it is seen. A lost wake-up is a deadlock, which the checker reports.
//!
//! All models but those marked are exhaustive for the preemption bound that they state: with four preemptions at places of
//! the checker's choice (it switches threads freely wherever one blocks or yields) each stays under a minute.

use super::*;
use crate::doorbell::{DOORBELL_LINES, Doorbell};
use crate::memory::View;
use crate::segment::ModelSegment;
use crate::sync::{Fences, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

const GEOMETRY: Geometry =
    Geometry { pool_chunks: 2, chunk_lines: 3, small_lines: 3, host_chunks: 2 };

/// Where the receiver's counters start: the second grant carries sequence 0.
const START: u64 = u32::MAX as u64 - 1;

/// Tag of a line that is with the receiver: even, so never a nonce.
const POISON: u64 = 0xdead_beef_0000_0000;

fn memory() -> LaneMemory<ModelSegment> {
    LaneMemory {
        pool: ModelSegment::new(GEOMETRY.pool_chunks * GEOMETRY.chunk_lines * LINE_WORDS),
        control: ModelSegment::new(GEOMETRY.control_lines() * LINE_WORDS),
        host: ModelSegment::new(GEOMETRY.host_lines() * LINE_WORDS),
    }
}

/// What the kernel does for a receiver that sleeps.
struct Kernel {
    woken: Mutex<bool>,
    wake: Condvar,
}

impl Kernel {
    fn sleep(&self) {
        let mut woken = self.woken.lock().unwrap();
        while !*woken {
            woken = self.wake.wait(woken).unwrap();
        }
        *woken = false;
    }

    fn wake(&self) {
        *self.woken.lock().unwrap() = true;
        self.wake.notify_one();
    }
}

/// What both sides share beside the lanes.
#[derive(Clone)]
struct Shared {
    doorbell: Arc<Doorbell<ModelSegment>>,
    kernel: Arc<Kernel>,
}

impl Shared {
    fn new() -> Self {
        Shared {
            doorbell: Arc::new(Doorbell::new(ModelSegment::new(DOORBELL_LINES * LINE_WORDS))),
            kernel: Arc::new(Kernel { woken: Mutex::new(false), wake: Condvar::new() }),
        }
    }
}

/// One sending function: sends the numbers 1 to `packets`, rings when told to, waits when full.
struct Source {
    lane: LaneSender<ModelSegment>,
    index: usize,
    shared: Shared,
}

impl Source {
    fn run(mut self, packets: u64) {
        for number in 1..=packets {
            let body = number.to_le_bytes();
            let words = [1 | 8 << 32, number, 0];
            loop {
                match self.lane.send(words, &[], View::of(&body), || true) {
                    Ok(Sent::Done) => break,
                    Ok(Sent::Ring) => {
                        if self.shared.doorbell.ring(self.index) {
                            self.shared.kernel.wake();
                        }
                        break;
                    }
                    Err(Full) => thread::yield_now(),
                }
            }
        }
    }
}

/// One receiving end with its pool.
struct Sink {
    lane: LaneReceiver<ModelSegment>,
    memory: LaneMemory<ModelSegment>,
    /// Chunks that are here, not with the lane.
    free: Vec<u16>,
    /// Chunks to grant whenever the lane holds none.
    credit: usize,
    taken: u64,
    parkings_left: u32,
}

impl Sink {
    /// Does one thing; whether there was one to do.
    fn step(&mut self) -> bool {
        match self.lane.peek() {
            Arrival::Nothing => match self.lane.position() {
                Position::Parking => self.try_park(),
                Position::Active if self.parkings_left > 0 => {
                    self.parkings_left -= 1;
                    self.lane.begin_park();
                    self.lane.fences().heavy(|| ());
                    true
                }
                _ => false,
            },
            Arrival::Packet(words) => {
                self.taken += 1;
                let (area, at) = self.lane.payload();
                let payload = area.word(at).load(Ordering::Relaxed);
                assert_eq!(words, [1 | 8 << 32, self.taken, 0], "header of the next packet");
                assert_eq!(payload, self.taken, "payload of the next packet");
                self.lane.take(words[0]);
                true
            }
            Arrival::Moved { freed, .. } => {
                freed.into_iter().for_each(|extent| self.take_back(extent));
                self.grant();
                true
            }
            Arrival::Violation => panic!("the sender broke no rule"),
        }
    }

    fn try_park(&mut self) -> bool {
        let mut freed = Vec::new();
        let parked = self.lane.try_park(|extent| freed.push(extent));
        freed.into_iter().for_each(|extent| self.take_back(extent));
        if self.lane.position() != Position::Parking {
            assert_eq!(self.free.len(), GEOMETRY.pool_chunks, "parking returns every extent");
        }
        parked
    }

    fn rang(&mut self) {
        if self.lane.position() == Position::Parked {
            self.lane.unpark();
            self.grant();
        }
    }

    fn grant(&mut self) {
        while self.lane.position() == Position::Active
            && GEOMETRY.pool_chunks - self.free.len() < self.credit
        {
            let chunk = self.free.remove(0);
            self.check_poison(chunk);
            self.lane.grant(chunk, 1);
        }
    }

    fn take_back(&mut self, (first, chunks): Freed) {
        for chunk in first..first + chunks {
            assert!(!self.free.contains(&chunk), "chunk {chunk} came back twice");
            for line in 0..GEOMETRY.chunk_lines {
                self.tag(chunk, line).store(POISON, Ordering::Relaxed);
            }
            self.free.push(chunk);
        }
    }

    fn check_poison(&self, chunk: u16) {
        for line in 0..GEOMETRY.chunk_lines {
            let tag = self.tag(chunk, line).load(Ordering::Relaxed);
            assert!(
                tag == POISON || tag == 0,
                "somebody wrote to chunk {chunk}, which was not granted"
            );
        }
    }

    fn tag(&self, chunk: u16, line: usize) -> &crate::sync::AtomicU64 {
        self.memory.pool.word((usize::from(chunk) * GEOMETRY.chunk_lines + line) * LINE_WORDS)
    }

    /// After the senders are gone.
    fn check_accounts(&self) {
        for chunk in &self.free {
            self.check_poison(*chunk);
        }
    }
}

fn lane(index: usize, credit: usize, parkings: u32, shared: &Shared) -> (Source, Sink) {
    let memory = memory();
    let receiver = LaneReceiver::new(memory.clone(), GEOMETRY, Fences::Symmetric, 11, START);
    let sender = LaneSender::new(memory.clone(), GEOMETRY, Fences::Symmetric, 22);
    let free = (0..GEOMETRY.pool_chunks as u16).collect();
    let sink =
        Sink { lane: receiver, memory, free, credit, taken: 0, parkings_left: parkings };
    (Source { lane: sender, index, shared: shared.clone() }, sink)
}

/// Receives until every sink has `packets`; sleeps whenever all are parked.
fn receive(sinks: &mut [Sink], packets: u64, shared: &Shared) {
    while sinks.iter().any(|sink| sink.taken < packets) {
        if shared.doorbell.is_rung() {
            shared.doorbell.answer(|index| sinks[index].rang());
        }
        let mut busy = false;
        for sink in sinks.iter_mut() {
            if sink.lane.position() != Position::Parked {
                busy |= sink.step();
            }
        }
        if sinks.iter().all(|sink| sink.lane.position() == Position::Parked) {
            if shared.doorbell.prepare_sleep() {
                shared.kernel.sleep();
                shared.doorbell.awake();
            }
        } else if !busy {
            thread::yield_now();
        }
    }
}

/// Runs `senders` lanes, each with its own thread, against one receiver.
fn run(preemptions: Option<usize>, senders: usize, packets: u64, credit: usize, parkings: u32) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 5_000;
    builder.check(move || {
        let shared = Shared::new();
        let (sources, mut sinks): (Vec<_>, Vec<_>) =
            (0..senders).map(|index| lane(index, credit, parkings, &shared)).unzip();
        let threads: Vec<_> = sources
            .into_iter()
            .map(|source| thread::spawn(move || source.run(packets)))
            .collect();
        receive(&mut sinks, packets, &shared);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        sinks.iter().for_each(Sink::check_accounts);
    });
}

/// Packets pass from the small chunk over a granted extent to the next, each once, in order, whole.
// shows: D-02, D-13, D-17, D-19
#[test]
fn polling_and_granting() {
    run(Some(3), 1, 3, 1, 0);
}
