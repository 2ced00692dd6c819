//! The lane and the doorbell in one thread, step by step, and with hostile peers.

use super::*;
use crate::doorbell::{DOORBELL_LINES, Doorbell, LANES};
use crate::memory::{Memory, Owner, View};
use crate::segment::{LINE_BYTES, Segment, Words};
use crate::sync::{Fences, Ordering};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

const GEOMETRY: Geometry =
    Geometry { pool_chunks: 4, chunk_lines: 4, small_lines: 3, host_chunks: 2 };

const ROUNDS: u64 = if cfg!(miri) { 30 } else { 20_000 };

type Ends = (LaneSender<Segment>, LaneReceiver<Segment>);

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

fn memory() -> LaneMemory<Segment> {
    LaneMemory {
        pool: segment(GEOMETRY.pool_chunks * GEOMETRY.chunk_lines),
        control: segment(GEOMETRY.control_lines()),
        host: segment(GEOMETRY.host_lines()),
    }
}

fn ends(memory: &LaneMemory<Segment>, start: u64) -> Ends {
    let fences = Fences::Symmetric;
    let receiver = LaneReceiver::new(memory.clone(), GEOMETRY, fences, 5, start);
    (LaneSender::new(memory.clone(), GEOMETRY, fences, 6), receiver)
}

/// Sends a packet with `bytes` bytes that carries `number`.
fn send(sender: &mut LaneSender<Segment>, number: u64, bytes: usize) -> Result<Sent, Full> {
    let body = vec![number as u8; bytes];
    sender.send([1 | (bytes as u64) << 32, number, 0], &[], View::of(&body), false, || true)
}

/// Receives until the lane is empty. Returns the packets' numbers and the extents that came back.
fn receive(receiver: &mut LaneReceiver<Segment>) -> (Vec<u64>, Vec<Freed>) {
    let (mut numbers, mut extents) = (Vec::new(), Vec::new());
    loop {
        match receiver.peek() {
            Arrival::Nothing => return (numbers, extents),
            Arrival::Packet([first, number, _], payload) => {
                let body = payload.part(0, (first >> 32) as usize).expect("inside").to_vec();
                assert!(body.iter().all(|byte| *byte == number as u8));
                numbers.push(number);
                receiver.take(first);
            }
            Arrival::Moved { freed, .. } => extents.extend(freed),
            Arrival::Violation => panic!("the sender broke no rule"),
        }
    }
}

/// A parked lane takes packets in its small chunk and asks for a ring; then it goes through its
/// grants.
// shows: D-02, D-13
#[test]
fn small_chunk_then_grants() {
    let (mut sender, mut receiver) = ends(&memory(), 0);
    assert_eq!(send(&mut sender, 1, 8), Ok(Sent::Ring));
    receiver.unpark();
    receiver.grant(2, 1);
    receiver.grant(0, 2);
    for number in 2..=6 {
        assert_eq!(send(&mut sender, number, 20), Ok(Sent::Done));
    }
    assert_eq!(receive(&mut receiver), (vec![1, 2, 3, 4, 5, 6], vec![(2, 1)]));
    assert_eq!(sender.host_fallbacks(), 0);
}

/// Without credit the lane falls back on host memory and reports when that is full. With credit it
/// comes back, in order.
// shows: D-16, D-17, D-19
#[test]
fn host_memory_and_back() {
    let (mut sender, mut receiver) = ends(&memory(), 0);
    let mut sent = 0;
    while send(&mut sender, sent + 1, 8).is_ok() {
        sent += 1;
    }
    assert_eq!(sent, 2 + 2 * 3, "a small chunk and two host chunks");
    assert!(sender.is_parked() && sender.host_fallbacks() == 2);
    receiver.unpark();
    receiver.grant(3, 1);
    assert_eq!(send(&mut sender, 9, 8), Ok(Sent::Done));
    assert!(sender.is_in_pool());
    assert_eq!(receive(&mut receiver).0, (1..=9).collect::<Vec<_>>());
}

/// A host chunk that was read is the sender's again: without any credit in the pool the lane
/// carries many times what the host chunks hold, and is full at the same length each time.
// shows: D-16, D-19
#[test]
fn host_chunks_come_back() {
    for start in [0, u64::MAX - 20] {
        let (mut sender, mut receiver) = ends(&memory(), start);
        let mut number = 0;
        let mut fill = |sender: &mut LaneSender<Segment>| {
            let first = number + 1;
            while send(sender, number + 1, 8).is_ok() {
                number += 1;
            }
            (first..=number).collect::<Vec<_>>()
        };
        let sent = fill(&mut sender);
        assert_eq!(sent.len(), 2 + 2 * 3, "a small chunk and two host chunks");
        receiver.unpark();
        assert_eq!(receive(&mut receiver).0, sent);
        for round in 0..100 {
            // The receiver leaves a chunk when it finds the way to the next one.
            let sent = fill(&mut sender);
            assert_eq!(sent.len(), 3, "one host chunk, in round {round}");
            assert_eq!(receive(&mut receiver).0, sent);
        }
    }
}

/// The longest packet fits into one chunk of the pool, and into one host chunk.
// shows: D-13, D-16
#[test]
fn longest_packet() {
    let (mut sender, mut receiver) = ends(&memory(), 0);
    let bytes = GEOMETRY.packet_bytes();
    assert_eq!(send(&mut sender, 1, bytes), Ok(Sent::Ring));
    receiver.unpark();
    receiver.grant(3, 1);
    assert_eq!(send(&mut sender, 2, bytes), Ok(Sent::Done));
    assert_eq!(receive(&mut receiver).0, [1, 2]);
}

/// A late bell unparks a lane whose sender has not seen the parking: the sender must leave the
/// extent that was taken back.
// shows: D-02, D-13
#[test]
fn parking_that_the_sender_did_not_see() {
    let (mut sender, mut receiver) = ends(&memory(), 0);
    send(&mut sender, 1, 8).unwrap();
    receiver.unpark();
    receiver.grant(0, 1);
    send(&mut sender, 2, 8).unwrap();
    receive(&mut receiver);
    receiver.begin_park();
    let mut freed = Vec::new();
    assert!(receiver.try_park(|extent| freed.push(extent)));
    assert_eq!(freed, [(0, 1)]);
    receiver.unpark();
    receiver.grant(1, 1);
    assert_eq!(send(&mut sender, 3, 8), Ok(Sent::Done));
    assert_eq!(receive(&mut receiver).0, [3]);
}

/// A packet that was sent to the new small chunk during the parking is visible as soon as the lane
/// is parked.
// shows: D-02
#[test]
fn packet_while_parking() {
    let (mut sender, mut receiver) = ends(&memory(), 0);
    send(&mut sender, 1, 8).unwrap();
    receiver.unpark();
    receiver.grant(0, 2);
    receiver.begin_park();
    assert_eq!(send(&mut sender, 2, 8), Ok(Sent::Ring));
    assert!(!receiver.try_park(|_| panic!("packet 1 is not read yet")));
    assert!(matches!(receiver.peek(), Arrival::Packet(words, _) if words == [1 | 8 << 32, 1, 0]));
    assert_eq!(receiver.state(), LaneState::Parking);
    receiver.take(1 | 8 << 32);
    let mut freed = Vec::new();
    assert!(receiver.try_park(|extent| freed.push(extent)));
    assert_eq!((freed, receiver.state()), (vec![(0, 2)], LaneState::Parked));
    assert!(receiver.is_ready());
    receiver.unpark();
    assert_eq!(receive(&mut receiver).0, [2]);
}

/// The grant ring goes round many times, past the wrap-around of its 32-bit sequence and 64-bit
/// counter.
// shows: D-13
#[test]
fn grant_ring_wraps() {
    for start in [0, u64::from(u32::MAX) - 20, u64::MAX - 20] {
        let (mut sender, mut receiver) = ends(&memory(), start);
        send(&mut sender, 0, 8).unwrap();
        receiver.unpark();
        let mut expected = 0;
        for number in 1..60 {
            receiver.grant((number % 4) as u16, 1);
            // Two lines leave no room for a second such packet, so each takes a grant.
            send(&mut sender, number, 90).unwrap();
            assert!(sender.is_in_pool());
            for found in receive(&mut receiver).0 {
                assert_eq!(found, expected);
                expected += 1;
            }
        }
        assert_eq!((expected, sender.host_fallbacks()), (60, 0));
    }
}

/// A dead sender's extents come back: its current one, and the grants that it had not entered.
#[test]
fn abandoned_lane() {
    let (mut sender, mut receiver) = ends(&memory(), 0);
    send(&mut sender, 1, 8).unwrap();
    receiver.unpark();
    receiver.grant(1, 1);
    receiver.grant(2, 2);
    send(&mut sender, 2, 8).unwrap();
    receive(&mut receiver);
    let mut freed = Vec::new();
    receiver.abandon(|extent| freed.push(extent));
    assert_eq!(freed, [(1, 1), (2, 2)]);
}

/// Every lane's bell is answered once, and only a ring to a sleeper asks for a wake-up.
#[test]
fn bells() {
    let doorbell = Doorbell::new(segment(DOORBELL_LINES));
    for lane in (0..LANES).step_by(if cfg!(miri) { 777 } else { 1 }) {
        assert!(!doorbell.is_rung() && !doorbell.ring(lane) && doorbell.is_rung());
        assert!(!doorbell.prepare_sleep(), "a bell is not answered yet");
        let mut rang = Vec::new();
        doorbell.answer(|lane| rang.push(lane));
        assert_eq!(rang, [lane]);
        assert!(doorbell.prepare_sleep());
        assert!(doorbell.ring(lane) && !doorbell.ring(lane), "one ringer wakes the sleeper");
        doorbell.end_sleep();
        doorbell.answer(|_| ());
    }
}

struct Random(u64);

impl Random {
    fn draw(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A word that is likely to be valid somewhere.
    fn likely(&mut self, memory: &LaneMemory<Segment>) -> u64 {
        let random = self.draw();
        let control = |index| memory.control.word(index).load(Ordering::Relaxed);
        match random % 9 {
            // The valid nonces: of the command and of the grants.
            0 => control(COMMAND) | PARKED,
            1 => control(GRANT_RING + 1 + (random >> 8) as usize % GRANTS * 2),
            2 => LINK | (random >> 8 & 1) << 8 | (random >> 16 & 3) << 16,
            3 => 1 | (random >> 8 & 0x1ff) << 32,
            4 => u64::MAX << (random >> 8 & 63),
            5 => random >> (random >> 8 & 63),
            6 => (random >> 8 & 1) | SECOND,
            7 => (control(GRANT_BASE).wrapping_add(1) << 32) | (random >> 8 & 0x7_0007),
            _ => random,
        }
    }
}

/// Writes random words to one of `targets`.
fn scribble(memory: &LaneMemory<Segment>, targets: &[&Segment], random: &mut Random) {
    let segment = targets[random.draw() as usize % targets.len()];
    let at = random.draw() as usize % (segment.bytes() / 8);
    segment.word(at).store(random.likely(memory), Ordering::Relaxed);
    // Often a whole header, at the start of a line.
    if random.draw().is_multiple_of(2) {
        let line = at / LINE_WORDS * LINE_WORDS;
        for offset in [3, 2, 1, 0] {
            segment.word(line + offset).store(random.likely(memory), Ordering::Relaxed);
        }
    }
}

/// Acts while another thread writes random words to `targets`.
fn beside_scribbler(
    memory: &LaneMemory<Segment>,
    targets: &[&Segment],
    seed: u64,
    act: impl FnOnce(),
) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(seed);
            while !stop.load(Ordering::Relaxed) {
                scribble(memory, targets, &mut random);
            }
        });
        act();
        stop.store(true, Ordering::Relaxed);
    });
}

/// Receives as a device does from a hostile sender. A lane with a violation is made anew.
fn endure(receiver: &mut LaneReceiver<Segment>, memory: &LaneMemory<Segment>, random: &mut Random) {
    // Each move of a valid lane follows a packet, so this number of steps per poll is enough.
    for _ in 0..8 {
        match receiver.peek() {
            Arrival::Nothing => break,
            Arrival::Packet(words, payload) => {
                let bytes = (words[0] >> 32) as usize;
                assert!(bytes <= GEOMETRY.packet_bytes());
                payload.read(0, &mut vec![0; bytes]);
                receiver.take(words[0]);
            }
            Arrival::Moved { freed, .. } => {
                if let Some((first, chunks)) = freed {
                    assert!(usize::from(first + chunks) <= GEOMETRY.pool_chunks && chunks > 0);
                }
            }
            Arrival::Violation => {
                receiver.abandon(|_| ());
                *receiver = ends(memory, random.draw()).1;
            }
        }
    }
    match receiver.state() {
        LaneState::Parked if random.draw().is_multiple_of(2) => receiver.unpark(),
        LaneState::Active if random.draw().is_multiple_of(16) => receiver.begin_park(),
        LaneState::Active if receiver.open_grants() < GRANTS => {
            receiver.grant((random.draw() % 3) as u16, 1 + (random.draw() % 2) as u16);
        }
        LaneState::Parking => {
            receiver.try_park(|_| ());
        }
        _ => (),
    }
}

/// A sender that writes random words to all its writable memory at any time harms only its own
/// lane.
// shows: D-13
#[test]
#[cfg_attr(miri, ignore = "the peer races on purpose")]
fn hostile_sender() {
    let memory = memory();
    let bells = segment(DOORBELL_LINES);
    // The whole control block: a sender can map all of it writable.
    let targets = [&memory.pool, &memory.control, &memory.host, &bells];
    beside_scribbler(&memory, &targets, 77, || {
        let doorbell = Doorbell::new(bells.clone());
        let mut random = Random(99);
        let mut receiver = ends(&memory, u64::MAX - 5).1;
        for _ in 0..ROUNDS * 10 {
            endure(&mut receiver, &memory, &mut random);
            if doorbell.is_rung() {
                doorbell.answer(|lane| assert!(lane < LANES));
            }
            if doorbell.prepare_sleep() {
                doorbell.end_sleep();
            }
        }
    });
}

/// A receiver that writes random words cannot make a sender write outside the segments, or panic.
// shows: D-13
#[test]
#[cfg_attr(miri, ignore = "the peer races on purpose")]
fn hostile_receiver() {
    let memory = memory();
    beside_scribbler(&memory, &[&memory.control, &memory.pool], 78, || {
        let doorbell = Doorbell::new(segment(DOORBELL_LINES));
        let mut sender = ends(&memory, 0).0;
        let mut random = Random(100);
        for number in 0..ROUNDS * 10 {
            let bytes = random.draw() as usize % (GEOMETRY.packet_bytes() + 1);
            if send(&mut sender, number, bytes) == Ok(Sent::Ring) {
                doorbell.ring(number as usize % LANES);
            }
        }
    });
}

/// The same with the peer's writes between the steps, from many seeds: every run is repeatable.
// shows: D-13
#[test]
#[cfg_attr(miri, ignore = "mixes atomic and plain bytes as only a hostile peer does")]
fn arbitrary_memory() {
    for seed in 1..=ROUNDS / 20 {
        let memory = memory();
        let mut random = Random(seed);
        let (mut sender, mut receiver) = ends(&memory, random.draw());
        let targets = [&memory.pool, &memory.control, &memory.host];
        for number in 0..100 {
            for _ in 0..random.draw() % 8 {
                scribble(&memory, &targets, &mut random);
            }
            let bytes = random.draw() as usize % (GEOMETRY.packet_bytes() + 1);
            let _ = send(&mut sender, number, bytes);
            endure(&mut receiver, &memory, &mut random);
        }
    }
}

/// Two runs that link to each other without a packet between do not make the receiver loop for
/// ever.
#[test]
fn ring_of_empty_runs() {
    let memory = memory();
    let (_, mut receiver) = ends(&memory, 0);
    let small = GEOMETRY.small(memory.control.word(COMMAND).load(Ordering::Relaxed));
    let link = |segment: &Segment, line: usize, tag: u64| {
        let header = [tag, LINK | LINK_HOST, 1, 0];
        for (offset, word) in header.into_iter().enumerate().rev() {
            segment.word(line * LINE_WORDS + offset).store(word, Ordering::Release);
        }
    };
    link(&memory.control, small.line, small.nonce);
    link(&memory.host, 0, 1);
    receiver.unpark();
    assert!(matches!(receiver.peek(), Arrival::Moved { starved: true, .. }));
    assert!(matches!(receiver.peek(), Arrival::Violation));
}
