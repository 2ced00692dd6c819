use bellwire_wire::WireError;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::header::{HEADER_BYTES, Header, HeaderRepr};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::span::ByteSpan;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

use crate::values::{self, emitted};

pub fn put() -> HeaderRepr {
    HeaderRepr {
        primitive: Primitive::Put,
        traffic_class: 5,
        requester_id: 0x1234,
        magic: 0x5a,
        source: Endpoint::new(9, 6, 1).unwrap(),
        destination: Endpoint::new(15, 7, 3).unwrap(),
        wants_event: true,
        span: ByteSpan::new(0xab_1234_5673, 6).unwrap(),
    }
}

/// A full header has the bytes computed by hand from the diagram, and one line says all of it.
// shows: C-06
#[test]
fn golden_header() {
    let bytes = [
        0x60, 0x50, 0x60, 0x03, // 4-DW memory write; TC 5; PUT; 3 DWs
        0x12, 0x34, 0x5a, 0x18, // requester; Magic; last BE 0001, 1st BE 1000
        0x9c, 0xff, 0xc1, 0xab, // SRC 1001 110 01; DST 1111 111 11; S-Flag 000001; address
        0x12, 0x34, 0x56, 0x70,
    ];
    assert_eq!(emitted!(&put()), bytes);
    assert_eq!(HeaderRepr::parse(&bytes), Ok(put()));
    assert_eq!(put().buffer_len(), HEADER_BYTES);
    assert_eq!(
        put().to_string(),
        "PUT 9.6.1 > 15.7.3, 6 B at 0xab12345673, magic 0x5a, tc 5, requester 0x1234, event"
    );
}

/// 4096 bytes are written as length 0 and read back; a NAP of 2048 bytes passes and one of 2049
/// does not.
// shows: C-07, C-19
#[test]
fn length_limits_are_exact() {
    let longest = HeaderRepr { span: ByteSpan::new(0x1000, 4096).unwrap(), ..put() };
    let bytes = emitted!(&longest);
    assert_eq!(bytes[2..4], [0x60, 0x00]);
    assert_eq!(Header::new(&bytes).unwrap().length_dw(), 1024);
    assert_eq!(HeaderRepr::parse(&bytes), Ok(longest));

    let nap = |length| HeaderRepr {
        primitive: Primitive::Nap,
        span: ByteSpan::new(0, length).unwrap(),
        ..put()
    };
    assert_eq!(HeaderRepr::parse(&emitted!(&nap(2048))), Ok(nap(2048)));
    let refusal = Err(WireError::PayloadTooLong { length: 2049, limit: 2048 });
    assert_eq!(nap(2049).emit(&mut [0; 16]), refusal);
    let mut bytes = emitted!(&nap(2048));
    bytes[3] += 1; // one DW more ...
    bytes[7] = 0x1f; // ... of which one byte is meant
    assert_eq!(HeaderRepr::parse(&bytes), refusal.map(|()| put()));
}

/// A view of longer bytes reads the header in front of them, field by field.
// shows: C-06
#[test]
fn view_reads_each_field() {
    let mut bytes = [0xff; 40];
    put().emit(&mut bytes).unwrap();
    assert!(bytes[HEADER_BYTES..].iter().all(|byte| *byte == 0xff));
    let header = Header::new(&bytes).unwrap();
    assert_eq!(header.primitive(), Ok(Primitive::Put));
    assert_eq!(header.traffic_class(), 5);
    assert_eq!(header.length_dw(), 3);
    assert_eq!(header.requester_id(), 0x1234);
    assert_eq!(header.magic(), 0x5a);
    assert_eq!(header.source().to_string(), "9.6.1");
    assert_eq!(header.destination().to_string(), "15.7.3");
    assert!(header.wants_event());
    assert_eq!(header.dwords(), put().span.to_dwords());
}

/// A refused header leaves the buffer as it was.
#[test]
fn refusal_writes_nothing() {
    let mut buffer = [0xee; HEADER_BYTES];
    assert!(HeaderRepr { traffic_class: 8, ..put() }.emit(&mut buffer).is_err());
    assert_eq!(buffer, [0xee; HEADER_BYTES]);
    let mut short = [0xee; HEADER_BYTES - 1];
    assert!(put().emit(&mut short).is_err());
    assert_eq!(short, [0xee; HEADER_BYTES - 1]);
}

proptest! {
    /// Any header parses back.
    // shows: C-06, C-08
    #[test]
    fn headers_round_trip(header in values::header()) {
        prop_assert_eq!(HeaderRepr::parse(&emitted!(&header)), Ok(header));
    }
}

/// The round trip is a checker. It catches parsers that read a neighbouring bit, swap two fields or
/// drop a bit (planted here), and passes the real one.
// shows: C-06
#[test]
fn canary_round_trip_catches_broken_parsers() {
    type Parser = fn(&[u8]) -> Result<HeaderRepr, WireError>;
    let parsers: [(&str, Parser); 5] = [
        ("sound", HeaderRepr::parse),
        ("Magic one bit aside", |bytes| {
            let mut header = HeaderRepr::parse(bytes)?;
            header.magic = header.magic.rotate_left(1);
            Ok(header)
        }),
        ("source and destination swapped", |bytes| {
            let mut header = HeaderRepr::parse(bytes)?;
            (header.source, header.destination) = (header.destination, header.source);
            Ok(header)
        }),
        ("address bit 39 dropped", |bytes| {
            let mut bytes: [u8; HEADER_BYTES] = bytes.try_into().unwrap();
            bytes[11] &= 0x7f;
            HeaderRepr::parse(&bytes)
        }),
        ("event bit ignored", |bytes| {
            Ok(HeaderRepr { wants_event: false, ..HeaderRepr::parse(bytes)? })
        }),
    ];
    for (name, parse) in parsers {
        let config = Config { failure_persistence: None, ..Config::default() };
        let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let verdict = TestRunner::new_with_rng(config, rng).run(&values::header(), |header| {
            prop_assert_eq!(parse(&emitted!(&header)), Ok(header));
            Ok(())
        });
        assert_eq!(verdict.is_ok(), name == "sound", "{name}");
    }
}
