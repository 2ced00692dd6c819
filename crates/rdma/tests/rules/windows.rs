//! Windows open a part of a region to peers, and only that, for as long as they are bound.

use super::super::arena::{Arena, Packet, flag, op};
use bellwire::Status;
use bellwire_rdma::{Access, Binding, Cause, Operation, Refusal, WorkStatus};

const REGION: Access = Access::LOCAL_WRITE.union(Access::WINDOW_BIND);
const WRITE: Access = Access::REMOTE_WRITE;

/// Binds a window, and returns the completion's status and cause.
fn bind(arena: &mut Arena, window: u32, key: u32, to: Binding) -> (WorkStatus, Cause) {
    arena.post_empty(1, Operation::BindWindow { window, key, to });
    let done = arena.completions();
    assert_eq!(done.len(), 1, "{done:?}");
    (done[0].status, done[0].cause)
}

const BOUND: (WorkStatus, Cause) = (WorkStatus::Success, Cause::None);

/// A key of a window is good until the window is bound again, unbound, or invalidated by its owner
/// or its peer. So is what a peer was given by that key.
pub fn keys_of_a_window() {
    let mut arena = Arena::new();
    let region = arena.register(0, 256, REGION);
    let to = Binding { region, address: arena.address(64), length: 64, access: WRITE };
    let window = arena.victim.allocate_window(arena.domain).unwrap();
    let mut key = window;
    let is_dead = |arena: &mut Arena, old: u32, given| {
        assert!(arena.resolve(old).is_none(), "an old key is good");
        assert_eq!(arena.put(given, 0, b"no"), Status::WrongKey);
    };
    let mut given = None;
    for end in ["bound", "bound again", "unbound", "invalidated", "invalidated by the peer"] {
        let (old, before) = (key, given);
        key = window & !0xff | (key.wrapping_add(1) & 0xff);
        assert_eq!(bind(&mut arena, old, key, to), BOUND);
        if let Some(before) = before {
            is_dead(&mut arena, old, before);
        }
        let device = arena.resolve(key).expect("the new key is good");
        assert_eq!(arena.put(device, 0, b"yes"), Status::Success);
        assert_eq!(arena.byte(64), b'y');
        match end {
            "unbound" => {
                assert_eq!(bind(&mut arena, key, key, Binding { length: 0, ..to }), BOUND);
            }
            "invalidated" => {
                arena.post_empty(1, Operation::LocalInvalidate { key });
                assert_eq!(arena.completions()[0].status, WorkStatus::Success);
            }
            "invalidated by the peer" => {
                arena.receives(1);
                let flags = flag::INVALIDATE | flag::PATIENT;
                let packet = Packet { flags, word: key, ..arena.packet(op::SEND) };
                arena.attack(&packet);
                assert_eq!(arena.completions()[0].word, key);
            }
            _ => {
                given = Some(device);
                continue;
            }
        }
        is_dead(&mut arena, key, device);
        given = None;
    }
    arena.victim.deregister(key).unwrap();
    arena.victim.deregister(region).unwrap();
    arena.is_unharmed();
}

/// A window needs a region of its domain that lets windows be bound, and that may be written if the
/// window may. The region cannot end before the window.
pub fn what_a_window_needs() {
    let refused = |cause| (WorkStatus::WindowBind, cause);
    for (is_own, access, expected) in [
        (true, Access::LOCAL_WRITE, refused(Cause::NotPermitted)),
        (true, Access::WINDOW_BIND, refused(Cause::NotPermitted)),
        (false, REGION, refused(Cause::LocalKey)),
        (true, REGION, BOUND),
    ] {
        let mut arena = Arena::new();
        let foreign = arena.victim.create_domain().unwrap();
        let domain = if is_own { arena.domain } else { foreign };
        let region = arena.register_in(domain, 0, 256, access);
        let window = arena.victim.allocate_window(arena.domain).unwrap();
        let to = Binding { region, address: arena.address(0), length: 64, access: WRITE };
        assert_eq!(bind(&mut arena, window, window ^ 1, to), expected, "{is_own} {access:?}");
        if expected == BOUND {
            let early = arena.victim.deregister(region);
            assert!(matches!(early, Err(Refusal::Busy(_))), "{early:?}");
            arena.victim.deregister(window ^ 1).unwrap();
            arena.victim.deregister(region).unwrap();
        }
    }
}
