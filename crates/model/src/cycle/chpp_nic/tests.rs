use super::*;
use crate::cycle::packer;

/// The greatest sizes that there are.
const SHAPE: Shape = Shape {
    functions: 8,
    bells: 4,
    tags: 8,
    timeout: 1500,
    beats: 64,
    reads: 8,
    request: 8,
    longest: 32,
    fetches: 4,
    places: 2,
    events: 4,
    gets: 2,
    packer: packer::Shape { beats: 32, packets: 4, payload: 128, longest: 256 },
    packets: 2,
    depth: 4,
    room: 128,
    write: 128,
    slots: 32,
    batch: 16,
};

/// No read and no write has more bytes than every link allows.
#[test]
fn sizes_are_bounded() {
    let builds = |shape| std::panic::catch_unwind(|| ChppNic::new(shape)).is_ok();
    assert!(builds(SHAPE));
    assert!(!builds(Shape { request: 16, ..SHAPE }));
    assert!(!builds(Shape { batch: 17, slots: 34, ..SHAPE }));
    assert!(!builds(Shape { write: 256, ..SHAPE }));
}

/// After reset an interface takes what the host says, offers nothing, and has room for packets.
#[test]
fn nothing_is_offered_at_first() {
    let out = ChppNic::new(SHAPE).cycle(In::default());
    assert_eq!(out, Out { rx_ready: true, from_ready: [true; CLASSES], ..Out::default() });
}
