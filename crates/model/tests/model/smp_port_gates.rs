//! Two ends of the SMP link with their lanes, as gates have them.

use bellwire_model::cycle::smp_port::Shape;

use crate::port_path::{Fault, PortPath, SHAPE};

/// Over lanes with skew, hits, and lanes that die for a while, each packet comes once, whole, and
/// in its channel's order. Training loses none that is under way. All credits come back.
// shows: S-16, S-18, S-19
#[test]
fn training_loses_no_packet() {
    for (seed, cut_through) in [(1, true), (2, false)] {
        let link = bellwire_model::cycle::smp_link::Shape { cut_through, ..SHAPE.link };
        let mut path = PortPath::new(Shape { link, ..SHAPE }, seed, Fault::None);
        path.run(60_000);
        let seen = path.seen();
        let often = [seen.came / 100, seen.damaged, seen.trained, seen.under_way, seen.quiet];
        assert!(often.iter().all(|&count| count > 3) && seen.asked > 0, "{seen:?}");
    }
}

/// Canary: a training that resets an end is noticed.
#[test]
#[should_panic]
fn a_training_that_resets_an_end_is_noticed() {
    PortPath::new(SHAPE, 1, Fault::Resets).run(60_000);
}

/// Canary: a turned bit is noticed.
#[test]
#[should_panic(expected = "the next one in order")]
fn a_turned_bit_behind_lanes_is_noticed() {
    PortPath::new(SHAPE, 1, Fault::Turned).run(60_000);
}
