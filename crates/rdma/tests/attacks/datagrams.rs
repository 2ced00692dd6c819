//! Lies in datagrams.

use super::arena::{Arena, Packet, Q_KEY, op};
use bellwire_rdma::{Access, Attributes, Mask, QpState, Service, WorkStatus};

fn datagram(arena: &mut Arena) -> Packet {
    Packet { word: Q_KEY, body: b"12345678".to_vec(), ..arena.packet(op::DATAGRAM) }
}

/// A datagram needs the Q_Key, comes from the function that its sender's number names, fits, and
/// finds a queue pair that receives.
pub fn datagrams_that_nobody_may_send() {
    let mut arena = Arena::with(Service::Datagram, Access::empty());
    arena.receives(1);
    let good = datagram(&mut arena);
    for word in [Q_KEY ^ 1, 0, !Q_KEY, Q_KEY | 1 << 31] {
        arena.attack(&Packet { word, ..good.clone() });
    }
    arena.attack(&Packet { from: good.from ^ 1 << 16, ..good.clone() });
    arena.send_as_stranger(&good);
    // Other kinds of packets do nothing to datagrams.
    for opcode in [op::SEND, op::RESOLVE, op::FATAL, op::ACK] {
        arena.attack(&Packet { opcode, ..good.clone() });
    }
    assert!(arena.completions().is_empty());
    assert_eq!(arena.state(), QpState::ReadyToSend);
    arena.attack(&good);
    let done = arena.completions();
    assert_eq!((done[0].status, done[0].length), (WorkStatus::Success, 48), "{done:?}");
    // The queue pair has no receive in this state.
    let (number, now) = (arena.number, arena.victim.query(arena.number).unwrap().0);
    let reset = Attributes { state: QpState::Reset, ..now };
    arena.victim.modify(number, Mask::STATE, &reset).unwrap();
    let init = Attributes { state: QpState::Init, ..now };
    let mask = Mask::STATE | Mask::PKEY_INDEX | Mask::PORT | Mask::QKEY;
    arena.victim.modify(number, mask, &init).unwrap();
    arena.receives(1);
    arena.attack(&good);
    assert!(arena.completions().is_empty());
    arena.is_unharmed();
}

/// A connection takes no datagrams, whatever key it has.
pub fn datagrams_for_a_connection() {
    let mut arena = Arena::new();
    arena.receives(1);
    let good = datagram(&mut arena);
    arena.attack(&Packet { word: 0, ..good.clone() });
    arena.attack(&good);
    assert!(arena.completions().is_empty());
    assert_eq!(arena.state(), QpState::ReadyToSend);
    arena.is_unharmed();
}
