use bellwire_wire::descriptor::{
    Descriptor, DescriptorRepr, MAX_DESCRIPTOR_BYTES, MAX_ENTRIES, Work,
};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::{Entries, Entry, MAX_TRANSFER_BYTES, Move};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::Tail;
use bellwire_wire::{ADDRESS_LIMIT, WireError};
use proptest::prelude::*;

use crate::values::{self, at_most, chain, emitted};

pub const A: Entry = Entry { address: 0x1000, length: 5 };
pub const B: Entry = Entry { address: 0x2000, length: 3 };
pub const AB: Entry = Entry { address: 0x30_4050_6070, length: 8 };

pub fn with(work: Work<'_>) -> DescriptorRepr<'_> {
    DescriptorRepr {
        destination: Endpoint::new(3, 2, 1).unwrap(),
        queue_pair: 2,
        traffic_class: 7,
        magic: 0x5a,
        wants_event: true,
        work,
        tail: Tail::new(b"tail").unwrap(),
    }
}

/// A GET with two sources and one destination has the bytes worked out by hand from the diagram.
// shows: C-10, C-28
#[test]
fn golden_descriptor() {
    let work = Work::Get { chain: chain(&[A, B], &[AB]), return_magic: 0xa5 };
    let bytes = [
        [0x27, 0x5a, 0x27, 0xa5, 0x69, 0x00, 2, 1, 0, 0, 4, 0, 0, 0, 0, 0],
        [0x00, 0x10, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0],
        [0x00, 0x20, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0],
        [0x70, 0x60, 0x50, 0x40, 0x30, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0],
        *b"tail\0\0\0\0\0\0\0\0\0\0\0\0",
    ]
    .concat();
    assert_eq!(emitted!(&with(work)), bytes);
    assert_eq!(DescriptorRepr::parse(&bytes), Ok(with(work)));
    assert_eq!(
        with(work).to_string(),
        "GET qp 2 > 3.2.1, 2 source and 1 destination entries, magic 0x5a, tc 7, event, \
         tail 7461696c"
    );
    let view = Descriptor::new(&bytes).unwrap();
    assert_eq!(view.primitive(), Ok(Primitive::Get));
    assert!(!view.is_immediate());
    assert_eq!(view.destination().to_string(), "3.2.1");
    assert_eq!(view.sources(), [A, B].as_slice().into());
    assert_eq!(view.destinations(), [AB].as_slice().into());
    assert_eq!(view.immediate(), b"");
    assert_eq!(view.tail(), Tail::new(b"tail"));
}

/// The chain of a parsed descriptor asks for moves that lie in one entry of both lists.
// shows: C-28
#[test]
fn moves_of_a_chain() {
    let bytes = emitted!(&with(Work::Put(chain(&[A, B], &[AB]))));
    let Work::Put(chain) = DescriptorRepr::parse(&bytes).unwrap().work else { panic!() };
    assert_eq!(chain.total_bytes(), Ok(8));
    assert_eq!(
        at_most(2, chain.moves().unwrap()),
        [
            Move { source: 0x1000, destination: 0x30_4050_6070, length: 5 },
            Move { source: 0x2000, destination: 0x30_4050_6075, length: 3 },
        ]
    );
}

/// Two lists are equal if their entries are, and a trace prints the entries.
#[test]
fn lists_are_compared_by_entries() {
    let entries = [Entry { address: 4, length: 2 }, Entry { address: 9, length: 0 }];
    let list = Entries::from(&entries[..]);
    let bytes = emitted!(&with(Work::NapIndirect(list)));
    let Work::NapIndirect(parsed) = DescriptorRepr::parse(&bytes).unwrap().work else { panic!() };
    assert_eq!(parsed, list);
    assert_ne!(parsed, Entries::from(&entries[..1]));
    assert_ne!(parsed, Entries::from(&[entries[1], entries[0]][..]));
    assert_ne!(parsed, Entries::from(&[Entry { length: 3, ..entries[0] }, entries[1]][..]));
    let text = "[Entry { address: 4, length: 2 }, Entry { address: 9, length: 0 }]";
    assert_eq!(format!("{parsed:?}"), text);
}

/// Unequal sums are refused when the descriptor is written, when it is read and when moves are
/// requested; nothing is written.
// shows: C-29
#[test]
fn unequal_sums_are_refused_everywhere() {
    let unequal = WireError::UnequalSums { sources: 8, destinations: 5 };
    let chain_of_8_and_5 = chain(&[A, B], &[A]);
    for work in
        [Work::Put(chain_of_8_and_5), Work::Get { chain: chain_of_8_and_5, return_magic: 0 }]
    {
        let mut buffer = [0xee; 256];
        assert_eq!(with(work).emit(&mut buffer), Err(unequal));
        assert_eq!(buffer, [0xee; 256]);
    }
    assert_eq!(chain_of_8_and_5.moves().err(), Some(unequal));
    let mut bytes = emitted!(&with(Work::Put(chain(&[A, B], &[AB]))));
    bytes[16 * 3 + 8] = 5;
    assert_eq!(DescriptorRepr::parse(&bytes), Err(unequal));
}

/// An immediate NAP carries 2048 bytes and not 2049; an indirect one likewise.
// shows: C-19
#[test]
fn nap_limit_is_exact() {
    let data = [7; 2049];
    let full = with(Work::NapImmediate(&data[..2048]));
    assert_eq!(DescriptorRepr::parse(&emitted!(&full)), Ok(full));
    assert!(full.to_string().starts_with("NAP qp 2 > 3.2.1, 2048 B inside"));
    let refusal = Err(WireError::PayloadTooLong { length: 2049, limit: 2048 });
    let buffer = &mut [0; MAX_DESCRIPTOR_BYTES];
    assert_eq!(with(Work::NapImmediate(&data)).emit(buffer), refusal);

    let list = [Entry { address: 3, length: 2000 }, Entry { address: 5000, length: 48 }];
    let full = with(Work::NapIndirect(list.as_slice().into()));
    let mut bytes = emitted!(&full);
    assert_eq!(DescriptorRepr::parse(&bytes), Ok(full));
    assert!(full.to_string().starts_with("NAP qp 2 > 3.2.1, 2 source entries"));
    bytes[32 + 8] += 1;
    assert_eq!(DescriptorRepr::parse(&bytes).map(|_| ()), refusal);
}

/// 254 entries and a full tail fill a GET's payload exactly; one entry more is refused.
// shows: C-28
#[test]
fn largest_descriptor_fits_one_packet() {
    let list = [A; MAX_ENTRIES / 2 + 1];
    let half = &list[..MAX_ENTRIES / 2];
    let tail = Tail::new(&[1; 16]).unwrap();
    let full = DescriptorRepr { tail, ..with(Work::Put(chain(half, half))) };
    assert_eq!(full.buffer_len(), MAX_DESCRIPTOR_BYTES);
    assert_eq!(DescriptorRepr::parse(&emitted!(&full)), Ok(full));

    let too_many = WireError::TooManyEntries { count: 256, limit: 254 };
    let over = with(Work::Put(chain(&list, &list)));
    assert_eq!(over.emit(&mut [0; 2 * MAX_DESCRIPTOR_BYTES]), Err(too_many));
    let mut bytes = emitted!(&full);
    (bytes[6], bytes[7]) = (128, 128);
    assert_eq!(DescriptorRepr::parse(&bytes), Err(too_many));
}

/// Entries end within 40 bits, and the lengths of a list within the largest transfer.
// shows: C-28
#[test]
fn entries_stay_in_the_address_space() {
    let refuse = |address, length| {
        let list = [Entry { address, length }];
        let error = WireError::AddressOutOfRange { address, length };
        assert_eq!(chain(&list, &list).total_bytes(), Err(error));
        assert_eq!(chain(&list, &list).moves().err(), Some(error));
    };
    refuse(ADDRESS_LIMIT, 1);
    refuse(ADDRESS_LIMIT - 1, 2);
    refuse(u64::MAX, 2);
    refuse(2, u64::MAX);
    refuse(ADDRESS_LIMIT + 1, 0);
    let end = [Entry { address: ADDRESS_LIMIT - 4, length: 4 }];
    assert_eq!(chain(&end, &end).total_bytes(), Ok(4));

    let most = Entry { address: 0, length: MAX_TRANSFER_BYTES };
    assert_eq!(chain(&[most], &[most]).total_bytes(), Ok(MAX_TRANSFER_BYTES));
    let too_long = WireError::TransferTooLong { limit: MAX_TRANSFER_BYTES };
    let over = [most, Entry { address: 0, length: 1 }];
    assert_eq!(chain(&over, &over).total_bytes(), Err(too_long));
}

/// Lengths that do not add up to the given bytes are refused, one byte off in either direction.
// shows: C-28
#[test]
fn descriptor_must_fill_its_bytes_exactly() {
    let mut bytes = emitted!(&with(Work::NapImmediate(b"0123456789abcdefg")));
    assert_eq!(bytes.len(), 64);
    for length in 0..64 {
        let needed = if length < 16 { 16 } else { 64 };
        assert_eq!(
            DescriptorRepr::parse(&bytes[..length]),
            Err(WireError::Truncated { format: "descriptor", length, needed })
        );
    }
    bytes.push(0);
    assert_eq!(
        DescriptorRepr::parse(&bytes),
        Err(WireError::Excess { format: "descriptor", excess: 1 })
    );
}

/// A descriptor is refused for each part that its operation does not use, each reserved bit, each
/// unassigned code and each byte of padding.
// shows: C-28
#[test]
fn what_has_no_meaning_is_refused() {
    let put = emitted!(&with(Work::Put(chain(&[A], &[A]))));
    let nap = emitted!(&with(Work::NapImmediate(b"0123456789abcdefg")));
    let patched = |bytes: &[u8], patches: &[(usize, u8)]| {
        let mut bytes = bytes.to_vec();
        patches.iter().for_each(|(place, value)| bytes[*place] = *value);
        DescriptorRepr::parse(&bytes).map(|_| ()).unwrap_err()
    };
    let part = |part| WireError::UnexpectedPart { part };
    assert_eq!(patched(&put, &[(0, 0x36)]), part("the immediate bit"));
    assert_eq!(patched(&put, &[(0, 0x35), (7, 0), (8, 16)]), part("a source list"));
    assert_eq!(patched(&put, &[(0, 0x25)]), part("a destination list"));
    assert_eq!(patched(&put, &[(7, 0), (8, 16)]), part("immediate data"));
    assert_eq!(patched(&put, &[(3, 1)]), part("a return QP Magic"));
    for code in (0..16).filter(|code| !(5..=7).contains(code)) {
        assert_eq!(
            patched(&put, &[(0, code)]),
            WireError::UnknownCode { field: "packet type", code: code.into() }
        );
    }
    let reserved =
        [6, 7, 19, 22, 23].into_iter().chain(41..48).chain(64 + 12..64 + 16).chain(64 + 21..128);
    for bit in reserved {
        let value = put[bit / 8] | 1 << (bit % 8);
        let error = patched(&put, &[(bit / 8, value)]);
        assert!(matches!(error, WireError::Reserved { .. }), "{bit}: {error}");
    }
    let padding = |field| WireError::Reserved { field, value: 9 };
    (33..48).for_each(|i| assert_eq!(patched(&nap, &[(i, 9)]), padding("immediate padding")));
    (52..64).for_each(|i| assert_eq!(patched(&nap, &[(i, 9)]), padding("tail padding")));
    assert_eq!(patched(&nap, &[(10, 17)]), WireError::TailTooLong { length: 17, limit: 16 });
    assert_eq!(
        patched(&nap, &[(8, 1), (9, 8)]),
        WireError::PayloadTooLong { length: 2049, limit: 2048 }
    );
}

/// Queue pair and traffic class beyond their fields are refused, and nothing is written.
#[test]
fn fields_are_range_checked() {
    let good = with(Work::NapImmediate(b""));
    let mut buffer = [0xee; 64];
    for (bad, field) in [
        (DescriptorRepr { queue_pair: 4, ..good }, "queue pair"),
        (DescriptorRepr { traffic_class: 8, ..good }, "traffic class"),
    ] {
        let error = bad.emit(&mut buffer).unwrap_err();
        assert!(matches!(error, WireError::OutOfRange { field: name, .. } if name == field));
    }
    assert_eq!(
        good.emit(&mut buffer[..31]),
        Err(WireError::BufferTooSmall { format: "descriptor", length: 31, needed: 32 })
    );
    assert_eq!(buffer, [0xee; 64]);
}

proptest! {
    /// The moves of a chain pair source and destination addresses byte for byte.
    // shows: C-28
    #[test]
    fn moves_pair_addresses(lists in values::length_lists(12, 10)) {
        let placed = |base: u64, lengths: &[u64]| -> Vec<Entry> {
            let entries = (1..).zip(lengths);
            entries.map(|(i, length)| Entry { address: base + i * 100, length: *length }).collect()
        };
        let addresses = |list: &[Entry]| -> Vec<u64> {
            list.iter().flat_map(|entry| entry.address..entry.address + entry.length).collect()
        };
        let (sources, destinations) = (placed(0x1000, &lists.0), placed(0x2000, &lists.1));
        let mut paired = (Vec::new(), Vec::new());
        let moves = chain(&sources, &destinations).moves().unwrap();
        for piece in at_most(sources.len() + destinations.len(), moves) {
            paired.0.extend(piece.source..piece.source + piece.length);
            paired.1.extend(piece.destination..piece.destination + piece.length);
        }
        prop_assert_eq!(paired, (addresses(&sources), addresses(&destinations)));
    }

    /// Any descriptor parses back, tail included, and its moves carry as many bytes as its lists
    /// hold.
    // shows: C-10, C-28
    #[test]
    fn descriptors_round_trip(parts in values::descriptor_parts()) {
        let (destination, queue_pair, traffic_class, magic, wants_event, work, tail) = parts;
        let work = work.borrow();
        let descriptor = DescriptorRepr {
            destination, queue_pair, traffic_class, magic, wants_event, work, tail,
        };
        let bytes = emitted!(&descriptor);
        let parsed = DescriptorRepr::parse(&bytes);
        prop_assert_eq!(parsed, Ok(descriptor));
        if let Work::Put(chain) | Work::Get { chain, .. } = parsed.unwrap().work {
            let moves = at_most(MAX_ENTRIES, chain.moves().unwrap());
            let moved: u64 = moves.iter().map(|piece| piece.length).sum();
            prop_assert_eq!(Ok(moved), work.total_bytes());
        }
    }
}
