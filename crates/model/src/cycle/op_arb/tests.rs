//! Tests of the arbiter of operations.

use super::*;

/// The extract of descriptors from here.
const LOCAL: usize = 0;

/// All takers are ready, and nothing is offered.
fn idle() -> In {
    In {
        move_says: [[1; SAYS_WORDS], [2; SAYS_WORDS]],
        read_function: [6, 7],
        read_address: [0x100, 0x200],
        read_bytes: [10, 20],
        data_to: [3, 4],
        data: [[5, 6], [7, 8]],
        place_ready: true,
        place: 9,
        pack_ready: true,
        ask_ready: true,
        put_ready: true,
        get_ready: true,
        get_data_ready: true,
        ..In::default()
    }
}

/// These offer a move of an operation of so many bytes.
fn moves(mut input: In, of: &[usize], last: bool, total: u64) -> In {
    for &each in of {
        (input.move_valid[each], input.move_last[each]) = (true, last);
        input.move_total[each] = total;
    }
    input
}

/// These offer a read.
fn reads(mut input: In, of: &[usize], ends: bool) -> In {
    for &each in of {
        (input.read_valid[each], input.read_ends[each]) = (true, ends);
    }
    input
}

/// These offer a beat.
fn beats(mut input: In, of: &[usize], ends: bool) -> In {
    for &each in of {
        (input.data_valid[each], input.data_ends[each]) = (true, ends);
    }
    input
}

/// Whose move, read and beat leave in a cycle.
type Left = [Option<usize>; 3];

/// What leaves in a cycle if all that is offered is taken.
fn left(arb: &mut OpArb, input: In) -> Left {
    let out = arb.cycle(input);
    let taken = |valid: [bool; 2], ready: [bool; 2]| (0..2).find(|&at| valid[at] && ready[at]);
    let of_move = taken(input.move_valid, out.move_ready);
    let of_read = taken(input.read_valid, out.read_ready);
    let of_beat = taken(input.data_valid, out.data_ready);
    assert_eq!(
        [out.pack_valid, out.ask_valid, out.put_valid],
        [of_move.is_some(), of_read.is_some(), of_beat.is_some()]
    );
    if let Some(of) = of_move {
        assert_eq!(out.pack_says, input.move_says[of]);
        assert_eq!(out.pack_last, input.move_last[of]);
    }
    if let Some(of) = of_read {
        assert_eq!(out.ask_function, input.read_function[of]);
        let read = (out.ask_ends, out.ask_address, out.ask_bytes);
        assert_eq!(read, (input.read_ends[of], input.read_address[of], input.read_bytes[of]));
    }
    if let Some(of) = of_beat {
        let beat = (out.put_ends, out.put_to, out.put_data);
        assert_eq!(beat, (input.data_ends[of], input.data_to[of], input.data[of]));
    }
    [of_move, of_read, of_beat]
}

/// Operations leave whole, that of the first extract first after reset. Later the one goes first
/// that went second.
#[test]
fn operations_take_turns() {
    let mut arb = OpArb::default();
    let both = moves(idle(), &[LOCAL, REMOTE], true, 0);
    let mid = moves(idle(), &[LOCAL, REMOTE], false, 0);
    let mut moved = |input| left(&mut arb, input)[0];
    assert_eq!(moved(both), None);
    assert_eq!(moved(mid), Some(LOCAL));
    assert_eq!(moved(mid), Some(LOCAL));
    assert_eq!(moved(both), Some(LOCAL));
    assert_eq!(moved(mid), Some(REMOTE));
    // The first extract's next operation has begun behind it.
    assert_eq!(moved(both), Some(REMOTE));
    assert_eq!(moved(both), Some(LOCAL));
    assert_eq!(moved(both), Some(REMOTE));
    assert_eq!(moved(idle()), None);
    assert_eq!(moved(moves(idle(), &[LOCAL], true, 0)), Some(LOCAL));
    // Both begin at once again, and the one from here went first last.
    assert_eq!(moved(both), None);
    assert_eq!(moved(both), Some(REMOTE));
    assert_eq!(moved(both), Some(LOCAL));
}

/// Data leaves in the order of the operations, also if the moves of one are far ahead, and each
/// operation's in its own time.
#[test]
fn data_leaves_in_the_order_of_operations() {
    let mut arb = OpArb::default();
    let both = reads(moves(idle(), &[LOCAL, REMOTE], true, 16), &[LOCAL, REMOTE], false);
    assert_eq!(left(&mut arb, both), [None; 3]);
    assert_eq!(left(&mut arb, both), [Some(LOCAL), Some(LOCAL), None]);
    // No moves of the first extract are left.
    let next = reads(moves(idle(), &[REMOTE], true, 16), &[LOCAL, REMOTE], false);
    assert_eq!(left(&mut arb, next), [Some(REMOTE), Some(LOCAL), None]);
    let only = reads(idle(), &[LOCAL, REMOTE], true);
    assert_eq!(left(&mut arb, only), [None, Some(LOCAL), None]);
    // A new one of the first extract stands behind the other one.
    let again = beats(reads(moves(idle(), &[LOCAL], true, 16), &[REMOTE], false), &[LOCAL], true);
    assert_eq!(left(&mut arb, again), [None, Some(REMOTE), None]);
    assert_eq!(left(&mut arb, again), [Some(LOCAL), Some(REMOTE), None]);
    let last = beats(reads(idle(), &[REMOTE], true), &[LOCAL], true);
    assert_eq!(left(&mut arb, last), [None, Some(REMOTE), None]);
    assert_eq!(left(&mut arb, last), [None, None, Some(LOCAL)]);
    assert_eq!(left(&mut arb, last), [None; 3]);
}

/// An operation stays until its moves have left, also if its data has.
#[test]
fn moves_may_come_behind_data() {
    let mut arb = OpArb::default();
    let begin = moves(idle(), &[LOCAL, REMOTE], false, 16);
    assert_eq!(left(&mut arb, begin), [None; 3]);
    assert_eq!(
        left(&mut arb, beats(begin, &[LOCAL, REMOTE], false)),
        [Some(LOCAL), None, Some(LOCAL)]
    );
    assert_eq!(
        left(&mut arb, beats(begin, &[LOCAL, REMOTE], true)),
        [Some(LOCAL), None, Some(LOCAL)]
    );
    let last = moves(beats(idle(), &[LOCAL, REMOTE], true), &[LOCAL, REMOTE], true, 16);
    assert_eq!(left(&mut arb, last), [Some(LOCAL), None, Some(REMOTE)]);
    assert_eq!(left(&mut arb, moves(idle(), &[REMOTE], true, 16)), [Some(REMOTE), None, None]);
    assert_eq!(left(&mut arb, beats(idle(), &[LOCAL, REMOTE], true)), [None; 3]);
}

/// What a taker does not take stays: nothing is said to be taken.
#[test]
fn takers_may_be_busy() {
    let mut arb = OpArb::default();
    let all = beats(reads(moves(idle(), &[REMOTE], true, 16), &[REMOTE], true), &[REMOTE], true);
    arb.cycle(all);
    let busy = In { pack_ready: false, ask_ready: false, put_ready: false, ..all };
    for _ in 0..3 {
        let out = arb.cycle(busy);
        assert_eq!([out.pack_valid, out.ask_valid, out.put_valid], [true; 3]);
        assert_eq!([out.move_ready, out.read_ready, out.data_ready], [[false; 2]; 3]);
    }
    assert_eq!(left(&mut arb, all), [Some(REMOTE); 3]);
    assert_eq!(left(&mut arb, all), [None; 3]);
}

/// An operation from here takes a place before it begins, and that is its number. One that answers
/// a GET takes none and has the mark. It passes one that waits for a place.
#[test]
fn only_operations_from_here_have_places() {
    let mut arb = OpArb::default();
    let both = moves(idle(), &[LOCAL, REMOTE], false, 0);
    let mut cycle = |input: In| {
        let out = arb.cycle(input);
        (out.place_valid, out.pack_valid.then_some(out.pack_operation))
    };
    let full = In { place_ready: false, ..both };
    assert_eq!(cycle(full), (false, None));
    assert_eq!(cycle(full), (false, Some(MARK)));
    assert_eq!(cycle(both), (true, Some(MARK)));
    assert_eq!(cycle(In { place: 4, ..both }), (false, Some(MARK)));
    let last = moves(idle(), &[LOCAL, REMOTE], true, 0);
    assert_eq!(cycle(last), (false, Some(MARK)));
    assert_eq!(cycle(In { place: 5, ..both }), (false, Some(9)));
    assert_eq!(cycle(full), (false, Some(9)));
    assert_eq!(cycle(moves(full, &[LOCAL], true, 0)), (false, Some(9)));
}

/// A GET from here goes to its packer with a place, whatever operations from elsewhere wait for. So
/// does its descriptor.
#[test]
fn gets_go_their_own_way() {
    let mut arb = OpArb::default();
    let remote = moves(idle(), &[REMOTE], false, 16);
    arb.cycle(remote);
    let get = In {
        move_get: true,
        data_get: true,
        pack_ready: false,
        put_ready: false,
        ..beats(moves(remote, &[LOCAL], true, 32), &[LOCAL], false)
    };
    let mut cycle = |input: In| {
        let out = arb.cycle(input);
        assert_eq!((out.pack_valid, out.pack_operation, out.put_valid), (true, MARK, false));
        assert!(out.get_data_valid);
        (out.get_valid, out.place_valid, out.move_ready[LOCAL], out.data_ready[LOCAL])
    };
    assert_eq!(
        cycle(In { place_ready: false, get_data_ready: false, ..get }),
        (false, true, false, false)
    );
    assert_eq!(cycle(In { get_ready: false, ..get }), (true, false, false, true));
    assert_eq!(cycle(get), (true, true, true, true));
    // Nothing of that begins an operation for the other packer.
    let out = arb.cycle(In { move_get: true, data_get: true, ..idle() });
    assert_eq!([out.get_valid, out.get_data_valid, out.pack_valid, out.place_valid], [false; 4]);
    // What is none of a GET is not its packer's.
    let out = arb.cycle(beats(moves(idle(), &[LOCAL], true, 1), &[LOCAL], true));
    assert_eq!([out.get_valid, out.get_data_valid, out.place_valid], [false, false, true]);
}
