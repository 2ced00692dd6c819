//! Lies in the heads of messages.

use super::arena::{Arena, MEMORY, Packet, RECEIVE, RECEIVES, flag, op};
use bellwire_rdma::{Access, Cause, Operation, QpState, WorkStatus};

const SEND: Operation = Operation::Send { immediate: None, invalidate: None };

/// A message that the victim's queue pair takes.
fn message(arena: &mut Arena, body: &[u8]) -> Packet {
    Packet { body: body.to_vec(), ..arena.packet(op::SEND) }
}

/// The next message is taken as if nothing had happened.
fn goes_on(arena: &mut Arena) {
    arena.receives(1);
    let packet = message(arena, b"good");
    arena.attack(&packet);
    let done = arena.completions();
    let last = done.last().expect("a completion");
    assert_eq!((last.status, last.length), (WorkStatus::Success, 4), "{done:?}");
    arena.is_unharmed();
}

/// Messages, questions for keys and news of failures count only if they come from the function and
/// from the queue pair that ours is connected to.
pub fn packets_of_strangers() {
    let mut arena = Arena::new();
    arena.receives(2);
    let key = arena.register(0, 64, Access::LOCAL_WRITE | Access::REMOTE_WRITE);
    let first = arena.packet(op::SEND).psn;
    for opcode in [op::SEND, op::RESOLVE, op::FATAL] {
        let packet = Packet { opcode, psn: first, word: key, ..arena.packet(op::PROBE) };
        // The right number, from another function.
        arena.send_as_stranger(&packet);
        // The right function, another queue pair.
        arena.attack(&Packet { from: packet.from ^ 1, ..packet.clone() });
        // No queue pair of the victim's.
        arena.attack(&Packet { to: packet.to ^ 1 << 16, ..packet.clone() });
        arena.attack(&Packet { to: packet.to & 0xff_0000, ..packet });
        assert!(arena.completions().is_empty(), "opcode {opcode}");
        assert_eq!(arena.state(), QpState::ReadyToSend, "opcode {opcode}");
    }
    assert!(arena.answers(op::RESOLVED).iter().all(|answer| answer.body.is_empty()));
    // The number that was used above is still the next.
    let packet = Packet { psn: first, ..arena.packet(op::SEND) };
    arena.attack(&packet);
    assert_eq!(arena.completions().len(), 1);
    arena.is_unharmed();
}

/// A failed queue pair takes nothing, and tells nothing.
pub fn packets_for_a_failed_queue_pair() {
    let mut arena = Arena::new();
    let key = arena.register(0, 64, Access::LOCAL_WRITE | Access::REMOTE_WRITE);
    let fatal = arena.packet(op::FATAL);
    arena.attack(&fatal);
    assert_eq!(arena.state(), QpState::Error);
    assert!(arena.resolve(key).is_none());
    arena.is_unharmed();
}

/// Opcodes that do not exist are dropped.
pub fn unknown_opcodes() {
    let mut arena = Arena::new();
    arena.receives(1);
    let packet = message(&mut arena, b"good");
    for opcode in [0, 13, 14, 15] {
        arena.send(&Packet { opcode, ..packet.clone() });
    }
    assert!(arena.completions().is_empty());
    arena.attack(&packet);
    assert_eq!(arena.completions().len(), 1);
    goes_on(&mut arena);
}

/// A peer of another build is told so, and its queue pairs fail by a cause of their own. Its
/// packets are not read as if they were of this build; those of strangers harm nobody.
pub fn packets_of_another_build() {
    const OTHER: u8 = 0x30;
    let mut arena = Arena::new();
    arena.receives(1);
    let packet = message(&mut arena, b"other");
    arena.send_as_stranger(&Packet { opcode: op::SEND ^ OTHER, ..packet.clone() });
    arena.until("the stranger is told", |arena| arena.answers_to_nobody(true) == 1);
    arena.is_unharmed();
    arena.post(7, SEND, 0, 8);
    // One that wants no answer gets none, so that two builds do not answer each other for ever.
    arena.send(&Packet { opcode: op::LEAVE ^ OTHER, ..packet.clone() });
    arena.until("the queue pair fails", |arena| arena.state() == QpState::Error);
    arena.send(&Packet { opcode: op::SEND ^ OTHER, ..packet });
    arena.until("the attacker is told", |arena| arena.answers_to_nobody(false) > 0);
    assert_eq!(arena.answers_to_nobody(false), 1);
    let done = arena.completions();
    let all: Vec<_> = done.iter().map(|done| (done.id, done.status, done.cause)).collect();
    let flushed = (0, WorkStatus::Flushed, Cause::Flushed);
    assert_eq!(all, [(7, WorkStatus::RemoteOperation, Cause::OtherBuild), flushed]);
}

/// Packets shorter than a head are dropped.
pub fn short_packets() {
    let mut arena = Arena::new();
    arena.receives(1);
    let packet = message(&mut arena, b"");
    let bytes = packet.bytes();
    for length in 0..bytes.len() {
        arena.send_bytes(&bytes[..length]);
    }
    assert!(arena.completions().is_empty());
    arena.attack(&packet);
    assert_eq!(arena.completions().len(), 1);
    goes_on(&mut arena);
}

/// The messages of a list are taken up to the one that is cut, and none is longer than its receive.
pub fn lists_that_are_cut() {
    let record = |length: u16, body: &[u8]| {
        let mut record = length.to_le_bytes().to_vec();
        record.extend([0, 0]);
        record.extend(body);
        record.resize(record.len().next_multiple_of(4), 0);
        record
    };
    let whole = [record(3, b"one"), record(0, b""), record(5, b"three")].concat();
    for cut in
        [record(9, b"cut"), record(u16::MAX, b"cut"), vec![3, 0], record(4, b"four")[..7].into()]
    {
        let mut arena = Arena::new();
        arena.receives(8);
        let first = arena.packet(op::SEND).psn;
        let body = [&whole[..], &cut].concat();
        let packet = Packet { psn: first, body, ..arena.packet(op::LIST) };
        arena.attack(&packet);
        let done = arena.completions();
        let lengths: Vec<u32> = done.iter().map(|done| done.length).collect();
        assert_eq!(lengths, [3, 0, 5], "{done:?}");
        assert_eq!(arena.byte(RECEIVES + 2 * RECEIVE), b't');
        // The sender goes on behind them.
        let psn = first.wrapping_add(3);
        let packet = Packet { psn, body: b"next".into(), ..arena.packet(op::SEND) };
        arena.attack(&packet);
        assert_eq!(arena.completions().len(), 1);
        arena.is_unharmed();
    }
    let mut arena = Arena::new();
    arena.receives(8);
    let first = arena.packet(op::SEND).psn;
    let body = [record(3, b"one"), record(RECEIVE as u16 + 1, &[7; RECEIVE + 1]), whole].concat();
    let packet = Packet { psn: first, body, ..arena.packet(op::LIST) };
    arena.attack(&packet);
    let done = arena.completions();
    assert_eq!((done[0].status, done[1].status), (WorkStatus::Success, WorkStatus::LocalLength));
    assert!(done[2..].iter().all(|done| done.status == WorkStatus::Flushed), "{done:?}");
    assert_eq!(arena.byte(RECEIVES + RECEIVE), 0);
    arena.is_unharmed();
}

/// A repeated message is taken once, and one from the future is not taken.
pub fn wrong_numbers() {
    let mut arena = Arena::new();
    arena.receives(4);
    let packet = message(&mut arena, b"once");
    arena.attack(&packet);
    assert_eq!(arena.completions().len(), 1);
    for psn in [
        packet.psn,
        packet.psn.wrapping_sub(1),
        packet.psn.wrapping_add(2),
        packet.psn.wrapping_add(1 << 31),
        packet.psn ^ 1 << 24,
    ] {
        arena.attack(&Packet { psn, ..packet.clone() });
        assert!(arena.completions().is_empty(), "psn {psn:x} after {:x}", packet.psn);
    }
    goes_on(&mut arena);
}

/// A message that does not fit fails, and the byte behind its receive stays.
pub fn a_message_longer_than_its_receive() {
    let mut arena = Arena::new();
    arena.receives(1);
    let packet = message(&mut arena, &[7; RECEIVE + 1]);
    arena.attack(&packet);
    let done = arena.completions();
    assert_eq!(done[0].status, WorkStatus::LocalLength, "{done:?}");
    assert_eq!(arena.byte(RECEIVES + RECEIVE), 0);
    assert_eq!(arena.state(), QpState::Error);
    arena.is_unharmed();
}

/// The victim keeps at most 64 messages that find no receive.
pub fn a_flood_without_receives() {
    let mut arena = Arena::new();
    for _ in 0..200 {
        let packet = Packet { flags: flag::PATIENT, ..message(&mut arena, b"x") };
        arena.send(&packet);
    }
    arena.settle();
    arena.receives(200);
    let done = arena.completions();
    assert_eq!(done.len(), 64, "{:?}", done.last());
    // Floods of questions end as well.
    for _ in 0..5000 {
        let packet = Packet { word: 1, ..arena.packet(op::RESOLVE) };
        arena.send(&packet);
    }
    arena.is_unharmed();
}

/// Lengths whose sum wraps, or is longer than the receive, are refused; the memory stays.
pub fn offers_that_lie_about_lengths() {
    for lengths in [
        &[1 << 63, 1 << 63, 8][..],
        &[u64::MAX],
        &[RECEIVE as u64 + 1],
        &[60, 60],
        &[u64::MAX, 1, 1, RECEIVE as u64 - 2],
    ] {
        let mut arena = Arena::new();
        arena.receives(1);
        let packet = arena.offer(lengths);
        arena.attack(&packet);
        let done = arena.completions();
        assert_eq!(done[0].status, WorkStatus::LocalLength, "{lengths:?}: {done:?}");
        assert_eq!(arena.state(), QpState::Error);
        arena.is_unharmed();
    }
}

/// An offer names memory of the peer alone: the victim fetches from nobody else.
pub fn an_offer_of_foreign_memory() {
    let mut arena = Arena::new();
    arena.receives(1);
    let (_region, key) = arena.stranger.region(64);
    let body = bellwire::RemoteKey { length: 32, ..key }.to_bytes().to_vec();
    let packet = Packet { body, ..arena.packet(op::OFFER) };
    arena.attack(&packet);
    assert!(arena.completions().is_empty());
    let refusals = arena.answers(6);
    assert!(refusals.iter().any(|nak| nak.psn == packet.psn), "no refusal");
    arena.is_unharmed();
}

/// Lists that are empty, cut or too long are refused.
pub fn offers_that_are_no_lists() {
    let mut arena = Arena::new();
    arena.receives(1);
    let good = arena.offer(&[1]);
    let many = arena.offer(&[0; 65]).body;
    let cut = good.body[..23].to_vec();
    let longer = [&good.body[..], &[0]].concat();
    for body in [Vec::new(), cut, longer, many] {
        let length = body.len();
        arena.attack(&Packet { body, ..good.clone() });
        assert!(arena.completions().is_empty(), "{length} bytes");
        assert!(arena.answers(6).iter().any(|nak| nak.syndrome == 3), "{length} bytes");
    }
    arena.is_unharmed();
}

/// A write with immediate value that names memory which the peer may not write is refused: its
/// length would be in the receiver's completion.
pub fn immediates_that_lie_about_lengths() {
    let write = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
    let read = Access::LOCAL_WRITE | Access::REMOTE_READ;
    // Which region, where in it, how long.
    for (region, at, length) in [
        (0, 0, 65),
        (0, 64, 1),
        (0, u64::MAX, 2),
        (0, 8, u64::MAX),
        (0, 0, u64::from(u32::MAX)),
        (1, 0, 8),
        (2, 0, 8),
        (3, 0, 8),
    ] {
        let mut arena = Arena::new();
        let other = arena.victim.create_domain().unwrap();
        let keys = [
            arena.register(0, 64, write),
            arena.register(0, 64, read),
            arena.register_in(other, 0, 64, write),
            0x1234_5678,
        ];
        arena.receives(2);
        let immediate = |arena: &mut Arena, key: u32, at: u64, length: u64| {
            let mut body = key.to_le_bytes().to_vec();
            body.extend(arena.address(0).wrapping_add(at).to_le_bytes());
            let (flags, extra) = (flag::IMMEDIATE, length);
            Packet { flags, word: 5, extra, body, ..arena.packet(op::WRITE_IMMEDIATE) }
        };
        let packet = immediate(&mut arena, keys[0], 0, 64);
        arena.attack(&packet);
        let done = arena.completions();
        assert_eq!((done[0].length, done[0].word), (64, 5), "{done:?}");
        let packet = immediate(&mut arena, keys[region], at, length);
        arena.attack(&packet);
        let done = arena.completions();
        assert!(done.iter().all(|done| done.status == WorkStatus::Flushed), "{done:?}");
        assert_eq!(arena.state(), QpState::Error);
        arena.is_unharmed();
    }
    // A body of another length, and none.
    for body in [Vec::new(), vec![0; 11], vec![0; MEMORY / 128]] {
        let mut arena = Arena::new();
        arena.receives(1);
        let packet = Packet { extra: 8, body, ..arena.packet(op::WRITE_IMMEDIATE) };
        arena.attack(&packet);
        assert_eq!(arena.state(), QpState::Error);
        arena.is_unharmed();
    }
}
