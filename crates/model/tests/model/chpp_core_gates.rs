//! Two whole interfaces of cHPP's cycle blocks move what descriptors say.

use crate::core_path::{Fault, Path, SHAPE, Seen};

/// PUTs, both kinds of NAPs and GETs between two interfaces, and of each with itself, end with
/// their bytes in memory. Each operation has one event, with its status. Each packet that is told
/// at its receiver is told once, with its data before it. Slots are used again and again. What
/// software does wrong is dropped or refused, and told once.
// shows: C-13, C-14, C-17, C-18, C-21, C-25
#[test]
fn two_interfaces_move_what_descriptors_say() {
    for seed in 4..=5 {
        let mut path = Path::new(SHAPE, seed, Fault::None);
        path.run(30_000);
        for seen in path.seen() {
            let Seen { sent, failed, refused, bad, puts, naps, forgotten } = seen;
            let all = [sent / 100, failed, refused, bad, puts / 30, naps / 30, forgotten];
            assert!(all.iter().all(|&count| count > 0), "{seen:?}");
        }
        assert!(path.told_each(), "software does each wrong");
    }
}

/// A path with this fault.
fn with(fault: Fault) {
    Path::new(SHAPE, 1, fault).run(4_000);
}

/// Canary: a bit of a completion that is turned is noticed.
#[test]
#[should_panic]
fn a_turned_bit_is_noticed() {
    with(Fault::Turned);
}

/// Canary: a write that is lost is noticed.
#[test]
#[should_panic]
fn a_lost_write_is_noticed() {
    with(Fault::Lost);
}

/// Canary: a network that does not tell of free places stops.
#[test]
#[should_panic(expected = "all comes to its end")]
fn a_silent_network_is_noticed() {
    with(Fault::Silent);
}

/// Canary: a completion that goes to another read is noticed.
#[test]
#[should_panic(expected = "nothing is dropped")]
fn a_mixed_completion_is_noticed() {
    with(Fault::Mixed);
}
