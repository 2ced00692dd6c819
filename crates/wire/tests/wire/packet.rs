use bellwire_wire::WireError;
use bellwire_wire::header::HeaderRepr;
use bellwire_wire::packet::{MAX_PACKET_BYTES, PacketRepr};
use bellwire_wire::span::ByteSpan;
use bellwire_wire::tail::Tail;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::header::put;
use crate::values::{self, emitted};

/// Six bytes for address ..73 stand in their lanes of three DWs, between zeros, before the tail.
// shows: C-08, C-10
#[test]
fn golden_packet() {
    let packet = PacketRepr { header: put(), payload: b"abcdef", tail: Tail::new(b"t").unwrap() };
    let bytes = emitted!(&packet);
    assert_eq!(bytes[16..], *b"\0\0\0abcdef\0\0\0t");
    assert_eq!(PacketRepr::parse(&bytes), Ok(packet));
    assert!(packet.to_string().ends_with("event, tail 74"));
}

/// No payload is one DW with nothing enabled; 4096 bytes and a full tail make the largest packet.
// shows: C-07
#[test]
fn payload_limits() {
    let header = HeaderRepr { span: ByteSpan::new(0, 0).unwrap(), ..put() };
    let empty = PacketRepr { header, payload: &[], tail: Tail::EMPTY };
    assert_eq!(emitted!(&empty).len(), 20);
    assert_eq!(PacketRepr::parse(&emitted!(&empty)), Ok(empty));

    let header = HeaderRepr { span: ByteSpan::new(0, 4096).unwrap(), ..put() };
    let full = PacketRepr { header, payload: &[7; 4096], tail: Tail::new(&[9; 16]).unwrap() };
    let bytes = emitted!(&full);
    assert_eq!(bytes.len(), MAX_PACKET_BYTES);
    assert_eq!(PacketRepr::parse(&bytes), Ok(full));
}

/// Missing payload, a tail that is too long, and lengths that disagree are refused by name.
// shows: C-07, C-10
#[test]
fn wrong_lengths_are_refused() {
    let packet = PacketRepr { header: put(), payload: b"abcdef", tail: Tail::EMPTY };
    let mut bytes = emitted!(&packet);
    assert_eq!(
        PacketRepr::parse(&bytes[..27]),
        Err(WireError::Truncated { format: "packet", length: 27, needed: 28 })
    );
    bytes.resize(28 + 17, 0);
    assert_eq!(PacketRepr::parse(&bytes), Err(WireError::TailTooLong { length: 17, limit: 16 }));
    assert_eq!(
        PacketRepr { payload: b"abcde", ..packet }.emit(&mut bytes),
        Err(WireError::PayloadMismatch { announced: 6, length: 5 })
    );
    assert_eq!(
        packet.emit(&mut [0; 27]),
        Err(WireError::BufferTooSmall { format: "packet", length: 27, needed: 28 })
    );
}

proptest! {
    /// Any packet parses back, and bytes in disabled lanes do not matter.
    // shows: C-06, C-08, C-10
    #[test]
    fn packets_round_trip(
        header in values::header(),
        data in vec(any::<u8>(), 4096),
        tail in values::tail(),
    ) {
        let packet = PacketRepr { header, payload: &data[..header.span.len()], tail };
        let mut bytes = emitted!(&packet);
        prop_assert_eq!(PacketRepr::parse(&bytes), Ok(packet));
        let start = 16 + header.span.lead();
        let end = bytes.len() - tail.len();
        bytes[16..start].fill(0xff);
        bytes[start + header.span.len()..end].fill(0xff);
        prop_assert_eq!(PacketRepr::parse(&bytes), Ok(packet));
    }
}
