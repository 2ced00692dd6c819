//! Lies in answers to what the victim has sent.

use super::arena::{Arena, FIRST, Packet, flag, op};
use bellwire_rdma::{Operation, QpState, WorkStatus};

const SEND: Operation = Operation::Send { immediate: None, invalidate: None };

/// An acknowledgement of messages that were not sent is none.
pub fn acknowledgements_of_what_was_not_sent() {
    let mut arena = Arena::new();
    arena.post(1, SEND, 0, 8);
    for ahead in [2, 1 << 20, i32::MAX as u32] {
        let acked = FIRST.wrapping_add(ahead);
        let packet = Packet { flags: flag::ACKS, acked, ..arena.packet(op::ACK) };
        arena.attack(&packet);
        let done = arena.completions();
        let failed = |status| status == WorkStatus::RetryExceeded || status == WorkStatus::Flushed;
        assert!(done.iter().all(|done| failed(done.status)), "ahead {ahead}: {done:?}");
    }
    // A true one counts, unless the queue pair's patience is over.
    let acked = FIRST.wrapping_add(1);
    let packet = Packet { flags: flag::ACKS, acked, ..arena.packet(op::ACK) };
    arena.attack(&packet);
    arena.is_unharmed();
}

const WRITE: Operation = Operation::Write { address: 0, key: 0x0001_0001, immediate: None };
const KEY: u32 = 0x0001_0001;

/// An answer about memory of the attacker, or of anybody.
fn answer(arena: &mut Arena, key: bellwire::RemoteKey) -> Packet {
    let mut body = key.to_bytes().to_vec();
    body.extend(0u64.to_le_bytes());
    body.extend(14u32.to_le_bytes());
    Packet { word: KEY, body, ..arena.packet(op::RESOLVED) }
}

/// The victim remembers no key that it did not ask for: it asks when it needs one.
pub fn answers_that_nobody_asked_for() {
    let mut arena = Arena::new();
    let (_region, key) = arena.attacker.region(64);
    let packet = answer(&mut arena, key);
    arena.attack(&packet);
    arena.post(1, WRITE, 0, 8);
    arena.settle();
    let asked = arena.answers(op::RESOLVE);
    assert!(asked.len() == 1 && asked[0].word == KEY, "it asked {} times", asked.len());
    // Answers about another key, and answers that are cut, are none.
    arena.attack(&Packet { word: KEY ^ 1, ..packet.clone() });
    assert!(arena.completions().is_empty());
    arena.attack(&packet);
    let done = arena.completions();
    assert_eq!(done[0].status, WorkStatus::Success, "{done:?}");
    arena.is_unharmed();
}

/// A peer names its own memory only: the victim does not write to others at its word.
pub fn an_answer_with_a_foreign_key() {
    let mut arena = Arena::new();
    let (region, key) = arena.stranger.region(64);
    arena.post(1, Operation::Write { address: 0, key: KEY, immediate: None }, 4096, 8);
    arena.settle();
    let packet = answer(&mut arena, key);
    arena.attack(&packet);
    let done = arena.completions();
    assert_eq!(done[0].status, WorkStatus::RemoteAccess, "{done:?}");
    assert_eq!(arena.state(), QpState::Error);
    let mut bytes = [1; 64];
    region.view().read(0, &mut bytes);
    assert_eq!(bytes, [0; 64]);
    for body in [Vec::new(), vec![0; 36], vec![1; 35], vec![0xff; 36]] {
        let mut arena = Arena::new();
        arena.post(1, WRITE, 0, 8);
        arena.settle();
        let packet = Packet { word: KEY, body, ..arena.packet(op::RESOLVED) };
        arena.attack(&packet);
        assert_eq!(arena.completions()[0].status, WorkStatus::RemoteAccess);
        arena.is_unharmed();
    }
}
