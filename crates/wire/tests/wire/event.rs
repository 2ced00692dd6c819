use std::num::NonZeroU64;

use bellwire_wire::WireError;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::event::{EVENT_BYTES, Event, EventRepr, Status, phase};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::Tail;
use proptest::prelude::*;

use crate::values::{self, emitted};

fn received() -> EventRepr {
    EventRepr {
        phase: true,
        primitive: Primitive::Put,
        status: Status::SourceFault,
        queue_pair: 2,
        peer: Endpoint::new(3, 0, 1).unwrap(),
        address: 0x12_3456_7890,
        length: 4096,
        tail: Tail::from(0x0102_0304_0506_0708),
    }
}

/// An event has the bytes computed by hand from the diagram and prints in one line.
// shows: C-13
#[test]
fn golden_event() {
    let bytes = [
        0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, // tail
        0x90, 0x78, 0x56, 0x34, 0x12, 0x08, 0x61,
        0x00, // address, tail bytes, peer 0011 000 01
        0x00, 0x10, 0x00, 0x00, 0x00, 0x06, 0x03, 0x82, // length, PUT, status, QP and phase
    ];
    assert_eq!(emitted!(&received()), bytes);
    assert_eq!(EventRepr::parse(&bytes), Ok(received()));
    assert_eq!(received().tail.immediate(), Some(0x0102_0304_0506_0708));
    assert_eq!(received().buffer_len(), EVENT_BYTES);
    assert_eq!(
        received().to_string(),
        "PUT source fault, 4096 B at 0x1234567890, qp 2 with 3.0.1, tail 0807060504030201, phase 1"
    );
}

/// Over three laps of a small ring the reader takes each event once and in order. It never takes an
/// unwritten record or last lap's for a new one.
// shows: C-13
#[test]
fn phase_bit_tells_new_records_from_old() {
    let entries = NonZeroU64::new(3).unwrap();
    let mut ring = [[0; EVENT_BYTES]; 3];
    for position in 0..9 {
        let slot = (position % 3) as usize;
        let is_new = |ring: &[[u8; EVENT_BYTES]; 3]| {
            Event::new(&ring[slot]).unwrap().phase() == phase(position, entries)
        };
        assert!(!is_new(&ring), "record {position} before it is written");
        let event = EventRepr { phase: phase(position, entries), length: position, ..received() };
        event.emit(&mut ring[slot]).unwrap();
        assert!(is_new(&ring), "record {position} after it is written");
        assert_eq!(EventRepr::parse(&ring[slot]).unwrap().length, position);
    }
}

/// A writer that stores words in ascending order shows the new phase only with its last store.
// shows: C-13
#[test]
fn phase_is_in_the_last_word() {
    let old = emitted!(&EventRepr { phase: false, length: 1, ..received() });
    let new = emitted!(&received());
    for words in 0..4 {
        let torn = [&new[..words * 8], &old[words * 8..]].concat();
        assert!(!Event::new(&torn).unwrap().phase(), "after {words} words");
    }
}

/// An impossible tail count, tail padding, and values beyond their fields are refused.
// shows: C-10, C-13
#[test]
fn bad_events_are_refused() {
    let damaged = |byte: usize, value: u8| {
        let mut bytes = emitted!(&received());
        bytes[byte] = value;
        EventRepr::parse(&bytes)
    };
    assert_eq!(damaged(21, 17), Err(WireError::TailTooLong { length: 17, limit: 16 }));
    assert_eq!(damaged(21, 255), Err(WireError::TailTooLong { length: 255, limit: 16 }));
    assert_eq!(damaged(8, 5), Err(WireError::Reserved { field: "tail padding", value: 5 }));
    assert_eq!(damaged(30, 7), Err(WireError::UnknownCode { field: "event status", code: 7 }));
    assert_eq!(damaged(29, 0), Err(WireError::UnknownCode { field: "packet type", code: 0 }));
    for (byte, value) in [(23, 0x02), (29, 0x16), (31, 0x86)] {
        assert!(matches!(damaged(byte, value), Err(WireError::Reserved { .. })), "{byte}");
    }
    let field_of = |event: EventRepr| match event.emit(&mut [0; EVENT_BYTES]) {
        Err(WireError::OutOfRange { field, .. }) => field,
        other => panic!("{other:?}"),
    };
    assert_eq!(field_of(EventRepr { queue_pair: 4, ..received() }), "queue pair");
    assert_eq!(field_of(EventRepr { address: 1 << 40, ..received() }), "event address");
    assert_eq!(field_of(EventRepr { length: 1 << 40, ..received() }), "event length");
}

proptest! {
    /// Any event parses back.
    // shows: C-10, C-13
    #[test]
    fn events_round_trip(event in values::event()) {
        prop_assert_eq!(EventRepr::parse(&emitted!(&event)), Ok(event));
    }
}
