//! Lies about keys, rights and bounds.

use super::arena::{Arena, MEMORY, Packet, RECEIVES, attributes, flag, op};
use bellwire::Status;
use bellwire_rdma::{Access, Mask, QpState, Service, WorkStatus};

const READ_WRITE: Access =
    Access::LOCAL_WRITE.union(Access::REMOTE_READ).union(Access::REMOTE_WRITE);

/// A key whose random bits are wrong gives nothing.
pub fn an_unknown_key() {
    let mut arena = Arena::new();
    let key = arena.register(0, 64, READ_WRITE);
    assert!(arena.resolve(key).is_some(), "the right key");
    for wrong in [key ^ 1, key ^ 0x8000, key ^ 1 << 31, key.wrapping_add(1 << 16)] {
        assert!(arena.resolve(wrong).is_none(), "{wrong:x}");
    }
    arena.is_unharmed();
}

/// A key of a domain that is not the queue pair's gives nothing.
pub fn a_key_of_another_domain() {
    let mut arena = Arena::new();
    let other = arena.victim.create_domain().unwrap();
    let key = arena.register_in(other, 0, 64, READ_WRITE);
    assert!(arena.resolve(key).is_none());
    arena.is_unharmed();
}

/// A region that may be read is not written, and one that is for its owner alone gives nothing.
pub fn rights_of_the_region() {
    let mut arena = Arena::new();
    let local = arena.register(0, 64, Access::LOCAL_WRITE);
    assert!(arena.resolve(local).is_none());
    let key = arena.register(0, 64, Access::LOCAL_WRITE | Access::REMOTE_READ);
    let granted = arena.resolve(key).expect("it may be read");
    assert_eq!(arena.put(granted, 0, b"bad"), Status::NotPermitted);
    assert_eq!(arena.byte(0), 0);
    // A window has less than its region.
    let whole = arena.register(0, 64, READ_WRITE | Access::WINDOW_BIND);
    let window = arena.window(whole, 0, 64, Access::REMOTE_READ);
    let granted = arena.resolve(window).expect("it may be read");
    assert_eq!(arena.put(granted, 0, b"bad"), Status::NotPermitted);
    assert_eq!(arena.byte(0), 0);
    arena.is_unharmed();
}

/// The queue pair's flags hold for regions that allow more.
pub fn rights_of_the_queue_pair() {
    let mut arena = Arena::with(Service::ReliableConnection, Access::REMOTE_READ);
    let key = arena.register(0, 64, READ_WRITE);
    let granted = arena.resolve(key).expect("it may be read");
    assert_eq!(arena.put(granted, 0, b"bad"), Status::NotPermitted);
    assert_eq!(arena.byte(0), 0);
    arena.is_unharmed();
}

/// Nothing before, behind or around a region or a window is written, whatever the key claims.
pub fn bounds_of_a_region_and_a_window() {
    let mut arena = Arena::new();
    let key = arena.register(256, 256, READ_WRITE | Access::WINDOW_BIND);
    let window = arena.window(key, 300, 100, Access::REMOTE_WRITE);
    for (key, length) in [(key, 256), (window, 100)] {
        let granted = arena.resolve(key).expect("a key");
        for offset in [length, length - 1, length + 1000, u64::MAX - 2, 1 << 63] {
            let status = arena.put(granted, offset, b"xx");
            assert_eq!(status, Status::OutOfBounds, "offset {offset} of {length}");
        }
        assert_eq!(arena.put(granted, length - 2, b"ok"), Status::Success);
    }
    assert_eq!((arena.byte(510), arena.byte(511), arena.byte(398)), (b'o', b'k', b'o'));
    let inside = [398, 399, 510, 511];
    let harmed = (0..MEMORY).find(|&at| arena.byte(at) != 0 && !inside.contains(&at));
    assert_eq!(harmed, None, "a byte was written");
    arena.is_unharmed();
}

/// What a peer was granted ends with the connection: by failure, by the program, and by its end.
pub fn a_grant_of_a_failed_queue_pair() {
    for way in 0..4 {
        let mut arena = Arena::new();
        let key = arena.register(0, 64, READ_WRITE);
        let granted = arena.resolve(key).expect("a key");
        assert_eq!(arena.put(granted, 0, b"1"), Status::Success);
        let number = arena.number;
        let peer = arena.attacker.queue_pair(7);
        let host = arena.attacker.address.node.into();
        match way {
            0 => {
                let fatal = arena.packet(op::FATAL);
                arena.attack(&fatal);
                assert_eq!(arena.state(), QpState::Error);
            }
            1 | 2 => {
                let state = if way == 1 { QpState::Error } else { QpState::Reset };
                let new =
                    bellwire_rdma::Attributes { state, ..attributes(Access::empty(), host, peer) };
                arena.victim.modify(number, Mask::STATE, &new).unwrap();
            }
            _ => arena.victim.destroy_queue_pair(number).unwrap(),
        }
        assert_eq!(arena.put(granted, 0, b"2"), Status::WrongKey, "way {way}");
        assert_eq!(arena.byte(0), b'1');
        arena.victim.deregister(key).unwrap();
        arena.is_unharmed();
    }
}

/// Rights that the program takes from a connected queue pair are gone, and the others stay.
pub fn a_grant_that_was_taken_back() {
    let mut arena = Arena::new();
    let key = arena.register(0, 64, READ_WRITE);
    let granted = arena.resolve(key).expect("a key");
    assert_eq!(arena.put(granted, 0, b"1"), Status::Success);
    let (number, host) = (arena.number, arena.attacker.address.node.into());
    let new = bellwire_rdma::Attributes {
        state: QpState::ReadyToSend,
        ..attributes(Access::REMOTE_READ, host, arena.attacker.queue_pair(7))
    };
    arena.victim.modify(number, Mask::STATE | Mask::ACCESS, &new).unwrap();
    assert_eq!(arena.put(granted, 0, b"2"), Status::WrongKey);
    let granted = arena.resolve(key).expect("it may be read");
    assert_eq!(arena.put(granted, 0, b"2"), Status::NotPermitted);
    assert_eq!(arena.byte(0), b'1');
    arena.is_unharmed();
}

/// The receive of a message with an invalidation that is refused.
fn refused(arena: &mut Arena, key: u32) {
    arena.receives(1);
    let packet = arena.packet(op::SEND);
    let packet = Packet { flags: flag::INVALIDATE, word: key, ..packet };
    arena.attack(&packet);
    let done = arena.completions();
    assert_eq!(done[0].status, WorkStatus::LocalAccess, "{done:?}");
    assert_eq!(arena.state(), QpState::Error);
}

/// A region is not invalidated by a message, and stays open to its owner.
pub fn a_region_that_is_invalidated() {
    let mut arena = Arena::new();
    let key = arena.register(0, 64, READ_WRITE);
    refused(&mut arena, key);
    assert!(arena.victim.region(key).is_some());
    arena.is_unharmed();
    // Its own list is a part of a region, and no message took that.
    assert_eq!(arena.byte(RECEIVES), 0);
}

/// A window of another domain stays bound.
pub fn a_foreign_window_that_is_invalidated() {
    let mut arena = Arena::new();
    let other = arena.victim.create_domain().unwrap();
    let window = arena.victim.allocate_window(other).unwrap();
    refused(&mut arena, window);
    refused_unknown();
    arena.is_unharmed();
}

/// A key that names nothing is not invalidated either.
fn refused_unknown() {
    let mut arena = Arena::new();
    refused(&mut arena, 0xffff_ffff);
}
