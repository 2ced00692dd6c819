//! The window of operations in flight, by example and against a plain model.

#[path = "oracles/outstanding.rs"]
mod oracle;

use bellwire_protocol::{OPERATIONS_PER_FUNCTION, OpId, Outstanding, Stale, WindowFull};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Any sequence of starts, answers, late answers and forged answers ends each operation once
    /// and with its own value. It never has more in flight than allowed.
    // shows: C-33
    #[test]
    fn agrees_with_the_model(ops in oracle::ops()) {
        oracle::agree(ops)?;
    }
}

/// The 33rd operation of a function is refused and handed back, until one of the 32 has been
/// answered.
// shows: C-33
#[test]
fn the_33rd_operation_waits() {
    let mut window = Outstanding::new(OPERATIONS_PER_FUNCTION);
    let ids: Vec<_> = (0..32).map(|n| window.start(n).unwrap()).collect();
    assert_eq!(window.start(32), Err(WindowFull(32)));
    assert_eq!(window.finish(ids[17]), Ok(17));
    let id = window.start(32).unwrap();
    assert_eq!((window.in_flight(), window.limit()), (32, 32));
    assert_eq!(
        window.finish(ids[17]),
        Err(Stale(ids[17])),
        "the slot is used again, the id is not"
    );
    assert_eq!(window.finish(id), Ok(32));
}

/// An answer to an abandoned or unknown operation is refused.
#[test]
fn a_late_answer_is_refused() {
    let mut window = Outstanding::new(4);
    let id = window.start("put").unwrap();
    let mut ended = Vec::new();
    window.abandon(|operation| ended.push(operation));
    assert_eq!(ended, ["put"]);
    for bits in [id.to_bits(), 0, 1, u64::MAX] {
        let id = OpId::from_bits(bits);
        assert_eq!(window.finish(id), Err(Stale(id)));
    }
}

/// An id carries the serial number above the slot, and is the same after its way to the peer and
/// back. The refusals say what to do.
#[test]
fn ids_survive_the_way_to_the_peer() {
    let mut window = Outstanding::new(2);
    let ids = [window.start('a').unwrap(), window.start('b').unwrap()];
    assert_eq!(ids.map(OpId::to_bits), [0x1_0000, 0x2_0001]);
    assert_eq!(window.operation(OpId::from_bits(0x2_0001)), Ok(&mut 'b'));
    assert_eq!(window.finish(OpId::from_bits(0x1_0000)), Ok('a'));
    assert_eq!(window.start('c').unwrap().to_bits(), 0x3_0000);
    assert_eq!(
        window.start('d').unwrap_err().to_string(),
        "as many operations are in flight as may be; wait for one to finish, then try again"
    );
    assert_eq!(
        window.finish(ids[0]).unwrap_err().to_string(),
        "no operation 0x10000 is in flight; the answer is late, doubled or forged"
    );
}
