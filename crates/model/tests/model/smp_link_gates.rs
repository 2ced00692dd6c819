//! Two ends of the SMP link as gates have them, with each other and beside the event-driven model.

use bellwire_model::cycle::smp_link::Shape;

use crate::smp_path::{Fault, Path, SHAPE};

/// Over lanes that hit and drop beats each packet comes once, whole, and in the order of its
/// channel. When all have come all credits are back.
// shows: S-14, S-15, S-16, S-20, S-21
#[test]
fn each_packet_comes_once_and_all_credits_come_back() {
    for (seed, cut_through) in [(1, true), (2, false), (3, true)] {
        let mut path = Path::new(Shape { cut_through, ..SHAPE }, seed, Fault::None);
        path.run(100_000);
        let seen = path.seen();
        let common = [seen.came[0], seen.came[1], seen.damaged, seen.without_headers];
        assert!(common.iter().all(|&count| count > 100) && seen.quiet > 3, "{seen:?}");
        assert!(seen.without_data > 0, "{seen:?}");
        assert_eq!(seen.bad > 0, cut_through, "{seen:?}");
    }
}

/// The paper's buffers, with which nothing is scarce.
#[test]
fn the_papers_link_carries_all_packets() {
    let shape = Shape {
        replay: 128,
        replay_after: 206,
        acknowledge_after: 69,
        headers: 32,
        data: 92,
        update_again_after: 7500,
        init_again_after: 34,
        cut_through: true,
    };
    let mut path = Path::new(shape, 1, Fault::None);
    path.run(100_000);
    assert!(path.seen().quiet > 3 && path.seen().bad > 0, "{:?}", path.seen());
}

/// Canary: a packet that is marked bad and kept is noticed.
#[test]
#[should_panic(expected = "the next one in order")]
fn a_bad_packet_that_is_kept_is_noticed() {
    Path::new(SHAPE, 1, Fault::Unmarked).run(100_000);
}

/// Canary: a turned bit is noticed.
#[test]
#[should_panic(expected = "the next one in order")]
fn a_turned_bit_of_a_packet_is_noticed() {
    Path::new(SHAPE, 1, Fault::Turned).run(100_000);
}

/// Canary: credits that do not come back are noticed.
#[test]
#[should_panic(expected = "all credits come back")]
fn lost_credits_are_noticed() {
    Path::new(SHAPE, 1, Fault::Silent).run(100_000);
}
