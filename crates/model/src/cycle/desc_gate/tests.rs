//! Tests of the gate of doorbells and descriptors.

use super::*;

const GET: u8 = Primitive::Get.code();
const PUT: u8 = Primitive::Put.code();

/// A word that what takes descriptors apart takes.
fn word(word_primitive: u8, word_last: bool) -> In {
    In { word_valid: true, word_primitive, word_last, to_ready: true, ..In::default() }
}

/// All functions have doorbells, and as much room.
fn waiting(room: [u8; FUNCTIONS]) -> In {
    In { waits: [true; FUNCTIONS], room, ..In::default() }
}

/// Sizes that gates cannot have are refused, and the least and greatest ones are not.
#[test]
fn sizes_are_bounded() {
    let builds =
        |functions, gets| std::panic::catch_unwind(|| DescGate::new(functions, gets)).is_ok();
    assert!(builds(1, 1) && builds(8, 4));
    assert!(!builds(0, 1) && !builds(9, 1) && !builds(1, 0));
}

/// A function's doorbells wait while those that were taken may need all of its places. Others go
/// on. An operation and a report that get their place need none any more.
#[test]
fn a_function_without_places_holds_up_itself() {
    let mut gate = DescGate::new(3, 1);
    let mut room = [2, 1, 0, 9, 9, 9, 9, 9];
    let mut may_ring = |input: In| gate.cycle(input).may_ring;
    let only = |of: &[usize]| std::array::from_fn(|at| of.contains(&at));
    let take = |take_function, room| In { take: true, take_function, ..waiting(room) };
    assert_eq!(may_ring(take(0, room)), only(&[0, 1]));
    assert_eq!(may_ring(take(1, room)), only(&[0, 1]));
    assert_eq!(may_ring(take(0, room)), only(&[0]));
    assert_eq!(may_ring(waiting(room)), only(&[]));
    // Both descriptors are let in, and get their places.
    may_ring(word(PUT, true));
    may_ring(word(PUT, true));
    may_ring(In { move_valid: true, move_function: 0, ..In::default() });
    room[0] = 1;
    assert_eq!(may_ring(waiting(room)), only(&[]));
    may_ring(In { report_valid: true, report_function: 1, ..In::default() });
    room[1] = 0;
    assert_eq!(may_ring(waiting(room)), only(&[]));
    room = [2, 1, 1, 9, 9, 9, 9, 9];
    assert_eq!(may_ring(In { waits: only(&[0, 2]), ..waiting(room) }), only(&[0, 2]));
    assert_eq!(may_ring(waiting(room)), only(&[0, 1, 2]));
}

/// A GET goes on only if its packer has a place for it, which is free when it has left. Its words
/// behind the first one do not wait, and neither do other descriptors.
#[test]
fn gets_wait_for_a_place() {
    let mut gate = DescGate::new(1, 2);
    gate.claims[0] = 20;
    let mut goes = |input: In| {
        let out = gate.cycle(input);
        assert_eq!(out.to_valid, input.word_valid && (out.word_ready || !input.to_ready));
        out.word_ready
    };
    let reach = In { move_valid: true, move_get: true, ..In::default() };
    let busy = In { to_ready: false, ..word(GET, true) };
    for _ in 0..3 {
        assert!(!goes(busy), "a word that is not taken is not let in");
    }
    assert!(goes(word(GET, true)));
    assert!(goes(word(GET, false)));
    assert!(goes(word(GET, false)));
    assert!(goes(word(GET, true)));
    assert!(!goes(word(GET, true)));
    assert!(goes(word(PUT, false)));
    assert!(goes(word(GET, true)), "it is no first word");
    assert!(goes(In { word_void: true, ..word(GET, true) }));
    goes(reach);
    assert!(!goes(word(GET, true)));
    goes(In { credit: true, ..In::default() });
    assert!(goes(word(GET, true)));
    assert!(!goes(word(GET, true)));
    goes(In { credit: true, ..reach });
    goes(reach);
    assert!(goes(word(GET, true)));
    assert!(!goes(word(GET, true)));
}

/// A GET that is refused gives its place back, once all that was let in has a place for its event.
#[test]
fn refused_gets_give_their_places_back() {
    let mut gate = DescGate::new(2, 2);
    gate.claims = vec![4, 4];
    let mut goes = |input: In| gate.cycle(input).word_ready;
    let report = In { report_valid: true, report_function: 1, ..In::default() };
    assert!(goes(word(GET, true)) && goes(word(PUT, true)) && goes(word(GET, true)));
    assert!(!goes(word(GET, true)));
    goes(report);
    assert!(!goes(word(GET, true)));
    goes(In { move_valid: true, move_get: true, ..In::default() });
    assert!(!goes(word(GET, true)));
    // The third one, whatever it was.
    goes(report);
    assert!(goes(word(GET, true)), "one GET holds a place, and one was refused");
    assert!(!goes(word(GET, true)));
    goes(In { credit: true, ..In::default() });
    assert!(goes(word(GET, false)));
    // In the cycle in which the last one has its place, another one may be let in.
    goes(report);
    assert!(goes(word(PUT, true)), "the rest of a descriptor");
    assert!(!goes(In { ..word(GET, true) }));
    assert!(goes(In { ..word(PUT, true) }));
}
