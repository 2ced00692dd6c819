//! How often and when a sender tries again, and what it does meanwhile.

use super::super::arena::{Arena, Packet, limit, op};
use bellwire_rdma::{
    Access, Attributes, Cause, EventKind, Mask, Operation, QpState, Service, WorkCompletion,
    WorkStatus,
};
use std::time::{Duration, Instant};

const SEND: Operation = Operation::Send { immediate: None, invalidate: None };
/// The opcode of a NAK.
const NAK: u8 = 6;
/// What a NAK says: no receive, with a timer code; no queue pair.
const NOT_READY: u8 = 0x20;
const NO_QUEUE_PAIR: u8 = 1;
/// A timer code and its time (table 45 of the specification).
const CODE: u8 = 20;
const TIME: Duration = Duration::from_micros(10_240);

fn arena(tune: impl Fn(&mut Attributes)) -> Arena {
    Arena::tuned(Service::ReliableConnection, Access::empty(), tune)
}

/// The next attempt of the victim's message, or its completion.
fn attempt(arena: &mut Arena) -> Result<Packet, WorkCompletion> {
    let deadline = Instant::now() + limit();
    loop {
        assert!(Instant::now() < deadline, "neither an attempt nor a completion");
        arena.look();
        if let Some(packet) = arena.answers(op::SEND).pop() {
            return Ok(packet);
        }
        if let Some(done) = arena.victim.next(arena.queue) {
            return Err(done);
        }
    }
}

fn refuse(arena: &mut Arena, psn: u32, syndrome: u8) {
    let packet = Packet { syndrome, psn, ..arena.packet(NAK) };
    arena.send(&packet);
}

fn acknowledge(arena: &mut Arena, psn: u32) {
    let next = psn.wrapping_add(1);
    let packet = Packet { flags: 8, psn: next, acked: next, word: next, ..arena.packet(op::ACK) };
    arena.send(&packet);
}

/// Refuses each attempt. Returns how many came until the message completed, and the completion.
fn refuse_all(arena: &mut Arena, syndrome: u8) -> (u32, WorkCompletion) {
    arena.post(1, SEND, 0, 8);
    let mut attempts = 0;
    loop {
        match attempt(arena) {
            Ok(packet) => refuse(arena, packet.psn, syndrome),
            Err(done) => return (attempts, done),
        }
        attempts += 1;
    }
}

/// Messages behind one that is fetched wait for it, however many. As there is a receive for each,
/// their sender gets no NAK, which could end its attempts.
pub fn messages_with_receives_wait() {
    const BEHIND: usize = 150;
    let mut arena = Arena::new();
    arena.receives(1 + BEHIND);
    let offer = arena.offer(&[8]);
    arena.send(&offer);
    for _ in 0..BEHIND {
        let packet = Packet { body: b"x".to_vec(), ..arena.packet(op::SEND) };
        arena.send(&packet);
    }
    let deadline = Instant::now() + limit();
    let mut done = Vec::new();
    while done.len() <= BEHIND && arena.state() != QpState::Error {
        assert!(Instant::now() < deadline, "{} messages came", done.len());
        arena.settle();
        assert!(arena.answers(NAK).is_empty(), "after {}", done.len());
        done.extend(arena.completions());
    }
    let lengths = done.iter().map(|done| (done.status, done.length));
    let expected = std::iter::once(8).chain([1; BEHIND]);
    assert!(lengths.eq(expected.map(|length| (WorkStatus::Success, length))), "{done:?}");
}

/// Without a receive at its peer a message is tried `rnr_retry` times more, each time after what
/// the peer's timer says.
pub fn attempts_without_a_receive() {
    // The last time is so long that no pause of this process hides attempts that come early.
    let long = Duration::from_micros(655_360);
    for (retry, code, time) in [(0, CODE, TIME), (1, CODE, TIME), (3, 0, long)] {
        let mut arena = arena(|attributes| attributes.rnr_retry = retry);
        let begin = Instant::now();
        let (attempts, done) = refuse_all(&mut arena, NOT_READY | code);
        assert_eq!(attempts, u32::from(retry) + 1);
        assert_eq!(
            (done.status, done.cause),
            (WorkStatus::NotReadyRetryExceeded, Cause::NoReceive)
        );
        assert!(begin.elapsed() >= time * u32::from(retry), "earlier than the timer says");
        assert_eq!(arena.state(), QpState::Error);
    }
}

/// With `rnr_retry` 7 it is tried without end, and with a timeout of 0 a peer without a queue pair.
pub fn attempts_without_end() {
    for (syndrome, timeout) in [(NOT_READY | 1, 14), (NO_QUEUE_PAIR, 0)] {
        let mut arena = arena(|attributes| attributes.timeout = timeout);
        arena.post(1, SEND, 0, 8);
        for _ in 0..20 {
            let packet = attempt(&mut arena).expect("one more attempt");
            refuse(&mut arena, packet.psn, syndrome);
        }
        let packet = attempt(&mut arena).expect("one more attempt");
        acknowledge(&mut arena, packet.psn);
        let done = attempt(&mut arena).expect_err("a completion");
        assert_eq!(done.status, WorkStatus::Success);
    }
}

/// A receiver without a receive tells its own timer code, and keeps the message of a sender that
/// waits without end.
pub fn the_receivers_timer() {
    let mut arena = arena(|attributes| attributes.rnr_timer = CODE);
    let packet = Packet { body: vec![1; 8], ..arena.packet(op::SEND) };
    arena.attack(&packet);
    let naks = arena.answers(NAK);
    let told: Vec<_> = naks.iter().map(|nak| (nak.syndrome, nak.psn)).collect();
    assert_eq!(told, [(NOT_READY | CODE, packet.psn)]);
    let patient = Packet { flags: super::super::arena::flag::PATIENT, ..packet };
    arena.attack(&patient);
    assert!(arena.answers(NAK).is_empty());
    arena.receives(1);
    assert_eq!(arena.completions().len(), 1);
}

/// A peer without a queue pair is tried for `timeout` × (`retry_cnt` + 1).
pub fn patience_with_a_peer() {
    // 4.096 us × 2^12.
    let timeout = Duration::from_nanos(4096) * (1 << 12);
    for retry in [0, 3] {
        let mut arena =
            arena(|attributes| (attributes.timeout, attributes.retry_count) = (12, retry));
        let begin = Instant::now();
        let (attempts, done) = refuse_all(&mut arena, NO_QUEUE_PAIR);
        assert!(begin.elapsed() >= timeout * (u32::from(retry) + 1), "given up early");
        assert!(attempts > 1);
        assert_eq!((done.status, done.cause), (WorkStatus::RetryExceeded, Cause::NoQueuePair));
    }
    // The next one is refused once more after its first timeout, and tries again. The patience is
    // so long that no pause of this process hides an early end.
    let timeout = Duration::from_nanos(4096) * (1 << 18);
    let mut arena = arena(|attributes| (attributes.timeout, attributes.retry_count) = (18, 7));
    arena.post(1, SEND, 0, 8);
    let first = attempt(&mut arena).expect("an attempt");
    refuse(&mut arena, first.psn, NO_QUEUE_PAIR);
    attempt(&mut arena).expect("one more attempt");
    let since_first_refusal = Instant::now();
    loop {
        let is_late = since_first_refusal.elapsed() > timeout;
        refuse(&mut arena, first.psn, NO_QUEUE_PAIR);
        if attempt(&mut arena).is_err() {
            assert!(since_first_refusal.elapsed() >= timeout * 8, "given up early");
            break;
        }
        if is_late {
            break;
        }
    }
}

/// The drained state is reached when the message that was refused has arrived, and what was posted
/// meanwhile starts after that state.
pub fn drained_after_the_last_attempt() {
    let mut arena = arena(|_| ());
    arena.post(1, SEND, 0, 8);
    let first = attempt(&mut arena).expect("an attempt");
    refuse(&mut arena, first.psn, NOT_READY | 1);
    let now = arena.victim.query(arena.number).unwrap().0;
    let mut new = Attributes { state: QpState::SendDrained, drained_event: true, ..now };
    let mask = Mask::STATE | Mask::DRAINED_EVENT;
    arena.victim.modify(arena.number, mask, &new).unwrap();
    arena.post(2, SEND, 0, 8);
    let events = arena.victim.events();
    for _ in 0..5 {
        let again = attempt(&mut arena).expect("one more attempt");
        assert_eq!(again.psn, first.psn);
        assert!(arena.victim.is_draining(arena.number));
        assert!(events.take(|_| true).is_empty(), "drained while a message is under way");
        refuse(&mut arena, first.psn, NOT_READY | 1);
    }
    let again = attempt(&mut arena).expect("one more attempt");
    assert_eq!(again.psn, first.psn);
    acknowledge(&mut arena, first.psn);
    assert_eq!(attempt(&mut arena).expect_err("a completion").id, 1);
    arena.settle();
    let told: Vec<_> = events.take(|_| true).iter().map(|event| event.kind).collect();
    assert_eq!(told, [EventKind::SendQueueDrained]);
    assert!(!arena.victim.is_draining(arena.number));
    assert!(arena.answers(op::SEND).is_empty(), "a request started in the drained state");
    new.state = QpState::ReadyToSend;
    arena.victim.modify(arena.number, Mask::STATE, &new).unwrap();
    let second = attempt(&mut arena).expect("the second message");
    assert_eq!(second.psn, first.psn.wrapping_add(1));
}
