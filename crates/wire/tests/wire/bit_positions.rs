//! Each bit of each field stands where the diagram says: setting one bit of a value changes one bit
//! of the bytes. Positions here are copied from the diagrams, not computed from the code's tables.

use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::doorbell::DoorbellRepr;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::Entry;
use bellwire_wire::event::{EventRepr, Status};
use bellwire_wire::header::HeaderRepr;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::span::ByteSpan;
use bellwire_wire::tail::Tail;

use crate::values::{chain, emitted};

/// The place of a bit of a DW that is sent most significant byte first.
fn big_endian_dw(index: usize, bit: usize) -> usize {
    (index * 4 + 3 - bit / 8) * 8 + bit % 8
}

/// The place of a bit of a 64-bit word that is stored least significant byte first.
fn little_endian_word(index: usize, bit: usize) -> usize {
    index * 64 + bit
}

/// Places (byte * 8 + bit) at which the byte strings differ.
fn differing_bits(one: &[u8], other: &[u8]) -> Vec<usize> {
    assert_eq!(one.len(), other.len());
    (0..one.len() * 8)
        .filter(|place| (one[place / 8] ^ other[place / 8]) >> (place % 8) & 1 == 1)
        .collect()
}

fn endpoint(bits: usize) -> Endpoint {
    Endpoint::new((bits >> 5) as u8, (bits >> 2 & 7) as u8, (bits & 3) as u8).unwrap()
}

/// Every bit of every header field, Length and byte enables included.
// shows: C-06, C-08
#[test]
fn header_bits() {
    let base = HeaderRepr {
        primitive: Primitive::Put,
        traffic_class: 0,
        requester_id: 0,
        magic: 0,
        source: endpoint(0),
        destination: endpoint(0),
        wants_event: false,
        span: ByteSpan::new(0, 4).unwrap(),
    };
    let emit = |header: HeaderRepr| emitted!(header);
    let check = |header: HeaderRepr, dw: usize, bit: usize| {
        assert_eq!(
            differing_bits(&emit(base), &emit(header)),
            [big_endian_dw(dw, bit)],
            "{header}"
        );
    };
    (0..3).for_each(|bit| check(HeaderRepr { traffic_class: 1 << bit, ..base }, 0, 20 + bit));
    (0..16).for_each(|bit| check(HeaderRepr { requester_id: 1 << bit, ..base }, 1, 16 + bit));
    (0..8).for_each(|bit| check(HeaderRepr { magic: 1 << bit, ..base }, 1, 8 + bit));
    (0..9).for_each(|bit| check(HeaderRepr { source: endpoint(1 << bit), ..base }, 2, 23 + bit));
    (0..9)
        .for_each(|bit| check(HeaderRepr { destination: endpoint(1 << bit), ..base }, 2, 14 + bit));
    check(HeaderRepr { wants_event: true, ..base }, 2, 8);
    for bit in 2..40 {
        let header = HeaderRepr { span: ByteSpan::new(1 << bit, 4).unwrap(), ..base };
        let (dw, bit) = if bit < 32 { (3, bit) } else { (2, bit - 32) };
        check(header, dw, bit);
    }

    let dw = |header, index: usize| {
        let bytes = emit(header);
        u32::from_be_bytes(bytes[index * 4..][..4].try_into().unwrap())
    };
    let with_span =
        |address, length| HeaderRepr { span: ByteSpan::new(address, length).unwrap(), ..base };
    for (primitive, code) in [(Primitive::Nap, 5), (Primitive::Put, 6), (Primitive::Get, 7)] {
        assert_eq!(dw(HeaderRepr { primitive, ..base }, 0), 0x6000_0001 | code << 12);
    }
    for length_dw in 1..1024 {
        assert_eq!(dw(with_span(0, length_dw * 4), 0), 0x6000_6000 | length_dw as u32);
    }
    assert_eq!(dw(with_span(0, 4096), 0), 0x6000_6000);
    for bit in 0..4 {
        assert_eq!(dw(with_span(bit, 1), 1), 1 << bit, "1st DW BE");
    }
    for (length, last_enables) in [(5, 0x1), (6, 0x3), (7, 0x7), (8, 0xf)] {
        assert_eq!(dw(with_span(0, length), 1), last_enables << 4 | 0xf, "last DW BE");
    }
}

/// Every bit of the descriptor's header, of both words of an entry, of the data and the tail.
// shows: C-28, C-10
#[test]
fn descriptor_bits() {
    let emit = |descriptor: DescriptorRepr<'_>| emitted!(descriptor);
    let base = DescriptorRepr {
        destination: endpoint(0),
        queue_pair: 0,
        traffic_class: 0,
        magic: 0,
        wants_event: false,
        work: Work::NapImmediate(&[0]),
        tail: Tail::new(&[0]).unwrap(),
    };
    let expected = [&[0x15, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1][..], &[0; 5 + 32][..]].concat();
    assert_eq!(emit(base), expected);
    let check = |descriptor: DescriptorRepr<'_>, word: usize, bit: usize| {
        let place = little_endian_word(word, bit);
        assert_eq!(differing_bits(&emit(base), &emit(descriptor)), [place], "{descriptor}");
    };
    check(DescriptorRepr { wants_event: true, ..base }, 0, 5);
    (0..8).for_each(|bit| check(DescriptorRepr { magic: 1 << bit, ..base }, 0, 8 + bit));
    (0..3).for_each(|bit| check(DescriptorRepr { traffic_class: 1 << bit, ..base }, 0, 16 + bit));
    (0..2).for_each(|bit| check(DescriptorRepr { queue_pair: 1 << bit, ..base }, 0, 20 + bit));
    for bit in 0..9 {
        check(DescriptorRepr { destination: endpoint(1 << bit), ..base }, 0, 32 + bit);
    }
    for bit in 0..8 {
        check(DescriptorRepr { work: Work::NapImmediate(&[1 << bit]), ..base }, 2, bit);
        check(DescriptorRepr { tail: Tail::new(&[1 << bit]).unwrap(), ..base }, 4, bit);
    }

    let word = |bytes: &[u8], index: usize| {
        u64::from_le_bytes(bytes[index * 8..][..8].try_into().unwrap())
    };
    for length in 0..=2048 {
        let data = vec![0; length];
        let bytes = emit(DescriptorRepr { work: Work::NapImmediate(&data), ..base });
        assert_eq!(word(&bytes, 1), 0x1_0000 | length as u64);
    }
    for length in 0..=16 {
        let tail = Tail::new(&[0; 16][..length]).unwrap();
        assert_eq!(word(&emit(DescriptorRepr { tail, ..base }), 1), (length as u64) << 16 | 1);
    }
    let empty = Entry { address: 0, length: 0 };
    for count in 0..=254 {
        let list = vec![empty; count];
        let of = |work| word(&emit(DescriptorRepr { work, ..base }), 0);
        let count = count as u64;
        assert_eq!(of(Work::NapIndirect(list.as_slice().into())), count << 48 | 5);
        assert_eq!(of(Work::Put(chain(&list, &[]))), count << 48 | 6);
        assert_eq!(of(Work::Put(chain(&[], &list))), count << 56 | 6);
        let get = Work::Get { chain: chain(&[], &list), return_magic: count as u8 };
        assert_eq!(of(get), count << 56 | count << 24 | 7);
    }
    for bit in 0..40 {
        let entry = Entry { address: 1 << bit, length: 0 };
        let bytes = emit(DescriptorRepr { work: Work::Put(chain(&[empty, entry], &[])), ..base });
        assert_eq!([2, 3, 4, 5].map(|index| word(&bytes, index)), [0, 0, 1 << bit, 0]);
        let entry = Entry { address: 0, length: 1 << bit };
        let (sources, destinations) = ([entry], [empty, entry]);
        let work = Work::Put(chain(&sources, &destinations));
        let bytes = emit(DescriptorRepr { work, ..base });
        let words = [2, 3, 4, 5, 6, 7].map(|index| word(&bytes, index));
        assert_eq!(words, [0, 1 << bit, 0, 0, 0, 1 << bit]);
    }
}

/// Every bit of a doorbell.
// shows: C-31
#[test]
fn doorbell_bits() {
    let word = |address, length| DoorbellRepr { address, length }.emit().unwrap();
    (4..40).for_each(|bit| assert_eq!(word(1 << bit, 16), 16 << 48 | 1 << bit));
    (4..13).for_each(|bit| assert_eq!(word(0, 1 << bit), 1 << (48 + bit)));
}

/// Every bit of an event; the phase bit is the top bit of the last byte.
// shows: C-13
#[test]
fn event_bits() {
    let emit = |event: EventRepr| emitted!(event);
    let base = EventRepr {
        phase: false,
        primitive: Primitive::Nap,
        status: Status::Success,
        queue_pair: 0,
        peer: endpoint(0),
        address: 0,
        length: 0,
        tail: Tail::new(&[0; 16]).unwrap(),
    };
    let mut expected = [0; 32];
    expected[21] = 16;
    expected[29] = 5;
    assert_eq!(emit(base), expected);
    let check = |event: EventRepr, word: usize, bit: usize| {
        let place = little_endian_word(word, bit);
        assert_eq!(differing_bits(&emit(base), &emit(event)), [place], "{event}");
    };
    check(EventRepr { phase: true, ..base }, 3, 63);
    assert_eq!(little_endian_word(3, 63), 31 * 8 + 7);
    (0..2).for_each(|bit| check(EventRepr { queue_pair: 1 << bit, ..base }, 3, 56 + bit));
    for (bit, status) in
        [Status::BadDescriptor, Status::UnequalSums, Status::DestinationFault].iter().enumerate()
    {
        check(EventRepr { status: *status, ..base }, 3, 48 + bit);
    }
    check(EventRepr { primitive: Primitive::Get, ..base }, 3, 41);
    (0..40).for_each(|bit| check(EventRepr { length: 1 << bit, ..base }, 3, bit));
    (0..9).for_each(|bit| check(EventRepr { peer: endpoint(1 << bit), ..base }, 2, 48 + bit));
    (0..40).for_each(|bit| check(EventRepr { address: 1 << bit, ..base }, 2, bit));
    for bit in 0..128 {
        let mut tail = [0; 16];
        tail[bit / 8] = 1 << (bit % 8);
        check(EventRepr { tail: Tail::new(&tail).unwrap(), ..base }, 0, bit);
    }
    for length in 0..=16 {
        let tail = Tail::new(&[0; 16][..length]).unwrap();
        assert_eq!(emit(EventRepr { tail, ..base })[21], length as u8);
    }
}
