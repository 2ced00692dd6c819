use std::collections::HashSet;
use std::mem::discriminant;

use bellwire_wire::WireError;
use bellwire_wire::descriptor::{Descriptor, Work};
use bellwire_wire::doorbell::DoorbellRepr;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::event::{Event, Status};
use bellwire_wire::header::{Header, HeaderRepr};
use bellwire_wire::packet::PacketRepr;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::recut::recut;
use bellwire_wire::span::{ByteSpan, DwordSpan};
use bellwire_wire::tail::Tail;

use crate::descriptor::{A, with};
use crate::header::put;
use crate::values::{chain, emitted};

/// Each reserved bit of the header, a wrong shape, an unassigned type and an unexpected address are
/// refused by name.
// shows: C-06
#[test]
fn header_bits_without_meaning_are_refused() {
    let with_bit = |dw: usize, bit: usize| {
        let mut bytes = emitted!(&put());
        bytes[dw * 4 + 3 - bit / 8] ^= 1 << (bit % 8);
        HeaderRepr::parse(&bytes).unwrap_err()
    };
    for bit in 24..32 {
        let byte = 0x60 ^ 1 << (bit - 24);
        assert_eq!(with_bit(0, bit), WireError::NotMemoryWrite { byte });
    }
    let reserved = [(0, 10), (0, 11), (0, 16), (0, 17), (0, 18), (0, 19), (0, 23)];
    let reserved = reserved.into_iter().chain((9..14).map(|bit| (2, bit))).chain([(3, 0), (3, 1)]);
    for (dw, bit) in reserved {
        let error = with_bit(dw, bit);
        assert!(matches!(error, WireError::Reserved { .. }), "DW {dw} bit {bit}: {error}");
    }
    assert_eq!(with_bit(0, 14), WireError::UnknownCode { field: "packet type", code: 2 });
    // PUT becomes GET, whose address field must be empty.
    assert_eq!(with_bit(0, 12), WireError::UnexpectedAddress { address: 0xab_1234_5673 });
    let nap = HeaderRepr { primitive: Primitive::Nap, ..put() };
    assert_eq!(
        nap.emit(&mut [0; 16]),
        Err(WireError::UnexpectedAddress { address: 0xab_1234_5673 })
    );
}

/// Codes outside the tables and endpoints outside their fields are refused; all inside are not.
#[test]
fn codes_and_endpoints_have_exact_ranges() {
    let primitives = (0..=255).filter_map(|code| Primitive::from_code(code).ok());
    assert_eq!(primitives.collect::<Vec<_>>(), Primitive::ALL);
    let states = (0..=255).filter_map(|code| Status::from_code(code).ok());
    assert_eq!(states.collect::<Vec<_>>(), Status::ALL);
    assert!(
        Status::ALL.iter().enumerate().all(|(code, status)| usize::from(status.code()) == code)
    );

    let mut seen = HashSet::new();
    for (cpu, function, queue_pair) in
        (0..16).flat_map(|c| (0..8).flat_map(move |f| (0..4).map(move |q| (c, f, q))))
    {
        let endpoint = Endpoint::new(cpu, function, queue_pair).unwrap();
        assert_eq!(
            (endpoint.cpu(), endpoint.function(), endpoint.queue_pair()),
            (cpu, function, queue_pair)
        );
        seen.insert(endpoint.to_bits());
    }
    assert_eq!((seen.len(), seen.iter().max()), (512, Some(&511)));
    let refusal = |field, value, limit| Err(WireError::OutOfRange { field, value, limit });
    assert_eq!(Endpoint::new(16, 0, 0), refusal("CPU", 16, 15));
    assert_eq!(Endpoint::new(0, 8, 0), refusal("function", 8, 7));
    assert_eq!(Endpoint::new(0, 0, 4), refusal("queue pair", 4, 3));
}

/// A tail keeps its bytes and length apart from zeros, and only 8 bytes are an immediate value.
// shows: C-10
#[test]
fn tails_keep_their_length() {
    assert_ne!(Tail::new(&[0]), Tail::new(&[0, 0]));
    assert_eq!(Tail::new(b"ab").unwrap().as_bytes(), b"ab");
    assert_eq!(Tail::new(&[0; 17]), Err(WireError::TailTooLong { length: 17, limit: 16 }));
    assert_eq!(Tail::from(u64::MAX).immediate(), Some(u64::MAX));
    assert_eq!(Tail::new(&[1; 7]).unwrap().immediate(), None);
    assert_eq!(Tail::new(&[1; 16]).unwrap().immediate(), None);
    assert!(Tail::EMPTY.is_empty() && Tail::EMPTY.to_string() == "-");
    assert_eq!(format!("{:?}", Tail::new(&[10, 0xff]).unwrap()), "Tail(0aff)");
}

/// Every refusal in the table can be reached, and each says what, why and what to do.
#[test]
fn every_refusal_is_reached_and_explains_itself() {
    let span = |length_dw, first_enables, last_enables| {
        DwordSpan { address: 0, length_dw, first_enables, last_enables }.to_bytes().unwrap_err()
    };
    let mut shape = emitted!(&put());
    shape[0] = 0x40;
    let many = [A; 128];
    let mut excess = emitted!(&with(Work::NapImmediate(b"")));
    excess.push(0);
    let mut list = emitted!(&with(Work::Put(chain(&[A], &[A]))));
    list[0] = 0x25;
    let nap = HeaderRepr { primitive: Primitive::Nap, ..put() };
    let packet = PacketRepr { header: put(), payload: &[], tail: Tail::EMPTY };
    let reached = [
        Header::new(&[0; 15]).unwrap_err(),
        Event::new(&[0; 31]).unwrap_err(),
        Descriptor::new(&excess).unwrap_err(),
        put().emit(&mut [0; 15]).unwrap_err(),
        Endpoint::new(16, 0, 0).unwrap_err(),
        DoorbellRepr::parse(1 << 40).unwrap_err(),
        Primitive::from_code(0).unwrap_err(),
        HeaderRepr::parse(&shape).unwrap_err(),
        ByteSpan::new(0, 4097).unwrap_err(),
        packet.emit(&mut [0; 64]).unwrap_err(),
        ByteSpan::new(1, 4096).unwrap_err(),
        ByteSpan::new(u64::MAX, 1).unwrap_err(),
        DoorbellRepr { address: 1, length: 16 }.emit().unwrap_err(),
        span(1, 0b0101, 0),
        nap.emit(&mut [0; 16]).unwrap_err(),
        bellwire_wire::descriptor::DescriptorRepr::parse(&list).unwrap_err(),
        Tail::new(&[0; 17]).unwrap_err(),
        with(Work::Put(chain(&many, &many))).emit(&mut [0; 8192]).unwrap_err(),
        recut([1], [2]).unwrap_err(),
        recut([u64::MAX, 1], [2]).unwrap_err(),
    ];
    let kinds: HashSet<_> = reached.iter().map(discriminant).collect();
    assert_eq!(kinds.len(), 19, "the table of refusals has 19 kinds");
    for refusal in reached {
        let sentence = refusal.to_string();
        assert!(sentence.contains([';', ':']), "no advice in: {sentence}");
        assert!(sentence.len() < 160, "not one line: {sentence}");
    }
}
