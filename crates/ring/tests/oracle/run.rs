//! A sender and a receiver in two threads, on real memory, against an oracle. A packet's number
//! determines its place in the order, its length and all its bytes.
//!
//! The receiver grants, withholds credit, parks and sleeps at random. It keeps the pool's accounts:
//! a chunk is either here or with the lane. The sender never writes to a chunk that is here.

use bellwire_ring::doorbell::{DOORBELL_LINES, Doorbell};
use bellwire_ring::lane::{
    Arrival, Freed, Full, Geometry, LaneMemory, LaneReceiver, LaneSender, LaneState, Sent,
};
use bellwire_ring::memory::{Memory, Owner, View};
use bellwire_ring::segment::{LINE_BYTES, LINE_WORDS, Segment, Words};
use bellwire_ring::sync::{Fences, Ordering};
use std::ptr::NonNull;
use std::sync::Arc;
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// How long no packet may come before the run counts as stuck, for instance because credit was
/// lost.
const STALL: Duration = Duration::from_secs(if cfg!(miri) { 1200 } else { 60 });

/// Counts of a run's events, so that a test can check that it covered them.
#[derive(Default, Debug)]
pub struct Report {
    pub packets: u64,
    pub bytes: u64,
    pub parkings: u64,
    pub sleeps: u64,
    pub host_fallbacks: u64,
    pub grants: u64,
}

/// Sends `packets` packets through one lane. `start` is the first value of the receiver's counters.
pub fn run(
    geometry: Geometry,
    fences: Fences,
    packets: u64,
    max_bytes: usize,
    seed: u64,
    start: u64,
) -> Report {
    let fences = if fences == Fences::Asymmetric && !register_barrier() {
        Fences::Symmetric
    } else {
        fences
    };
    let memory = LaneMemory {
        pool: segment(geometry.pool_chunks * geometry.chunk_lines),
        control: segment(geometry.control_lines()),
        host: segment(geometry.host_lines()),
    };
    let bells = segment(DOORBELL_LINES);
    let lane = LaneReceiver::new(memory.clone(), geometry, fences, mix(seed), start);
    let sender = LaneSender::new(memory.clone(), geometry, fences, mix(seed ^ 1));
    let source = Source { lane: sender, doorbell: Doorbell::new(bells.clone()), max_bytes };
    let mut sink = Sink {
        lane,
        pool: memory.pool,
        geometry,
        doorbell: Doorbell::new(bells),
        here: vec![true; geometry.pool_chunks],
        random: Random(mix(seed ^ 2)),
        max_bytes,
        starving: false,
        report: Report::default(),
        found: Vec::new(),
    };
    let receiver = thread::current();
    pin(0);
    let thread = thread::spawn(move || {
        pin(1);
        source.run(packets, &receiver)
    });
    let mut seen = (0, Instant::now());
    let mut steps = 0_u32;
    while sink.report.packets < packets {
        sink.step();
        steps = steps.wrapping_add(1);
        if steps.is_multiple_of(1 << 12) {
            if seen.0 != sink.report.packets {
                seen = (sink.report.packets, Instant::now());
            }
            assert!(seen.1.elapsed() < STALL, "no packet comes any more: {:?}", sink.report);
        }
    }
    let host_fallbacks = thread.join().expect("the sender does not panic");
    sink.drain();
    Report { host_fallbacks, ..sink.report }
}

struct Source {
    lane: LaneSender<Segment>,
    doorbell: Doorbell<Segment>,
    max_bytes: usize,
}

impl Source {
    fn run(mut self, packets: u64, receiver: &Thread) -> u64 {
        let mut buffer = vec![0; self.max_bytes + 8];
        for number in 0..packets {
            let bytes = length(number, self.max_bytes);
            pattern(number, &mut buffer[..bytes.next_multiple_of(8)]);
            let head = (mix(number) as usize % 41).min(bytes);
            let (head, body) = buffer[..bytes].split_at(head);
            let words = [1 | (bytes as u64) << 32, number, !number];
            let mut tries = 0_u32;
            let sent = loop {
                match self.lane.send(words, head, View::of(body), || true) {
                    Ok(sent) => break sent,
                    Err(Full) => pause(&mut tries),
                }
            };
            if sent == Sent::Ring && self.doorbell.ring(77) {
                receiver.unpark();
            }
        }
        self.lane.host_fallbacks()
    }
}

struct Sink {
    lane: LaneReceiver<Segment>,
    pool: Segment,
    geometry: Geometry,
    doorbell: Doorbell<Segment>,
    here: Vec<bool>,
    random: Random,
    max_bytes: usize,
    starving: bool,
    report: Report,
    /// Payload of the current packet.
    found: Vec<u8>,
}

impl Sink {
    fn step(&mut self) {
        if self.doorbell.is_rung() {
            let mut rang = false;
            self.doorbell.answer(|lane| {
                assert_eq!(lane, 77);
                rang = true;
            });
            if rang && self.lane.state() == LaneState::Parked {
                self.lane.unpark();
                self.grant();
            }
        }
        match self.lane.state() {
            LaneState::Parked => self.sleep(),
            LaneState::Active if self.random.one_in(200) => {
                self.report.parkings += 1;
                self.lane.begin_park();
                self.lane.fences().heavy(barrier);
                self.poll();
            }
            _ => self.poll(),
        }
    }

    fn sleep(&mut self) {
        if self.doorbell.prepare_sleep() {
            self.report.sleeps += 1;
            let since = Instant::now();
            while !self.doorbell.is_rung() {
                thread::park_timeout(Duration::from_secs(1));
                assert!(since.elapsed() < STALL, "the sender is stuck: {:?}", self.report);
            }
            self.doorbell.end_sleep();
        }
    }

    fn poll(&mut self) {
        for _ in 0..16 {
            match self.lane.peek() {
                Arrival::Packet(words, payload) => {
                    let mut found = std::mem::take(&mut self.found);
                    found.resize(payload.len(), 0);
                    payload.read(0, &mut found);
                    self.packet(words, &found);
                    self.found = found;
                }
                Arrival::Moved { freed, .. } => {
                    freed.into_iter().for_each(|extent| self.take_back(extent));
                    if self.random.one_in(8) {
                        self.starving = !self.starving;
                    }
                    self.grant();
                }
                Arrival::Nothing => return self.idle(),
                Arrival::Violation => panic!("the sender broke no rule"),
            }
        }
    }

    fn packet(&mut self, words: [u64; 3], found: &[u8]) {
        let number = self.report.packets;
        let bytes = length(number, self.max_bytes);
        assert_eq!(words, [1 | (bytes as u64) << 32, number, !number], "packet {number}");
        assert_eq!(found.len(), bytes, "length of packet {number}");
        for (index, piece) in found.chunks(8).enumerate() {
            let due = pattern_word(number, index);
            assert_eq!(piece, &due[..piece.len()], "word {index} of packet {number}");
        }
        self.lane.take(words[0]);
        self.report.packets += 1;
        self.report.bytes += bytes as u64;
    }

    fn idle(&mut self) {
        if self.lane.state() == LaneState::Parking {
            let mut freed = Vec::new();
            let parked = self.lane.try_park(|extent| freed.push(extent));
            freed.into_iter().for_each(|extent| self.take_back(extent));
            if parked {
                assert!(self.here.iter().all(|here| *here), "parking returns every extent");
                if self.lane.is_ready() {
                    self.lane.unpark();
                }
            }
        }
        if self.random.one_in(64) {
            self.starving = false;
            self.grant();
        }
        thread::yield_now();
    }

    fn grant(&mut self) {
        while !self.starving
            && self.lane.state() == LaneState::Active
            && self.lane.open_grants() < 4
        {
            let chunks = 1 + self.random.below(4.min(self.here.len() as u64)) as usize;
            let first = self.random.below((self.here.len() - chunks + 1) as u64) as usize;
            if !self.here[first..first + chunks].iter().all(|here| *here) {
                return;
            }
            for chunk in first..first + chunks {
                let tag = self.tag(chunk);
                assert!(tag == 0 || tag == POISON, "chunk {chunk} was not granted");
                self.here[chunk] = false;
            }
            self.lane.grant(first as u16, chunks as u16);
            self.report.grants += 1;
        }
    }

    fn take_back(&mut self, (first, chunks): Freed) {
        for chunk in usize::from(first)..usize::from(first) + usize::from(chunks) {
            assert!(!self.here[chunk], "chunk {chunk} came back twice");
            self.here[chunk] = true;
            self.first_word(chunk).store(POISON, Ordering::Relaxed);
        }
    }

    /// After the sender has ended: takes back all chunks of the lane.
    fn drain(&mut self) {
        assert!(matches!(self.lane.peek(), Arrival::Nothing));
        let mut freed = Vec::new();
        self.lane.abandon(|extent| freed.push(extent));
        freed.into_iter().for_each(|extent| self.take_back(extent));
        assert!(self.here.iter().all(|here| *here), "every extent is accounted for");
    }

    fn tag(&self, chunk: usize) -> u64 {
        self.first_word(chunk).load(Ordering::Relaxed)
    }

    fn first_word(&self, chunk: usize) -> &bellwire_ring::sync::AtomicU64 {
        self.pool.word(chunk * self.geometry.chunk_lines * LINE_WORDS)
    }
}

/// Tag in a chunk of the receiver: even, so never a nonce.
const POISON: u64 = 0xdead_beef_0000_0000;

/// Length of packet `number`: mostly up to a line, sometimes up to the maximum.
fn length(number: u64, max_bytes: usize) -> usize {
    let random = mix(number);
    let bound = match random as u8 {
        0 => max_bytes,
        1..=16 => 1024,
        _ => 64,
    };
    (random >> 8) as usize % (bound.min(max_bytes) + 1)
}

fn pattern(number: u64, bytes: &mut [u8]) {
    for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&pattern_word(number, index));
    }
}

fn pattern_word(number: u64, index: usize) -> [u8; 8] {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (index as u64) << 56)
        .rotate_left(index as u32)
        .to_le_bytes()
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 32)).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ (x >> 29)
}

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn one_in(&mut self, odds: u64) -> bool {
        self.below(odds) == 0
    }
}

fn pause(tries: &mut u32) {
    *tries += 1;
    if tries.is_multiple_of(64) { thread::yield_now() } else { std::hint::spin_loop() }
}

/// Zeroed memory that starts at a cache line.
fn segment(lines: usize) -> Segment {
    #[repr(align(64))]
    #[derive(Clone)]
    struct Line(#[allow(dead_code)] [u8; LINE_BYTES]);
    struct Lines(Vec<Line>);
    impl Owner for Lines {}
    let mut lines = Lines(vec![Line([0; LINE_BYTES]); lines]);
    let (start, bytes) = (NonNull::from(&mut lines.0[..]).cast(), size_of_val(&lines.0[..]));
    // SAFETY: a vector that is moved keeps its bytes in place, and they live as long as the owner.
    let memory = unsafe { Memory::from_owner(start, bytes, true, Arc::new(lines)) };
    Segment::new(&memory, 0, bytes)
}

const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
const PRIVATE_EXPEDITED: i32 = 1 << 3;

fn membarrier(command: i32) -> bool {
    // SAFETY: the call takes two numbers and touches no memory of ours.
    !cfg!(miri) && unsafe { libc::syscall(libc::SYS_membarrier, command, 0) } == 0
}

fn register_barrier() -> bool {
    membarrier(REGISTER_PRIVATE_EXPEDITED)
}

fn barrier() {
    assert!(membarrier(PRIVATE_EXPEDITED), "membarrier worked when it was registered");
}

/// Pins this thread to one processor, if there are enough.
fn pin(processor: usize) {
    if cfg!(miri) || thread::available_parallelism().map_or(1, usize::from) < 2 {
        return;
    }
    // SAFETY: the set is ours, and its size is given.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}
