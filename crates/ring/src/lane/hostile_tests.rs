//! The lane beside a hostile peer: one that writes random words at any time, and one that breaks a
//! single rule.

use super::tests::{GEOMETRY, ROUNDS, ends, memory, receive, send, word};
use super::{
    Arrival, COMMAND, GRANT_BASE, GRANT_RING, GRANTS, LINK, LINK_HOST, LaneMemory, LaneReceiver,
    LaneState, PARKED, SECOND, Sent,
};
use crate::doorbell::{DOORBELL_LINES, Doorbell, LANES};
use crate::segment::{LINE_WORDS, Segment, Words, zeroed as segment};
use crate::sync::Ordering;
use std::sync::atomic::AtomicBool;
use std::thread;

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

/// Writes a packet or LINK to a line as a hostile sender does: the tag is `tag`.
fn forge(segment: &Segment, line: usize, tag: u64, header: [u64; 3]) {
    for (offset, value) in header.into_iter().enumerate() {
        segment.word(line * LINE_WORDS + 1 + offset).store(value, Ordering::Relaxed);
    }
    segment.word(line * LINE_WORDS).store(tag, Ordering::Release);
}

/// A packet ends before its run does, with a line left for the LINK, and is no longer than a chunk
/// carries. Otherwise the sender broke the rules.
// shows: D-13
#[test]
fn packets_that_are_too_long() {
    // The small chunk holds two lines of packets.
    for (bytes, is_packet) in [(0_u64, true), (96, true), (97, false), (u32::MAX.into(), false)] {
        let memory = memory();
        let (_, mut receiver) = ends(&memory, 0);
        forge(&memory.control, 6, word(&memory.control, COMMAND), [1 | bytes << 32, 7, 8]);
        receiver.unpark();
        match receiver.peek() {
            Arrival::Packet(words, payload) => {
                assert!(is_packet, "{bytes} bytes");
                assert_eq!((words, payload.len() as u64), ([1 | bytes << 32, 7, 8], bytes));
            }
            other => assert!(!is_packet && matches!(other, Arrival::Violation), "{bytes} bytes"),
        }
    }
    // An extent of two chunks has room for more than the longest packet.
    for (bytes, is_packet) in [(160_u64, true), (161, false)] {
        let memory = memory();
        let (mut sender, mut receiver) = ends(&memory, 0);
        send(&mut sender, 1, 0).unwrap();
        receiver.unpark();
        receiver.grant(1, 2);
        send(&mut sender, 2, 0).unwrap();
        assert_eq!(receive(&mut receiver).0, [1, 2]);
        forge(&memory.pool, 5, word(&memory.control, 17), [1 | bytes << 32, 7, 8]);
        let found = receiver.peek();
        assert!(
            if is_packet {
                matches!(found, Arrival::Packet(..))
            } else {
                matches!(found, Arrival::Violation)
            },
            "{bytes} bytes"
        );
    }
}

/// A LINK leads to a host chunk that exists, with an odd nonce, or to a grant; other LINKs break
/// the rules.
#[test]
fn links_to_nowhere() {
    for (target, nonce, starved) in [
        (0x1ff, 1, Some(true)),
        (0x1_01ff, 3, Some(true)),
        (0xffff_0001_01ff, 3, Some(true)),
        (0x2_01ff, 1, None),
        (0xffff_01ff, 1, None),
        (0x1ff, 2, None),
        (0x1_01ff, 0, None),
        (0xff, 1, Some(false)),
    ] {
        let memory = memory();
        let (_, mut receiver) = ends(&memory, 0);
        let command = word(&memory.control, COMMAND);
        forge(&memory.control, 6, command, [1, 0, 0]);
        forge(&memory.control, 7, command, [target, nonce, 0]);
        receiver.unpark();
        receiver.grant(2, 1);
        receiver.take(1);
        match receiver.peek() {
            Arrival::Moved { freed: None, starved: found } => assert_eq!(Some(found), starved),
            Arrival::Violation => assert_eq!(starved, None, "{target:#x} {nonce}"),
            other => panic!("{other:?} from {target:#x} {nonce}"),
        }
        assert_eq!(receiver.open_grants(), usize::from(starved != Some(false)));
    }
    let memory = memory();
    let (_, mut receiver) = ends(&memory, 0);
    forge(&memory.control, 6, word(&memory.control, COMMAND), [LINK, 0, 0]);
    receiver.unpark();
    assert!(matches!(receiver.peek(), Arrival::Violation), "there is no grant");
}

/// A sender ignores a grant that is empty or outside the pool, and takes one that ends with it.
// shows: D-13
#[test]
fn grants_outside_the_pool_are_ignored() {
    for (first, chunks, is_taken) in [
        (0, 0, false),
        (3, 1, true),
        (0, 4, true),
        (3, 2, false),
        (4, 1, false),
        (0xffff, 1, false),
    ] {
        let memory = memory();
        let (mut sender, mut receiver) = ends(&memory, 0);
        send(&mut sender, 1, 0).unwrap();
        receiver.unpark();
        memory.control.word(17).store(9, Ordering::Relaxed);
        memory.control.word(16).store(1 << 32 | first << 16 | chunks, Ordering::Relaxed);
        assert_eq!(send(&mut sender, 2, 0), Ok(Sent::Done));
        assert_eq!(sender.is_in_pool(), is_taken, "{chunks} chunks at {first}");
        if is_taken {
            let at = first as usize * GEOMETRY.chunk_lines * LINE_WORDS;
            assert_eq!([0, 1, 2].map(|offset| word(&memory.pool, at + offset)), [9, 1, 2]);
        }
    }
}
