//! Headers of PCIe: the specification's own bits, what is refused, and that each comes back.

use bellwire_wire::WireError;
use bellwire_wire::pcie::tlp::{
    ABORT, Completion, DW_0, Header, OTHER_NON_POSTED, Request, SUCCESS, UNSUPPORTED, dword,
};
use proptest::prelude::*;

use crate::values::emitted;

const READ: Request = Request {
    is_write: false,
    is_poisoned: false,
    class: 0,
    attributes: 0,
    requester: 0,
    tag: 0,
    address: 0,
    dwords: 1,
    first: 0,
    last: 0,
};
const PIECE: Completion = Completion {
    is_poisoned: false,
    class: 0,
    attributes: 0,
    completer: 0,
    status: SUCCESS,
    byte_count: 4,
    requester: 0,
    tag: 0,
    lower: 0,
    dwords: 1,
};

fn request(request: Request) -> Vec<u8> {
    emitted!(Header::Request(request))
}

fn completion(completion: Completion) -> Vec<u8> {
    emitted!(Header::Completion(completion))
}

prop_compose! {
    fn requests()(
        is_write: bool, is_poisoned: bool, class in 0..8u8, attributes in 0..8u8, requester: u16,
        tag: u8, high in prop_oneof![Just(0), any::<u32>()], low: u32, dwords in 1..=1024u16,
        first in 0..16u8, last in 0..16u8
    ) -> Request {
        let address = u64::from(high) << 32 | u64::from(low & !3);
        Request {
            is_write, is_poisoned, class, attributes, requester, tag, address, dwords, first, last
        }
    }
}

prop_compose! {
    fn completions()(
        is_poisoned: bool, class in 0..8u8, attributes in 0..8u8, completer: u16, status in 0..8u8,
        byte_count in 1..=4096u16, requester: u16, tag: u8, lower in 0..128u8, dwords in 0..=1024u16
    ) -> Completion {
        Completion {
            is_poisoned, class, attributes, completer, status, byte_count, requester, tag, lower,
            dwords
        }
    }
}

proptest! {
    /// Each header comes back as it was sent, whatever follows, and says what follows.
    #[test]
    fn headers_round_trip(request in requests(), completion in completions(), behind: u8) {
        for header in [Header::Request(request), Header::Completion(completion)] {
            let mut bytes = emitted!(header);
            let has_data = match header {
                Header::Request(request) => request.is_write,
                Header::Completion(completion) => completion.dwords > 0,
            };
            prop_assert_eq!(bytes[0] & 0x40 != 0, has_data);
            prop_assert_eq!(header.payload_dw() > 0, has_data);
            prop_assert_eq!(bytes[0] & 0x20 != 0, bytes.len() == 16);
            bytes.push(behind);
            prop_assert_eq!(Header::parse(&bytes), Ok(header));
            for length in 0..bytes.len() - 1 {
                let is_short = matches!(
                    Header::parse(&bytes[..length]),
                    Err(WireError::Truncated { needed: 12 | 16, .. })
                );
                prop_assert!(is_short);
            }
        }
    }

    /// Bytes from outside cause no panic, and only what would be emitted is accepted.
    #[test]
    fn strange_headers_are_refused_or_right(
        mut bytes in prop::collection::vec(any::<u8>(), 0..20), is_near: bool
    ) {
        if is_near && let [kind, class, attributes, ..] = bytes.as_mut_slice() {
            *kind &= 0x6a;
            *class &= 0x74;
            *attributes &= 0x73;
        }
        if let Ok(header) = Header::parse(&bytes) {
            prop_assert_eq!(emitted!(header), &bytes[..header.buffer_len()]);
        }
    }
}

/// Whole headers as the specification draws them.
#[test]
fn headers_are_the_specifications() {
    let read = Request { requester: 0x0208, tag: 0x5a, address: 0x1000, first: 3, ..READ };
    assert_eq!(request(read), [0, 0, 0, 1, 2, 8, 0x5a, 3, 0, 0, 0x10, 0]);
    let address = 0x12_3456_7890;
    let write = Request { is_write: true, address, dwords: 1024, first: 15, last: 1, ..READ };
    let expected = [0x60, 0, 0, 0, 0, 0, 0, 0x1f, 0, 0, 0, 0x12, 0x34, 0x56, 0x78, 0x90];
    assert_eq!(request(write), expected);
    let last_short = Request { address: 0xffff_fffc, ..READ };
    assert_eq!(request(last_short)[..4], [0, 0, 0, 1]);
    let first_long = Request { address: 1 << 32, ..READ };
    assert_eq!(request(first_long)[..4], [0x20, 0, 0, 1]);
    assert_eq!(Header::parse(&request(first_long)), Ok(Header::Request(first_long)));
    let piece = Completion { completer: 0x100, requester: 0x0208, tag: 7, lower: 0x44, ..PIECE };
    assert_eq!(completion(piece), [0x4a, 0, 0, 1, 1, 0, 0, 4, 2, 8, 7, 0x44]);
    let failed = Completion { status: UNSUPPORTED, dwords: 0, byte_count: 4096, ..piece };
    assert_eq!(completion(failed), [0x0a, 0, 0, 0, 1, 0, 0x20, 0, 2, 8, 7, 0x44]);
    assert_eq!(completion(Completion { status: ABORT, ..failed })[6], 0x80);
}

/// Each bit of each field stands where the diagram says.
#[test]
fn each_bit_has_its_place() {
    let place = |one: &[u8], other: &[u8]| {
        let differing = |number| (dword(one, number) ^ dword(other, number)) as u32;
        let flips = [0, 1, 2, 3].map(differing);
        let number = flips.iter().position(|&flips| flips != 0).unwrap();
        assert_eq!(flips.iter().map(|flips| flips.count_ones()).sum::<u32>(), 1);
        (number, flips[number].trailing_zeros() as usize)
    };
    let asks = |changed| place(&request(READ), &request(changed));
    let says = |changed| place(&completion(PIECE), &completion(changed));
    assert_eq!(asks(Request { is_write: true, ..READ }), (0, 30));
    assert_eq!(asks(Request { is_poisoned: true, ..READ }), (0, 14));
    assert_eq!(says(Completion { is_poisoned: true, ..PIECE }), (0, 14));
    for (bit, at) in [12, 13, 18].into_iter().enumerate() {
        assert_eq!(asks(Request { attributes: 1 << bit, ..READ }), (0, at));
        assert_eq!(says(Completion { attributes: 1 << bit, ..PIECE }), (0, at));
        assert_eq!(asks(Request { class: 1 << bit, ..READ }), (0, 20 + bit));
        assert_eq!(says(Completion { class: 1 << bit, ..PIECE }), (0, 20 + bit));
        assert_eq!(says(Completion { status: 1 << bit, ..PIECE }), (1, 13 + bit));
    }
    for bit in 0..16 {
        assert_eq!(asks(Request { requester: 1 << bit, ..READ }), (1, 16 + bit));
        assert_eq!(says(Completion { requester: 1 << bit, ..PIECE }), (2, 16 + bit));
        assert_eq!(says(Completion { completer: 1 << bit, ..PIECE }), (1, 16 + bit));
    }
    for bit in 0..8 {
        assert_eq!(asks(Request { tag: 1 << bit, ..READ }), (1, 8 + bit));
        assert_eq!(says(Completion { tag: 1 << bit, ..PIECE }), (2, 8 + bit));
    }
    for bit in 0..4 {
        assert_eq!(asks(Request { first: 1 << bit, ..READ }), (1, bit));
        assert_eq!(asks(Request { last: 1 << bit, ..READ }), (1, 4 + bit));
    }
    for bit in 0..7 {
        assert_eq!(says(Completion { lower: 1 << bit, ..PIECE }), (2, bit));
    }
    for bit in 1..10 {
        assert_eq!(asks(Request { dwords: 1 | 1 << bit, ..READ }), (0, bit));
        assert_eq!(says(Completion { dwords: 1 | 1 << bit, ..PIECE }), (0, bit));
    }
    for bit in [0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11] {
        assert_eq!(says(Completion { byte_count: 4 | 1 << bit, ..PIECE }), (1, bit));
    }
    for bit in 2..32 {
        assert_eq!(asks(Request { address: 1 << bit, ..READ }), (2, bit));
    }
    let long = Request { address: 1 << 40, ..READ };
    for bit in (0..30).filter(|&bit| bit != 8) {
        let high = request(Request { address: long.address | 1 << (32 + bit), ..long });
        assert_eq!(place(&request(long), &high), (2, bit));
        let low = request(Request { address: long.address | 4 << bit, ..long });
        assert_eq!(place(&request(long), &low), (3, bit + 2));
    }
    // Gates have the fields by their names.
    let names: Vec<_> = DW_0.iter().map(|field| (field.name(), field.width())).collect();
    assert_eq!(names[..4], [("format", 3), ("kind", 5), ("reserved_23", 1), ("traffic_class", 3)]);
}

/// What does not fit is refused, and so are other types, reserved bits, and an address in a header
/// that is too long for it.
#[test]
fn what_cannot_be_is_refused() {
    let refused = |header: Header| {
        let mut bytes = [0xee; 16];
        let result = header.emit(&mut bytes);
        assert_eq!(bytes, [0xee; 16]);
        result.unwrap_err()
    };
    for asks in [
        Request { class: 8, ..READ },
        Request { attributes: 8, ..READ },
        Request { dwords: 0, ..READ },
        Request { dwords: 1025, ..READ },
        Request { first: 16, ..READ },
        Request { last: 16, ..READ },
    ] {
        let error = refused(Header::Request(asks));
        assert!(matches!(error, WireError::OutOfRange { .. }), "{asks:?}");
    }
    let error = refused(Header::Request(Request { address: 2, ..READ }));
    assert!(matches!(error, WireError::Misaligned { value: 2, alignment: 4, .. }));
    for says in [
        Completion { class: 8, ..PIECE },
        Completion { attributes: 8, ..PIECE },
        Completion { status: 8, ..PIECE },
        Completion { byte_count: 0, ..PIECE },
        Completion { byte_count: 4097, ..PIECE },
        Completion { lower: 128, ..PIECE },
        Completion { dwords: 1025, ..PIECE },
    ] {
        let error = refused(Header::Completion(says));
        assert!(matches!(error, WireError::OutOfRange { .. }), "{says:?}");
    }
    let short = Header::Request(READ).emit(&mut [0; 11]);
    assert!(matches!(short, Err(WireError::BufferTooSmall { length: 11, needed: 12, .. })));

    let good = [0x00, 0x20, 0x40, 0x60, 0x0a, 0x4a];
    for kind in 0..=u8::MAX {
        let mut bytes = request(Request { address: 1 << 40, dwords: 8, ..READ });
        (bytes[0], bytes[3]) = (kind, if kind == 0x0a { 0 } else { 8 });
        let (result, is_good) = (Header::parse(&bytes), good.contains(&kind));
        let code = u64::from(kind);
        let is_told =
            matches!(result, Err(WireError::UnknownCode { code: told, .. }) if told == code);
        assert_eq!((result.is_ok(), is_told), (is_good, !is_good), "{kind:#x}");
    }
    let reserved = |mut bytes: Vec<u8>, at: usize, bit: u8| {
        bytes[at] |= bit;
        let error = Header::parse(&bytes);
        assert!(matches!(error, Err(WireError::Reserved { .. })), "{at} {bit:#x} {error:?}");
    };
    for (at, bit) in [(1, 0x80), (1, 8), (1, 2), (1, 1), (2, 0x80), (2, 8), (2, 4)] {
        reserved(request(READ), at, bit);
        reserved(completion(PIECE), at, bit);
    }
    let long = Request { address: 1 << 40, ..READ };
    for bit in [1, 2] {
        reserved(request(READ), 11, bit);
        reserved(request(long), 15, bit);
    }
    reserved(completion(PIECE), 6, 0x10);
    reserved(completion(PIECE), 11, 0x80);
    reserved(completion(Completion { dwords: 0, ..PIECE }), 3, 1);
    let mut bytes = request(long);
    bytes[8..12].fill(0);
    assert!(matches!(Header::parse(&bytes), Err(WireError::UnknownCode { code: 0, .. })));
}

/// Locked reads, I/O, both types of configuration, three atomic operations and deferrable writes
/// want a completion, and nothing else but reads.
#[test]
fn other_types_that_want_a_completion() {
    let types: Vec<u32> = (0..32).filter(|kind| OTHER_NON_POSTED >> kind & 1 == 1).collect();
    assert_eq!(types, [1, 2, 4, 5, 12, 13, 14, 27]);
}

/// A header tells itself in a line.
#[test]
fn headers_are_told_in_a_line() {
    let read = Request { address: 0x1000, dwords: 8, tag: 3, ..READ };
    assert_eq!(Header::Request(read).to_string(), "read of 8 DW at 0x1000, tag 3");
    let write = Request { is_write: true, ..read };
    assert_eq!(Header::Request(write).to_string(), "write of 8 DW at 0x1000, tag 3");
    let piece = Completion { byte_count: 32, dwords: 8, tag: 3, ..PIECE };
    let text = "completion of tag 3, 32 B left, 8 DW";
    assert_eq!(Header::Completion(piece).to_string(), text);
    let failed = Completion { status: ABORT, ..piece };
    assert_eq!(Header::Completion(failed).to_string(), text.to_owned() + ", status 4");
}
