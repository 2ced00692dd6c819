//! Tests of the receiver of TLPs, whose times and bytes are computed by hand.

use super::*;
use bellwire_wire::pcie::tlp::{Completion, Header, Request, UNSUPPORTED};

const DEVICE: u16 = 0x41;
const BASE: u64 = 0x12_3456;
const WINDOW: u64 = BASE << WINDOW_BITS;

/// A completion, a store or a request that was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Told {
    /// What stood beside the first beat.
    says: Out,
    beats: Vec<[u8; LANES]>,
}

/// A receiver, and what it told.
struct Driven {
    receive: PcieRx,
    told: Vec<Told>,
    open: Option<Told>,
    dropped: u32,
    /// Cycles in which nothing was taken.
    stalls: usize,
}

impl Driven {
    /// One for which a read of tag 5 waits, of 100 bytes at address 0x1036.
    fn new() -> Driven {
        let mut driven = Driven {
            receive: PcieRx::new(16, 8),
            told: Vec::new(),
            open: None,
            dropped: 0,
            stalls: 0,
        };
        driven.step(In { read_valid: true, read_tag: 5, read_end: 0x1a, ..In::default() });
        driven
    }

    fn step(&mut self, input: In) -> bool {
        let input = In { device: DEVICE, base: BASE, request_ready: true, ..input };
        let out = self.receive.cycle(input);
        let says = Out {
            in_ready: false,
            dropped_valid: false,
            dropped: 0,
            out_last: false,
            out_data: [0; 2],
            ..out
        };
        if out.completion_valid || out.store_valid {
            let told = self.open.get_or_insert(Told { says, beats: Vec::new() });
            assert_eq!(told.says, says, "all beats say the same");
            told.beats.push(bytes_of(out.out_data));
            if out.out_last {
                self.told.extend(self.open.take());
            }
        } else if out.request_valid {
            self.told.push(Told { says, beats: Vec::new() });
        }
        self.dropped += u32::from(out.dropped_valid);
        assert_eq!(out.dropped, self.dropped % 256);
        self.stalls += usize::from(input.in_valid && !out.in_ready);
        out.in_ready
    }

    /// A TLP of these bytes comes; what was told of it.
    fn tlp(&mut self, bytes: &[u8]) -> Vec<Told> {
        for (at, chunk) in bytes.chunks(LANES).enumerate() {
            let mut beat = [0xee; LANES];
            beat[..chunk.len()].copy_from_slice(chunk);
            let input = In {
                in_valid: true,
                in_last: LANES * (at + 1) >= bytes.len(),
                in_empty: ((LANES - chunk.len()) / DW_BYTES) as u8,
                in_data: Beat { bytes: beat, k: 0 }.words(),
                ..In::default()
            };
            while !self.step(input) {}
        }
        (0..3).for_each(|_| assert!(self.step(In::default()) || self.stalls < 99));
        assert_eq!(self.open, None, "what begins ends");
        std::mem::take(&mut self.told)
    }

    /// A header and bytes that count from 1 on.
    fn send(&mut self, header: Header) -> Vec<Told> {
        self.tlp(&bytes(header))
    }
}

fn bytes(header: Header) -> Vec<u8> {
    let mut bytes = vec![0; header.buffer_len()];
    header.emit(&mut bytes).unwrap();
    bytes.extend((1..=4 * header.payload_dw()).map(|at| at as u8));
    bytes
}

/// The first piece of the read of tag 5, up to address 0x1040.
const PIECE: Completion = Completion {
    is_poisoned: false,
    class: 0,
    attributes: 0,
    completer: 0x100,
    status: SUCCESS,
    byte_count: 100,
    requester: DEVICE << FUNCTION_BITS | 3,
    tag: 5,
    lower: 0x36,
    dwords: 3,
};
const STORE: Request = Request {
    is_write: true,
    is_poisoned: false,
    class: 0,
    attributes: 0,
    requester: 7,
    tag: 0,
    address: WINDOW,
    dwords: 2,
    first: 15,
    last: 15,
};
const READ: Request = Request {
    is_write: false,
    class: 5,
    attributes: 6,
    requester: 0x1234,
    tag: 0x99,
    address: WINDOW + 0x8048,
    dwords: 1,
    last: 0,
    ..STORE
};

/// Numbers of tags and bits that gates cannot have are refused, and the least and greatest are not.
#[test]
fn sizes_are_bounded() {
    let builds = |tags, bits| std::panic::catch_unwind(|| PcieRx::new(tags, bits)).is_ok();
    assert!(builds(1, 1) && builds(256, 32));
    assert!(!builds(0, 8) && !builds(257, 8) && !builds(4, 0) && !builds(4, 33));
    assert_eq!(BASE_BITS, 48, "the window has 64 KiB");
}

/// A piece goes on with its bytes on the lanes of their addresses, and says which bytes these are,
/// wherever it begins and however long it is.
#[test]
fn a_piece_has_its_bytes_on_their_lanes() {
    for lower in 0..64_u8 {
        for length in 1..=70_u16 {
            for lacks in [0, 30] {
                let mut driven = Driven::new();
                let dwords = (u16::from(lower % 4) + length).div_ceil(4);
                // A piece that is not the last one ends with a DW.
                let length = if lacks > 0 { 4 * dwords - u16::from(lower % 4) } else { length };
                let byte_count = if lacks > 0 { length + lacks } else { length };
                let read_end = ((u16::from(lower) + byte_count) % 128) as u8;
                driven.step(In { read_valid: true, read_tag: 5, read_end, ..In::default() });
                let piece = Completion { lower, byte_count, dwords, ..PIECE };
                let told = driven.send(Header::Completion(piece));
                assert_eq!((told.len(), driven.dropped), (1, 0), "{piece:?}");
                let says = Out {
                    completion_valid: true,
                    completion_tag: 5,
                    completion_bytes: length,
                    completion_remaining: byte_count,
                    ..Out::default()
                };
                assert_eq!(told[0].says, says);
                let from = usize::from(lower) % LANES / DW_BYTES * DW_BYTES;
                let all = told[0].beats.concat();
                let payload: Vec<u8> = (1..=4 * dwords as u8).collect();
                assert_eq!(all[from..from + payload.len()], payload);
                assert_eq!(all.len(), (from + payload.len()).next_multiple_of(LANES));
            }
        }
    }
}

/// A store into the window goes on with its bytes on their lanes, with both headers. One of which
/// some bytes are not meant, or which is poisoned, has none.
#[test]
fn a_store_has_its_bytes_on_their_lanes() {
    for base in [0x12, BASE] {
        for (at, dwords) in [(0x7000, 2), (0x7004, 1), (0x7008, 5), (0x700c, 30), (0x7ffc, 1)] {
            let mut driven = Driven::new();
            driven.step(In::default());
            let store = Request { address: (base << WINDOW_BITS) + at, dwords, ..STORE };
            let store = Request { last: if dwords == 1 { 0 } else { 15 }, ..store };
            let mut tell = |store: Request| {
                let mut told = Vec::new();
                for chunk in bytes(Header::Request(store)).chunks(LANES) {
                    told.push(chunk.to_vec());
                }
                let last = told.len() - 1;
                let mut all = Vec::new();
                let mut says = None;
                for cycle in 0..told.len() + 2 {
                    let mut input = In { device: DEVICE, base, ..In::default() };
                    if let Some(chunk) = told.get(cycle) {
                        let mut beat = [0; LANES];
                        beat[..chunk.len()].copy_from_slice(chunk);
                        input.in_valid = true;
                        input.in_last = cycle == last;
                        input.in_empty = ((LANES - chunk.len()) / DW_BYTES) as u8;
                        input.in_data = Beat { bytes: beat, k: 0 }.words();
                    }
                    let out = driven.receive.cycle(input);
                    assert!(out.in_ready || cycle > last);
                    if out.store_valid {
                        says = Some((out.store_address, out.store_bytes));
                        all.extend_from_slice(&bytes_of(out.out_data));
                    }
                }
                (says, all)
            };
            let (says, all) = tell(store);
            assert_eq!(says, Some((at as u16, 4 * dwords)));
            let from = at as usize % LANES;
            let payload: Vec<u8> = (1..=4 * dwords as u8).collect();
            assert_eq!(all[from..from + payload.len()], payload);
            for wrong in [
                Request { first: 14, ..store },
                Request { first: 5, ..store },
                Request { is_poisoned: true, ..store },
                Request { last: 7, dwords: dwords.max(2), ..store },
            ] {
                assert_eq!(tell(wrong).0, Some((at as u16, 0)), "{wrong:?}");
            }
            let outside = Request { address: store.address + (1 << WINDOW_BITS), ..store };
            assert_eq!(tell(outside).0, None);
        }
    }
}

/// A beat goes on when the next one has come, and the last DWs in a cycle of their own only if they
/// make a beat. Nothing is taken in that cycle.
#[test]
fn a_beat_takes_a_cycle() {
    let says = |lower, dwords| Completion { lower, dwords, byte_count: 4 * dwords, ..PIECE };
    for (lower, dwords, stalls) in
        [(0x40, 16, 0), (0x44, 15, 0), (0x48, 14, 0), (0x4c, 13, 1), (0x40, 1, 1), (0x4c, 5, 1)]
    {
        let mut driven = Driven::new();
        let read_end = (lower + 4 * dwords as u8) % 128;
        let read = In { read_valid: true, read_tag: 5, read_end, ..In::default() };
        driven.step(read);
        let piece = says(lower, dwords);
        let two = [bytes(Header::Completion(piece)), bytes(Header::Completion(piece))];
        driven.tlp(&two[0]);
        let chunks: Vec<_> = two.iter().map(|tlp| tlp.chunks(LANES)).collect();
        driven.stalls = 0;
        for (tlp, chunk) in chunks.into_iter().flat_map(|tlp| {
            let count = tlp.len();
            tlp.enumerate().map(move |(at, chunk)| (at + 1 == count, chunk))
        }) {
            let mut beat = [0; LANES];
            beat[..chunk.len()].copy_from_slice(chunk);
            let input = In {
                in_valid: true,
                in_last: tlp,
                in_empty: ((LANES - chunk.len()) / DW_BYTES) as u8,
                in_data: Beat { bytes: beat, k: 0 }.words(),
                ..In::default()
            };
            while !driven.step(input) {}
        }
        assert_eq!(driven.stalls, stalls, "{piece:?}");
        (0..3).for_each(|_| assert!(driven.step(In::default()) || stalls > 0));
        assert_eq!((driven.told.len(), driven.dropped), (2, 0));
    }
}

/// A completion that tells a failure is told as one, and so is a poisoned piece that is the last
/// one. A poisoned one behind which more may come is dropped.
#[test]
fn a_read_fails() {
    let mut driven = Driven::new();
    let failed = Completion { status: UNSUPPORTED, dwords: 0, lower: 9, ..PIECE };
    let says = Out {
        completion_valid: true,
        completion_tag: 5,
        completion_failed: true,
        completion_remaining: 100,
        ..Out::default()
    };
    let expected = vec![Told { says, beats: vec![[0; LANES]] }];
    assert_eq!(driven.send(Header::Completion(failed)), expected);
    assert_eq!(driven.dropped, 0);
    let poisoned = Completion { is_poisoned: true, ..PIECE };
    assert_eq!(driven.send(Header::Completion(poisoned)), []);
    assert_eq!(driven.dropped, 1);
    let last = Completion { is_poisoned: true, lower: 0x40, byte_count: 90, dwords: 23, ..PIECE };
    let says = Out { completion_bytes: 90, completion_remaining: 90, ..says };
    let expected = vec![Told { says, beats: vec![[0; LANES]] }];
    assert_eq!(driven.send(Header::Completion(last)), expected);
    assert_eq!(driven.dropped, 1);
    // With other DWs than it says it tells nothing.
    for wrong in [Header::Completion(failed), Header::Completion(last)] {
        let mut bytes = bytes(wrong);
        bytes.extend([0; 4]);
        driven.dropped = driven.receive.output.dropped;
        let before = driven.dropped;
        assert_eq!(driven.tlp(&bytes), []);
        assert_eq!(driven.dropped, before + 1);
    }
}

/// A piece that is of another interface, of no tag, of another status, that begins elsewhere than
/// its read says, or has too many DWs, is dropped and counted.
#[test]
fn a_completer_is_not_believed() {
    let mut driven = Driven::new();
    let wrong = [
        Completion { requester: PIECE.requester ^ 8, ..PIECE },
        Completion { requester: PIECE.requester ^ 0x8000, ..PIECE },
        Completion { tag: 16 + 5, ..PIECE },
        Completion { status: UNSUPPORTED, ..PIECE },
        Completion { dwords: 0, ..PIECE },
        Completion { lower: 0x37, ..PIECE },
        Completion { lower: 0x76, ..PIECE },
        Completion { byte_count: 99, ..PIECE },
        Completion { byte_count: 101, ..PIECE },
        Completion { lower: 0x40, byte_count: 90, dwords: 24, ..PIECE },
        Completion { status: UNSUPPORTED, dwords: 0, requester: 0, ..PIECE },
    ];
    for (at, &wrong) in wrong.iter().enumerate() {
        assert_eq!(driven.send(Header::Completion(wrong)), [], "{wrong:?}");
        assert_eq!(driven.dropped as usize, at + 1);
    }
    let function = Completion { requester: PIECE.requester ^ 7, ..PIECE };
    for good in [PIECE, function, Completion { byte_count: 100 + 128, ..PIECE }] {
        assert_eq!(driven.send(Header::Completion(good)).len(), 1);
    }
    assert_eq!(driven.dropped as usize, wrong.len());
    // A DW that no byte needs is one too many.
    driven.step(In { read_valid: true, read_tag: 5, read_end: 0x20, ..In::default() });
    let whole = Completion { lower: 0x40, byte_count: 96, dwords: 24, ..PIECE };
    assert_eq!(driven.send(Header::Completion(whole)).len(), 1);
    assert_eq!(driven.send(Header::Completion(Completion { dwords: 25, ..whole })), []);
    // A length of 0 is one of 1024 DW, and a count of 0 one of 4096 bytes.
    driven.step(In { read_valid: true, read_tag: 5, read_end: 0, ..In::default() });
    let longest = Completion { lower: 0, byte_count: 4096, dwords: 1024, ..PIECE };
    let told = driven.send(Header::Completion(longest));
    let Out { completion_bytes, completion_remaining, .. } = told[0].says;
    assert_eq!((completion_bytes, completion_remaining), (4096, 4096));
    assert_eq!(told[0].beats.len(), 256);
}

/// A TLP that has fewer or more DWs than its header says never goes on with as many beats as it
/// should have, and is counted.
#[test]
fn a_wrong_length_has_a_wrong_number_of_beats() {
    for lower in [0x40, 0x44, 0x48, 0x4c] {
        for dwords in 1..=12_u16 {
            let mut driven = Driven::new();
            let read_end = (lower + 4 * dwords as u8) % 128;
            driven.step(In { read_valid: true, read_tag: 5, read_end, ..In::default() });
            let piece = Completion { lower, byte_count: 4 * dwords, dwords, ..PIECE };
            let good = bytes(Header::Completion(piece));
            let expected = driven.send(Header::Completion(piece))[0].beats.len();
            for length in 3..=20 {
                let mut bytes = good.clone();
                bytes.resize(4 * length, 7);
                driven.tlp(&bytes);
                let told = driven.receive.output.dropped;
                assert_eq!(driven.dropped, told);
            }
            assert_eq!(driven.dropped, 17, "all but one length is wrong");
            for length in (3..=20).filter(|&length| length != good.len() / 4) {
                let mut bytes = good.clone();
                bytes.resize(4 * length, 7);
                let told = driven.tlp(&bytes);
                let beats = told.first().map_or(0, |told| told.beats.len());
                assert_ne!(beats, expected, "{lower} {dwords} {length}");
            }
        }
    }
}

/// A read of a DW of the window is told with who asks and which bytes it wants, and waits until it
/// is taken. Nothing else is taken meanwhile.
#[test]
fn a_request_waits_until_it_is_taken() {
    let mut driven = Driven::new();
    let asker = Out {
        request_valid: true,
        request_requester: 0x1234,
        request_tag: 0x99,
        request_class: 5,
        request_attributes: 6,
        ..Out::default()
    };
    for (first, lead, count) in
        [(15, 0, 4), (14, 1, 3), (9, 0, 4), (6, 1, 2), (8, 3, 1), (4, 2, 1), (5, 0, 3), (0, 0, 1)]
    {
        let says = Out {
            request_is_read: true,
            request_address: 0x8048,
            request_count: count,
            request_lower: 0x48 + lead,
            ..asker
        };
        let told = driven.send(Header::Request(Request { first, ..READ }));
        assert_eq!(told, [Told { says, beats: vec![] }], "{first:#b}");
    }
    // Elsewhere, or longer, it is not supported.
    for (asks, address, count, lower) in [
        (Request { address: 0x5048, first: 15, ..READ }, 0x5048, 4, 0x48),
        (Request { dwords: 2, first: 12, last: 3, ..READ }, 0x8048, 4, 0x4a),
        (Request { dwords: 3, first: 8, last: 15, ..READ }, 0x8048, 9, 0x4b),
        (Request { dwords: 1024, first: 15, last: 15, ..READ }, 0x8048, 0, 0x48),
    ] {
        let says =
            Out { request_address: address, request_count: count, request_lower: lower, ..asker };
        let told = driven.send(Header::Request(asks));
        assert_eq!(told, [Told { says, beats: vec![] }], "{asks:?}");
    }
    assert_eq!(driven.dropped, 0);

    let read = bytes(Header::Request(READ));
    let mut beat = [0; LANES];
    beat.copy_from_slice(&read);
    let input = In {
        device: DEVICE,
        base: BASE,
        in_valid: true,
        in_last: true,
        in_data: Beat { bytes: beat, k: 0 }.words(),
        ..In::default()
    };
    assert!(driven.receive.cycle(input).in_ready);
    for _ in 0..3 {
        let out = driven.receive.cycle(input);
        assert!(out.request_valid && !out.in_ready && out.request_tag == 0x99);
    }
    let out = driven.receive.cycle(In { request_ready: true, ..input });
    assert!(out.request_valid && !out.in_ready);
    let out = driven.receive.cycle(input);
    assert!(!out.request_valid && out.in_ready && out.request_tag == 0);
    assert!(driven.receive.cycle(input).request_valid);
}

/// Any other request whose sender waits is told, too. All else is dropped and counted: messages,
/// prefixes, and what has no meaning.
#[test]
fn other_types_are_told_or_dropped() {
    let mut driven = Driven::new();
    for kind in 0..=u8::MAX {
        let mut bytes = bytes(Header::Request(Request { dwords: 2, ..READ }));
        bytes[0] = kind;
        bytes.resize(
            if kind & 0x20 != 0 { 16 } else { 12 } + if kind & 0x40 != 0 { 8 } else { 0 },
            0,
        );
        let before = driven.dropped;
        let told = driven.tlp(&bytes);
        let (format, kind) = (kind >> 5, kind & 0x1f);
        let asks =
            format < 4 && [1, 2, 4, 5, 12, 13, 14, 27].contains(&kind) || format < 2 && kind == 0;
        let store = format == 3 && kind == 0;
        assert_eq!(told.len(), usize::from(asks || store), "{format} {kind}");
        assert_eq!(driven.dropped, before + u32::from(!asks && !store));
        if asks && kind != 0 {
            let Out { request_count, request_lower, request_address, request_tag, .. } =
                told[0].says;
            let expected = (4, 0, 0, 0x99);
            assert_eq!((request_count, request_lower, request_address, request_tag), expected);
            assert!(!told[0].says.request_is_read);
        }
    }
    // One with other DWs than it says is dropped.
    let mut wrong = bytes(Header::Request(READ));
    wrong.extend([0; 4]);
    let before = driven.dropped;
    assert_eq!(driven.tlp(&wrong), []);
    assert_eq!(driven.dropped, before + 1);
}
