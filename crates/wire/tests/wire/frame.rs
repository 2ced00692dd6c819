use bellwire_wire::WireError;
use bellwire_wire::frame::challenge::ChallengeBody;
use bellwire_wire::frame::check::{by_instruction, by_table, crc32c, is_sound, prefer_table, seal};
use bellwire_wire::frame::finish::{CloseReason, RefuseBody, RefuseReason};
use bellwire_wire::frame::header::{
    FLAG_ANSWER, FLAG_DISCARDS, FLAG_LOSE, FrameHeader, FrameKind, HEADER_BYTES, MAGIC,
};
use bellwire_wire::frame::open::{OPEN_BYTES, OpenBody};
use bellwire_wire::frame::record::{GateState, News, PACKET_HEADER_MAX_BYTES, PacketWords};
use bellwire_wire::frame::section::{FLAG_CONTINUES, FLAG_UNFINISHED, Section, SectionKind};
use bellwire_wire::frame::seek::SeekBody;
use bellwire_wire::frame::{FRAME_OVERHEAD_BYTES, FunctionId};
use proptest::prelude::*;

use crate::values::no_flip_passes;

fn header() -> FrameHeader {
    FrameHeader {
        kind: FrameKind::Data,
        function: 3,
        from: 5,
        flags: FLAG_LOSE,
        length: 36,
        held_back: 0x0102,
        token: 0x1122_3344_5566_7788,
        sequence: 0xffff_fffe,
        acknowledged: 0x0a0b_0c0d,
        credit: [0x4041_4243, 0x5051_5253],
    }
}

fn frame(header: &FrameHeader, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; FRAME_OVERHEAD_BYTES + body.len()];
    let header = FrameHeader { length: bytes.len() as u16, ..*header };
    header.emit(&mut bytes).unwrap();
    bytes[HEADER_BYTES..HEADER_BYTES + body.len()].copy_from_slice(body);
    seal(&mut bytes).unwrap();
    bytes
}

/// A header has the bytes computed by hand from the diagram, and the check value is the CRC-32C of
/// RFC 3720.
#[test]
fn golden_frame() {
    let bytes = frame(&header(), &[]);
    let expected = [
        0xb1, 0x24, 3, 5, 36, 0, 0x02,
        0x01, // magic, flags and kind, functions, length, held back
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, // token
        0xfe, 0xff, 0xff, 0xff, 0x0d, 0x0c, 0x0b, 0x0a, // sequence, acknowledged
        0x43, 0x42, 0x41, 0x40, 0x53, 0x52, 0x51, 0x50, // credit
    ];
    assert_eq!(bytes[..32], expected);
    assert_eq!(FrameHeader::parse(&bytes), Ok(header()));
    // RFC 3720, appendix B.4: 32 bytes of zeros, and the bytes 0 to 31.
    assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(&(0..32).collect::<Vec<u8>>()), 0x46dd_794e);
}

/// Tables and the processor's instruction give the same check value, of every length and from every
/// address.
#[test]
fn tables_and_instruction_agree() {
    let bytes: Vec<u8> = (0..500u32).map(|n| (n * n + n / 7) as u8).collect();
    for start in 0..17 {
        for end in start..bytes.len() {
            let part = &bytes[start..end];
            assert_eq!(by_table(part), by_instruction(part), "bytes {start} to {end}");
        }
    }
    // RFC 3720, appendix B.4: 32 bytes of zeros, of ones, and the bytes 31 to 0.
    assert_eq!(by_table(&[0; 32]), 0x8a91_36aa);
    assert_eq!(by_table(&[0xff; 32]), 0x62a8_ab43);
    assert_eq!(by_table(&(0..32).rev().collect::<Vec<u8>>()), 0x113f_db5c);
    prefer_table();
    assert_eq!(crc32c(&bytes), by_instruction(&bytes));
}

/// Every flip of one or two bits of a whole frame is noticed, by the header's parser or by the
/// check value. All flips of the header and a short body are tried.
#[test]
fn two_flipped_bits_never_pass() {
    let body = Section::head(SectionKind::Requests, 0, 13).into_iter().chain([7; 13]);
    let bytes = frame(&header(), &body.collect::<Vec<u8>>());
    let passes = |bytes: &[u8]| match FrameHeader::parse(bytes) {
        Ok(header) => is_sound(&bytes[..header.length as usize]),
        Err(_) => false,
    };
    no_flip_passes(&bytes, passes);
}

/// Padding behind a frame does not matter; missing bytes do.
#[test]
fn padding_is_ignored_and_truncation_is_not() {
    let bytes = frame(&header(), &[1, 2, 3]);
    let mut padded = bytes.clone();
    padded.resize(60, 0xaa);
    assert_eq!(FrameHeader::parse(&padded).unwrap().length, 39);
    assert!(is_sound(&padded[..39]));
    for length in 0..bytes.len() {
        assert!(FrameHeader::parse(&bytes[..length]).is_err());
    }
    assert_eq!(
        FrameHeader::parse(&[0; 64]),
        Err(WireError::UnknownCode { field: "first byte", code: 0 })
    );
    let mut unknown = bytes;
    unknown[1] = FLAG_ANSWER << 4 | 15;
    assert_eq!(
        FrameHeader::parse(&unknown),
        Err(WireError::UnknownCode { field: "frame kind", code: 15 })
    );
    unknown[1] = 0x84;
    assert_eq!(
        FrameHeader::parse(&unknown),
        Err(WireError::Reserved { field: "frame flags", value: 8 })
    );
}

/// An eager message of 8 bytes takes 13, and the largest header 25.
#[test]
fn compact_headers_are_compact() {
    let mut buffer = [0; PACKET_HEADER_MAX_BYTES];
    let eager = PacketWords([1 | 8 << 32, 3 | 4 << 32, 0]);
    assert_eq!(eager.emit(&mut buffer), 5);
    assert_eq!(buffer[..5], [1, 0b0001_0100, 8, 3, 4]);
    assert_eq!(PacketWords::parse(&buffer[..5]), Ok(Some((eager, 5))));
    assert_eq!(PacketWords::parse(&buffer[..4]), Ok(None));
    let all = PacketWords([u64::MAX; 3]);
    assert_eq!(all.emit(&mut buffer), 25);
    assert_eq!(PacketWords::parse(&buffer), Ok(Some((all, 25))));
    // The same values in a larger form than needed are refused, so that each packet has one form.
    assert!(PacketWords::parse(&[1, 0b0001_1000, 8, 0, 3, 4]).is_err());
}

/// A number with any count of significant bits, all counts equally likely.
fn number() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0u32..=64).prop_map(|(value, bits)| value.checked_shr(64 - bits).unwrap_or(0))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    /// Written values are read back, for each format.
    #[test]
    fn formats_survive(words in [number(), number(), number()], bytes in any::<[u8; 32]>()) {
        let mut buffer = [0xee; PACKET_HEADER_MAX_BYTES];
        let packet = PacketWords(words);
        let length = packet.emit(&mut buffer);
        prop_assert_eq!(PacketWords::parse(&buffer[..length]), Ok(Some((packet, length))));
        prop_assert_eq!(PacketWords::parse(&buffer[..length - 1]), Ok(None));

        let word = |at: usize| words[at % 3] as u32;
        let open = OpenBody {
            version_low: bytes[0],
            version_high: bytes[1],
            version: bytes[2],
            demanded: word(0),
            features: word(1),
            packet_bytes: word(2),
            from: FunctionId { node: word(1), function: bytes[3] },
            to: FunctionId { node: word(2), function: bytes[4] },
            incarnation: words[0],
            opening: words[1],
            token: words[2],
            peer_incarnation: words[0] ^ words[1],
            window: word(0) as u16,
            frame_bytes: word(1) as u16,
        };
        prop_assert_eq!(OpenBody::parse(&open.emit()), Ok(open));
        let refuse = RefuseBody {
            reason: RefuseReason::Feature,
            version_low: bytes[0],
            version_high: bytes[1],
            features: word(0),
            token: words[1],
        };
        prop_assert_eq!(RefuseBody::parse(&refuse.emit()), Ok(refuse));
        let seek = SeekBody { from: word(0), to: word(1), frame_bytes: word(2), nonce: words[0] };
        prop_assert_eq!(SeekBody::parse(&seek.emit()), Ok(seek));
        let challenge = ChallengeBody { cookie: words[1] };
        prop_assert_eq!(ChallengeBody::parse(&challenge.emit()), Ok(challenge));
        for news in [
            News::Ask { queue_pair: word(0) },
            News::Gate { queue_pair: word(0), state: GateState::Stopped },
        ] {
            prop_assert_eq!(News::parse(news.emit()), Ok(news));
        }
    }

    /// No bytes make a parser panic, and a parser accepts only what its writer writes.
    #[test]
    fn hostile_bytes(mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Some(first) = bytes.first_mut() {
            *first = MAGIC;
        }
        if let Ok(header) = FrameHeader::parse(&bytes) {
            let mut out = [0; HEADER_BYTES];
            header.emit(&mut out).unwrap();
            prop_assert_eq!(&out[..], &bytes[..HEADER_BYTES]);
        }
        if let Ok(Some((words, length))) = PacketWords::parse(&bytes) {
            let mut out = [0; PACKET_HEADER_MAX_BYTES];
            prop_assert_eq!(words.emit(&mut out), length);
            prop_assert_eq!(&out[..length], &bytes[..length]);
        }
        let mut rest = &bytes[..];
        while let Ok(Some((section, behind))) = Section::split(rest) {
            prop_assert_eq!(section.bytes.len() + behind.len() + 4, rest.len());
            rest = behind;
        }
        let mut body = bytes.clone();
        body.resize(OPEN_BYTES, 0);
        if let Ok(open) = OpenBody::parse(&body) {
            prop_assert_eq!(&open.emit()[..], &body[..]);
        }
        let _ = (RefuseBody::parse(&bytes), SeekBody::parse(&bytes), CloseReason::parse(&bytes));
        let _ = ChallengeBody::parse(&bytes);
    }
}

/// A section longer than its bytes, an unknown kind, and flags that its kind lacks are refused.
#[test]
fn odd_sections_are_refused() {
    let head = Section::head(SectionKind::Requests, FLAG_UNFINISHED, 2);
    let bytes = [&head[..], &[1, 2]].concat();
    let (section, rest) = Section::split(&bytes).unwrap().unwrap();
    assert_eq!((section.kind, section.flags), (SectionKind::Requests, FLAG_UNFINISHED));
    assert_eq!((section.bytes, rest), (&[1, 2][..], &[][..]));
    assert_eq!(Section::split(&[]), Ok(None));
    assert!(matches!(Section::split(&bytes[..5]), Err(WireError::Truncated { .. })));
    assert!(matches!(Section::split(&[9, 0, 0, 0]), Err(WireError::UnknownCode { .. })));
    assert!(matches!(Section::split(&[3, 1, 0, 0]), Err(WireError::Reserved { .. })));
}

/// Each kind of frame has the code that PROTOCOL.md gives it, with and without all flags.
#[test]
fn kinds_have_their_codes() {
    for (code, kind) in [
        (1, FrameKind::Open),
        (2, FrameKind::Accept),
        (3, FrameKind::Refuse),
        (4, FrameKind::Data),
        (5, FrameKind::Acknowledge),
        (6, FrameKind::Close),
        (7, FrameKind::Unknown),
        (8, FrameKind::Seek),
        (9, FrameKind::Here),
        (10, FrameKind::Challenge),
    ] {
        for (flags, half) in [(0, 0), (FLAG_ANSWER | FLAG_LOSE | FLAG_DISCARDS, 0x70)] {
            let header = FrameHeader { kind, flags, ..header() };
            let bytes = frame(&header, &[]);
            assert_eq!(bytes[1], half | code);
            assert_eq!(FrameHeader::parse(&bytes), Ok(header));
        }
    }
}

/// An Open frame has the bytes of its diagram.
#[test]
fn golden_open() {
    let open = OpenBody {
        version_low: 1,
        version_high: 2,
        version: 3,
        demanded: 0x0706_0504,
        features: 0x0b0a_0908,
        packet_bytes: 0x0f0e_0d0c,
        from: FunctionId { node: 0x1312_1110, function: 24 },
        to: FunctionId { node: 0x1716_1514, function: 25 },
        incarnation: 0x2726_2524_2322_2120,
        opening: 0x2f2e_2d2c_2b2a_2928,
        token: 0x3736_3534_3332_3130,
        peer_incarnation: 0x3f3e_3d3c_3b3a_3938,
        window: 0x4140,
        frame_bytes: 0x4342,
    };
    // Each byte is its own place, but for the first three and the blanks.
    let mut expected: Vec<u8> = (0..72).collect();
    expected[..4].copy_from_slice(&[1, 2, 3, 0]);
    expected[26..32].fill(0);
    expected[68..].fill(0);
    assert_eq!(open.emit()[..], expected);
    assert_eq!(OpenBody::parse(&expected), Ok(open));
    assert_eq!(open.from.to_string(), "319951120.24");
}

/// Every blank byte of an Open frame must be zero, also when two of them hold the same.
#[test]
fn blanks_of_an_open_frame_are_refused() {
    let blanks = [(3, 0), (26, 0), (27, 8), (28, 0), (31, 24), (68, 0), (71, 24)];
    for (one, one_shift) in blanks {
        for (other, other_shift) in blanks {
            let mut body = [0; OPEN_BYTES];
            body[one] = 0x41;
            body[other] = 0x41;
            let value = 0x41 << one_shift | 0x41 << other_shift;
            let field = "blank of an open frame";
            assert_eq!(OpenBody::parse(&body), Err(WireError::Reserved { field, value }));
        }
    }
    let (format, needed) = ("open frame", OPEN_BYTES);
    let short = WireError::Truncated { format, length: 71, needed };
    assert_eq!(OpenBody::parse(&[0; 71]), Err(short));
    assert_eq!(OpenBody::parse(&[0; 73]), Err(WireError::Excess { format, excess: 1 }));
}

/// The payload's length is in the upper half of the first word, and takes no other bit along.
#[test]
fn payload_length_of_a_packet() {
    let words = PacketWords([0x8765_4321_1122_3344, 5, 6]);
    assert_eq!(words.payload_bytes(), 0x8765_4321);
    let other = PacketWords([0xfedc_ba98_1122_3344, 5, 6]);
    assert_eq!(words.with_payload_bytes(0xfedc_ba98), other);
    assert_eq!(words.with_payload_bytes(0), PacketWords([0x1122_3344, 5, 6]));
}

/// Both queue pair numbers take the bytes that the larger one needs, whichever it is.
#[test]
fn the_larger_queue_pair_number_decides() {
    for (source, destination, bytes) in [
        (0x100, 0, &[7, 0x20, 0, 0, 0, 1][..]),
        (0, 0x100, &[7, 0x20, 0, 1, 0, 0]),
        (3, 3, &[7, 0x10, 3, 3]),
        (0xff, 0x100, &[7, 0x20, 0, 1, 0xff, 0]),
        (0x1_0000, 2, &[7, 0x30, 2, 0, 0, 0, 0, 0, 1, 0]),
    ] {
        let words = PacketWords([7, source << 32 | destination, 0]);
        let mut buffer = [0; PACKET_HEADER_MAX_BYTES];
        let length = words.emit(&mut buffer);
        assert_eq!(&buffer[..length], bytes);
        assert_eq!(PacketWords::parse(bytes), Ok(Some((words, bytes.len()))));
    }
}

/// A section that ends early says how many bytes it needs, its own four included.
#[test]
fn short_sections_say_what_they_need() {
    let truncated =
        |length, needed| Err(WireError::Truncated { format: "section", length, needed });
    let flags = FLAG_CONTINUES | FLAG_UNFINISHED;
    let head = Section::head(SectionKind::Responses, flags, 0x1234);
    assert_eq!(head, [2, 3, 0x34, 0x12]);
    assert_eq!(Section::split(&head[..3]), truncated(3, 4));
    assert_eq!(Section::split(&head), truncated(4, 0x1238));
    let mut bytes = head.to_vec();
    bytes.resize(0x1237, 0);
    assert_eq!(Section::split(&bytes), truncated(0x1237, 0x1238));
    bytes.push(0);
    let section = Section { kind: SectionKind::Responses, flags, bytes: &bytes[4..] };
    assert_eq!(Section::split(&bytes), Ok(Some((section, &[][..]))));
}
