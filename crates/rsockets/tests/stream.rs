//! The stream without I/O: bytes, credit and ends.

#[path = "oracles/pair.rs"]
mod pair;

use bellwire_rsockets::message::{Hello, Kind};
use bellwire_rsockets::stream::{Slot, Stream};
use proptest::prelude::*;

const HELLO: Hello = Hello { slots: 4, slot_bytes: 100, maps: 0 };

fn stream() -> Stream {
    Stream::new(250, 8, HELLO, HELLO)
}

proptest! {
    /// Each side gets what the other one wrote, in any order of events, and nothing hangs.
    #[test]
    fn bytes_and_credit_are_kept(steps in pair::steps()) {
        pair::check(steps)?;
    }
}

/// Writes take what there is room for; bytes wrap around the ring, and leave in slots of the peer.
#[test]
fn a_ring_wraps_around() {
    let mut stream = stream();
    assert_eq!(stream.put(200), [0..200, 0..0]);
    assert_eq!(stream.transmit().expect("there is credit").parts, [0..100, 0..0]);
    assert_eq!(stream.transmit().expect("there is credit").parts, [100..200, 0..0]);
    assert_eq!(stream.transmit(), None);
    stream.completed();
    assert_eq!(stream.room(), 150);
    assert_eq!(stream.put(400), [200..250, 0..100], "as much as there is room for");
    assert_eq!(stream.room(), 0);
    assert_eq!(stream.transmit().expect("there is credit").parts, [200..250, 0..50]);
    assert_eq!(stream.transmit().expect("there is credit").parts, [50..100, 0..0]);
}

/// Without credit small writes gather, and leave as one message.
#[test]
fn small_writes_coalesce_without_credit() {
    let mut stream = stream();
    for _ in 0..4 {
        stream.put(1);
        assert!(stream.transmit().is_some());
    }
    for _ in 0..7 {
        stream.put(10);
        assert_eq!(stream.transmit(), None);
    }
    assert!(!stream.may_pass(1), "bytes wait before it");
    assert_eq!(stream.arrived(0, Kind::Credit.with(1), 0), Ok(Slot::Free));
    let message = stream.transmit().expect("there is credit");
    assert_eq!(message.parts[0].len(), 70);
}

/// The end follows what waits, and nothing is written behind it. The other direction goes on.
#[test]
fn each_direction_ends_by_itself() {
    let mut stream = stream();
    stream.put(150);
    stream.end();
    assert_eq!(stream.room(), 0);
    let kinds = [(); 3].map(|()| stream.transmit().expect("a message").kind);
    assert_eq!(kinds, [Kind::Data, Kind::Data, Kind::End]);
    assert!(!stream.is_delivered());
    (0..3).for_each(|_| stream.completed());
    assert!(stream.is_delivered());
    assert!(!stream.has_ended());
    assert_eq!(stream.arrived(0, Kind::Data.with(2), 5), Ok(Slot::Kept));
    assert_eq!(stream.arrived(1, Kind::End.with(0), 0), Ok(Slot::Free));
    assert!(stream.has_ended());
    assert_eq!(stream.unread_bytes(), 5, "what came before the end is read");
    assert_eq!(stream.read(5), Some(0));
}

/// After the program has ended its reading, what comes is dropped, and its credit goes back.
#[test]
fn what_nobody_reads_is_dropped() {
    let mut stream = stream();
    stream.discard();
    for slot in 0..2 {
        assert_eq!(stream.arrived(slot, Kind::Data.with(0), 5), Ok(Slot::Free));
    }
    let message = stream.transmit().expect("half of the slots are owed");
    assert_eq!(message.immediate, Kind::Credit.with(2));
}

/// A peer that breaks the protocol is refused.
#[test]
fn broken_peers_are_refused() {
    let data = |credit| Kind::Data.with(credit);
    assert!(stream().arrived(0, 1 << 16, 1).is_err(), "bits that have no meaning");
    assert!(stream().arrived(0, data(1), 1).is_err(), "more credit than there can be");
    assert!(stream().arrived(0, data(0), 0).is_err(), "no bytes");
    assert!(stream().arrived(0, data(0), 101).is_err(), "more bytes than a slot has");
    let mut ended = stream();
    assert!(ended.arrived(0, Kind::End.with(0), 0).is_ok());
    assert!(ended.arrived(1, data(0), 1).is_err(), "data after the end");
    let mut full = stream();
    for slot in 0..4 {
        assert_eq!(full.arrived(slot, data(0), 1), Ok(Slot::Kept));
    }
    assert!(full.arrived(4, data(0), 1).is_err(), "data without credit");
}

/// Bytes that go aside share the ring, and keep their place between messages.
#[test]
fn bytes_aside_keep_their_place() {
    let mut stream = stream();
    assert_eq!(stream.aside(50), Some(0..50));
    assert_eq!(stream.put(20), [50..70, 0..0]);
    assert_eq!(stream.aside(50), None, "others wait before it");
    assert!(stream.transmit().is_some());
    assert_eq!(stream.aside(500), Some(70..250), "in one piece, and shorter");
    assert_eq!(stream.aside(1), None, "no room");
    (0..3).for_each(|_| stream.completed());
    assert_eq!(stream.room(), 250);
}
