//! The lane in one thread, step by step.

use super::*;
use crate::memory::View;
use crate::segment::{Segment, zeroed as segment};
use crate::sync::{AtomicU64, Fences, Ordering};

pub(super) const GEOMETRY: Geometry =
    Geometry { pool_chunks: 4, chunk_lines: 4, small_lines: 3, host_chunks: 2 };

pub(super) const ROUNDS: u64 = if cfg!(miri) { 30 } else { 20_000 };

type Ends = (LaneSender<Segment>, LaneReceiver<Segment>);

pub(super) fn memory() -> LaneMemory<Segment> {
    LaneMemory {
        pool: segment(GEOMETRY.pool_chunks * GEOMETRY.chunk_lines),
        control: segment(GEOMETRY.control_lines()),
        host: segment(GEOMETRY.host_lines()),
    }
}

pub(super) fn ends(memory: &LaneMemory<Segment>, start: u64) -> Ends {
    let fences = Fences::Symmetric;
    let receiver = LaneReceiver::new(memory.clone(), GEOMETRY, fences, 5, start);
    (LaneSender::new(memory.clone(), GEOMETRY, fences, 6), receiver)
}

/// Sends a packet with `bytes` bytes that carries `number`.
pub(super) fn send(
    sender: &mut LaneSender<Segment>,
    number: u64,
    bytes: usize,
) -> Result<Sent, Full> {
    let body = vec![number as u8; bytes];
    sender.send([1 | (bytes as u64) << 32, number, 0], &[], View::of(&body), || true)
}

/// Receives until the lane is empty. Returns the packets' numbers and the extents that came back.
pub(super) fn receive(receiver: &mut LaneReceiver<Segment>) -> (Vec<u64>, Vec<Freed>) {
    let (mut numbers, mut extents) = (Vec::new(), Vec::new());
    let mut has_moved = false;
    loop {
        match receiver.peek() {
            Arrival::Nothing => return (numbers, extents),
            Arrival::Packet([first, number, _], payload) => {
                let body = payload.part(0, (first >> 32) as usize).expect("inside").to_vec();
                assert!(body.iter().all(|byte| *byte == number as u8));
                numbers.push(number);
                receiver.take(first);
                has_moved = false;
            }
            Arrival::Moved { freed, .. } => {
                assert!(!has_moved, "each run has a packet");
                has_moved = true;
                extents.extend(freed);
            }
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
    while sent < 20 && send(&mut sender, sent + 1, 8).is_ok() {
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

/// A host chunk that was read is the sender's again. Without any credit in the pool the lane
/// carries many times what the host chunks hold. It is full at the same length each time.
// shows: D-16, D-19
#[test]
fn host_chunks_come_back() {
    for start in [0, u64::MAX - 20] {
        let (mut sender, mut receiver) = ends(&memory(), start);
        let mut number = 0;
        let mut fill = |sender: &mut LaneSender<Segment>| {
            let first = number + 1;
            while number < first + 20 && send(sender, number + 1, 8).is_ok() {
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

/// Reads one word of a segment.
pub(super) fn word(segment: &Segment, index: usize) -> u64 {
    segment.word(index).load(Ordering::Relaxed)
}

/// The sizes of the standard geometry, and lines of a packet at the ends of lines.
#[test]
fn sizes() {
    let standard = Geometry::STANDARD;
    let sizes = (standard.packet_bytes(), standard.control_lines(), standard.host_lines());
    assert_eq!(sizes, (8096, 32, 1024));
    assert_eq!(
        (GEOMETRY.packet_bytes(), GEOMETRY.control_lines(), GEOMETRY.host_lines()),
        (160, 12, 8)
    );
    assert_eq!([0, 1, 32, 33, 96, 97, 8096].map(lines_for), [1, 1, 1, 2, 2, 3, 127]);
}

/// Nonces are the known numbers of their sequence, odd, and differ.
#[test]
fn nonces() {
    let mut nonces = nonce::Nonces::new(0);
    assert_eq!((nonces.draw(), nonces.draw()), (0x4e17_cf67_001b_3979, 0x3b04_1d5b_6692_dd3d));
    let mut drawn: Vec<u64> = (0..100).map(|_| nonces.draw()).collect();
    assert!(drawn.iter().all(|nonce| nonce % 2 == 1));
    drawn.sort_unstable();
    drawn.dedup();
    assert_eq!(drawn.len(), 100);
}

/// A lane takes memory with exactly its lines, and refuses a part that is one line short.
#[test]
fn memory_that_is_too_small_is_refused() {
    let exact = [16, 12, 8];
    for short in 0..4 {
        let [pool, control, host] =
            [0, 1, 2].map(|part| segment(exact[part] - usize::from(part == short)));
        let memory = LaneMemory { pool, control, host };
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            LaneReceiver::new(memory, GEOMETRY, Fences::Symmetric, 5, 0).room_lines()
        }));
        assert_eq!(made.ok(), (short == 3).then_some(2), "part {short} is short");
    }
}

/// What a sender writes, word by word: packets in the small chunk and the LINKs to host chunks 0
/// and 1.
// shows: D-16
#[test]
fn words_of_packets_and_links() {
    let memory = memory();
    let (mut sender, mut receiver) = ends(&memory, 0);
    let command = word(&memory.control, COMMAND);
    assert_eq!((command & PARKED, command & SECOND), (1, 0));
    let body = View::of(&[3, 4, 5, 6, 7, 8, 9]);
    let first = 1 | 9 << 32;
    assert_eq!(sender.send([first, 20, 21], &[1, 2], body, || true), Ok(Sent::Ring));
    let line = |segment: &Segment, line: usize| {
        [0, 1, 2, 3, 4, 5].map(|offset| word(segment, line * LINE_WORDS + offset))
    };
    let bytes = u64::from_ne_bytes([1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(line(&memory.control, 6), [command, first, 20, 21, bytes, 9]);
    assert_eq!(word(&memory.control, INTENT), 0, "the packet is complete");
    (2..=6).for_each(|number| assert_eq!(send(&mut sender, number, 0), Ok(Sent::Ring)));
    let (to_first, to_second) = (line(&memory.control, 8), line(&memory.host, 3));
    assert_eq!((to_first[0], to_first[1]), (command, 0x1ff));
    assert_eq!(line(&memory.host, 0)[..3], [to_first[2], 1, 2 + 1]);
    assert_eq!((to_second[0], to_second[1]), (to_first[2], 0x1_01ff));
    assert_eq!(word(&memory.host, 4 * LINE_WORDS), to_second[2]);
    assert!(to_first[2] & to_second[2] & 1 == 1 && to_first[2] != to_second[2]);
    receiver.unpark();
    assert_eq!(word(&memory.control, COMMAND), command & !PARKED);
    assert_eq!(receiver.room_lines(), 2);
    assert!(matches!(receiver.peek(), Arrival::Packet(words, _) if words == [first, 20, 21]));
    receiver.take(first);
    assert_eq!(receiver.room_lines(), 1);
    receiver.take(0);
    assert_eq!(receiver.room_lines(), 0);
    assert!(matches!(receiver.peek(), Arrival::Moved { freed: None, starved: true }));
    assert_eq!((receiver.room_lines(), word(&memory.control, HOST_CONSUMED)), (3, 0));
}

/// A grant's words: its sequence, first chunk and length, and a nonce. The second follows in the
/// ring, and a parking counts both as void.
#[test]
fn words_of_grants() {
    let memory = memory();
    let (_, mut receiver) = ends(&memory, 15);
    receiver.unpark();
    receiver.grant(3, 1);
    receiver.grant(1, 2);
    assert_eq!(word(&memory.control, 16 + 30), 16 << 32 | 3 << 16 | 1);
    assert_eq!(word(&memory.control, 16), 17 << 32 | 1 << 16 | 2);
    let (first, second) = (word(&memory.control, 16 + 31), word(&memory.control, 17));
    assert!(first & second & 1 == 1 && first != second);
    assert_eq!((receiver.open_grants(), word(&memory.control, GRANT_BASE)), (2, 15));
    receiver.begin_park();
    let command = word(&memory.control, COMMAND);
    assert_eq!((command & PARKED, command & SECOND), (1, 2), "the other small chunk");
    assert_eq!(word(&memory.control, GRANT_BASE), 17);
    assert!(receiver.try_park(|_| ()));
    assert_eq!((receiver.open_grants(), receiver.room_lines()), (0, 2));
    receiver.unpark();
    receiver.begin_park();
    let again = word(&memory.control, COMMAND);
    assert_eq!((again & PARKED, again & SECOND), (1, 0), "they alternate");
    assert_ne!(again | SECOND, command);
}

/// No lane is parked while its sender writes a packet.
#[test]
fn no_parking_in_mid_packet() {
    let memory = memory();
    let (_, mut receiver) = ends(&memory, 0);
    receiver.unpark();
    receiver.begin_park();
    memory.control.word(INTENT).store(1, Ordering::Relaxed);
    assert!(!receiver.try_park(|_| ()));
    memory.control.word(INTENT).store(0, Ordering::Relaxed);
    assert!(receiver.try_park(|_| ()));
}

/// An extent of two chunks is one run: its last line is for the LINK, and none is wasted between.
// shows: D-13
#[test]
fn an_extent_is_one_run() {
    let (mut sender, mut receiver) = ends(&memory(), 0);
    send(&mut sender, 1, 0).unwrap();
    receiver.unpark();
    receiver.grant(1, 2);
    (2..=8).for_each(|number| assert_eq!(send(&mut sender, number, 0), Ok(Sent::Done)));
    assert!(sender.is_in_pool());
    send(&mut sender, 9, 0).unwrap();
    assert!(!sender.is_in_pool() && sender.host_fallbacks() == 1);
    assert_eq!(receive(&mut receiver), ((1..=9).collect(), vec![(1, 2)]));
}

/// A sender that waits for room is seen until its mark is taken.
#[test]
fn a_waiting_sender_is_seen_once() {
    let (sender, receiver) = ends(&memory(), 0);
    assert!(!receiver.is_waiting() && !receiver.take_waiting());
    sender.announce_waiting();
    assert!(receiver.is_waiting() && receiver.is_waiting());
    assert!(receiver.take_waiting());
    assert!(!receiver.is_waiting() && !receiver.take_waiting());
}

/// The region that a sender copies is seen while it does. A mark that no region has is none.
#[test]
fn a_busy_region_is_seen() {
    let memory = memory();
    let (sender, receiver) = ends(&memory, 0);
    assert_eq!(receiver.busy_region(), None);
    for region in [0, 1, u16::MAX] {
        sender.mark_busy(region);
        assert_eq!(receiver.busy_region(), Some(region));
    }
    sender.mark_idle();
    assert_eq!(receiver.busy_region(), None);
    memory.control.word(BUSY).store(0x1_0001, Ordering::Relaxed);
    assert_eq!(receiver.busy_region(), None);
}

/// What a sender says of itself is in a line that only senders write.
#[test]
fn words_of_a_sender() {
    let memory = memory();
    let (sender, _receiver) = ends(&memory, 0);
    let words_of = |line: usize| {
        [0, 1, 2, 3, 4, 5, 6, 7].map(|at| word(&memory.control, line * LINE_WORDS + at))
    };
    let of_receiver = || [0, 2, 3, 4, 5].map(words_of);
    let before = of_receiver();
    sender.mark_busy(3);
    sender.announce_waiting();
    assert_eq!(words_of(1), [0, 4, 1, 0, 0, 0, 0, 0]);
    assert_eq!(of_receiver(), before);
}

/// The pages of host chunks are asked for once and before they are used, and can go when neither
/// side uses one. Without them the lane is full.
#[test]
fn host_pages_come_and_go() {
    let memory = memory();
    let (mut sender, mut receiver) = ends(&memory, 0);
    let mut asked = 0;
    let mut send_asking = |sender: &mut LaneSender<Segment>, exist: bool| {
        let sent = sender.send([1, 0, 0], &[], View::empty(), || {
            asked += 1;
            exist
        });
        (sent.is_ok(), asked)
    };
    assert_eq!([0, 1].map(|_| send_asking(&mut sender, false)), [(true, 0), (true, 0)]);
    assert_eq!(send_asking(&mut sender, false), (false, 1));
    assert_eq!(word(&memory.control, INTENT), 0, "no packet is being written");
    assert!(!sender.tidy(), "there are no pages");
    assert_eq!(send_asking(&mut sender, true), (true, 2));
    assert_eq!(send_asking(&mut sender, true), (true, 2));
    assert!(!sender.tidy(), "the sender stands in them");
    assert!(sender.is_parked());
    receiver.unpark();
    receiver.grant(0, 1);
    assert_eq!(send_asking(&mut sender, true), (true, 2));
    assert!(sender.is_in_pool() && !sender.is_parked());
    assert!(!sender.tidy(), "the receiver has not read them");
    assert_eq!(receive(&mut receiver).0.len(), 5);
    assert_eq!(word(&memory.control, HOST_CONSUMED), 1);
    assert!(sender.tidy() && !sender.tidy(), "they go once");
    assert_eq!([0, 1].map(|_| send_asking(&mut sender, true)), [(true, 2), (true, 2)]);
    assert_eq!(send_asking(&mut sender, true), (true, 3), "they are asked for again");
}

/// A sender that tidies obeys a parking that it has not seen: it leaves the host chunk, which the
/// receiver has left, too.
#[test]
fn tidying_obeys_a_parking() {
    let (mut sender, mut receiver) = ends(&memory(), 0);
    (1..=3).for_each(|number| assert!(send(&mut sender, number, 0).is_ok()));
    receiver.unpark();
    assert_eq!(receive(&mut receiver).0, [1, 2, 3]);
    assert!(!sender.tidy(), "both stand in a host chunk");
    receiver.begin_park();
    assert!(receiver.try_park(|_| ()));
    assert!(sender.tidy() && sender.is_parked());
}

/// A dead sender's lane is parked, and nothing that it left behind is read.
#[test]
fn an_abandoned_lane_is_silent() {
    let memory = memory();
    let (mut sender, mut receiver) = ends(&memory, 0);
    send(&mut sender, 1, 8).unwrap();
    assert!(receiver.is_ready());
    receiver.abandon(|_| panic!("it held nothing"));
    assert_eq!((receiver.state(), receiver.is_ready()), (LaneState::Parked, false));
    assert_eq!(receiver.room_lines(), 0);
}

/// The small chunks alternate, parking by parking, each with another nonce.
#[test]
fn small_chunks_alternate() {
    let memory = memory();
    let (_, mut receiver) = ends(&memory, 0);
    let mut commands = Vec::new();
    for parking in 1..=20 {
        receiver.unpark();
        receiver.begin_park();
        assert!(receiver.try_park(|_| ()));
        let command = word(&memory.control, COMMAND);
        assert_eq!((command & PARKED, command & SECOND), (1, parking % 2 * 2));
        commands.push(command & !SECOND);
    }
    commands.sort_unstable();
    commands.dedup();
    assert_eq!(commands.len(), 20);
}

/// The fences of a lane can be set once both processes have agreed.
#[test]
fn fences_are_set() {
    let (_, mut receiver) = ends(&memory(), 0);
    assert_eq!(receiver.fences(), Fences::Symmetric);
    receiver.set_fences(Fences::Asymmetric);
    assert_eq!(receiver.fences(), Fences::Asymmetric);
}

/// A sender claims the next eight lines of its run when it has used those that it claimed before.
/// It stops at the end of the run, and claims none for a packet of more lines.
#[test]
fn lines_are_claimed_in_the_run_only() {
    const MARK: u64 = u64::MAX;
    let geometry = Geometry { chunk_lines: 16, ..GEOMETRY };
    let memory = LaneMemory {
        pool: segment(geometry.pool_chunks * geometry.chunk_lines),
        control: segment(geometry.control_lines()),
        host: segment(geometry.host_lines()),
    };
    let pool = memory.pool.clone();
    let lines = pool.lines();
    (0..lines * LINE_WORDS).for_each(|word| pool.word(word).store(MARK, Ordering::Relaxed));
    let fences = Fences::Symmetric;
    let mut receiver = LaneReceiver::new(memory.clone(), geometry, fences, 5, 0);
    let mut sender = LaneSender::new(memory, geometry, fences, 6);
    receiver.unpark();
    receiver.grant(1, 2);
    // The run: lines 16 to 47. Bytes of a packet, its first line, and the claimed lines behind it.
    let packets = [
        (8, 16, 17..25),
        // Nine lines.
        (9 * 64 - 32, 17, 26..26),
        (8, 26, 27..35),
        (6 * 64 - 32, 27, 33..35),
        (8 * 64 - 32, 33, 41..48),
        (8, 41, 42..48),
    ];
    for (number, (bytes, first, claimed)) in (1..).zip(packets) {
        send(&mut sender, number, bytes).expect("room");
        assert_eq!(pool.word(first * LINE_WORDS + 2).load(Ordering::Relaxed), number);
        let behind = first + lines_for(bytes);
        let is_claimed = |line: usize| {
            let words: Vec<u64> = (0..LINE_WORDS)
                .map(|word| pool.word(line * LINE_WORDS + word).load(Ordering::Relaxed))
                .collect();
            let (last, others) = words.split_last().expect("a line has words");
            assert!(others.iter().all(|&word| word == MARK), "line {line}: {words:x?}");
            assert!([0, MARK].contains(last), "line {line}: {words:x?}");
            *last == 0
        };
        let all: Vec<usize> = (behind..lines).filter(|&line| is_claimed(line)).collect();
        assert_eq!(all, claimed.collect::<Vec<_>>(), "behind packet {number}");
        assert!((0..16).chain(48..lines).all(|line| !is_claimed(line)), "behind packet {number}");
    }
}

/// Words of a pool that only a sender with its intent announced touches.
struct Announced {
    words: Segment,
    /// The lane's control block; `None` for words that may always be touched.
    control: Option<Segment>,
}

impl Announced {
    fn new(words: &Segment, control: Option<&Segment>) -> Self {
        Announced { words: words.clone(), control: control.cloned() }
    }

    #[track_caller]
    fn touch(&self) -> &Segment {
        let intent = |control: &Segment| control.word(INTENT).load(Ordering::Relaxed);
        assert!(self.control.as_ref().is_none_or(|control| intent(control) == 1), "no intent");
        &self.words
    }
}

impl Words for Announced {
    type Payload<'a> = View<'a>;

    fn lines(&self) -> usize {
        self.words.lines()
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        self.touch().word(index)
    }

    unsafe fn line(&self, index: usize) -> &[AtomicU64; LINE_WORDS] {
        // SAFETY: the caller's promise.
        unsafe { self.touch().line(index) }
    }

    fn front(&self) -> &[AtomicU64; 2 * LINE_WORDS] {
        self.words.front()
    }

    unsafe fn payload(&self, word: usize, bytes: usize) -> View<'_> {
        // SAFETY: the caller's promise.
        unsafe { self.touch().payload(word, bytes) }
    }

    unsafe fn fill(&self, word: usize, head: &[u8], body: View<'_>) {
        // SAFETY: the caller's promise.
        unsafe { self.touch().fill(word, head, body) }
    }
}

/// Without its intent announced a sender touches nothing of the pool, not even a line that it
/// claims: the receiver may have taken the run back, and granted it to another lane.
#[test]
fn the_pool_is_touched_with_intent_only() {
    let memory = memory();
    let (_, mut receiver) = ends(&memory, 0);
    let LaneMemory { pool, control, host } = &memory;
    let watched = LaneMemory {
        pool: Announced::new(pool, Some(control)),
        control: Announced::new(control, None),
        host: Announced::new(host, None),
    };
    let mut sender = LaneSender::new(watched, GEOMETRY, Fences::Symmetric, 6);
    receiver.unpark();
    for number in 0..9 {
        receiver.grant(number % 4, 1);
        let sent = sender.send([1, number.into(), 0], &[], View::empty(), || true);
        sent.expect("room");
        assert_eq!(receive(&mut receiver).0, [u64::from(number)]);
    }
}
