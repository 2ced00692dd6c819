//! The packets of the direct link: their sizes, what is refused, and that no small damage passes.

use bellwire_wire::WireError;
use bellwire_wire::frame::check::crc32c;
use bellwire_wire::link::dllp::{Dllp, Granted, Stage, crc16};
use bellwire_wire::link::llp::{Llp, SEQUENCES};
use bellwire_wire::link::network::{Class, NetworkHeader, OPTIMISED_BYTES, STANDARD_BYTES};
use bellwire_wire::link::segment::{SEGMENT_BYTES, Segment};
use bellwire_wire::link::tlp::{MAX_TLP_BYTES, Tlp};
use proptest::prelude::*;

use crate::values::{emitted, no_flip_passes};

fn plain(payload: &[u8]) -> Tlp<'_> {
    Tlp { channel: 0, requester: 0, tag: 0, address: 0, payload }
}

fn llp_bytes(sequence: u16, tlp: &[u8]) -> Vec<u8> {
    emitted!(Llp { sequence, tlp })
}

/// A TLP with a right check over any content.
fn sealed(mut content: Vec<u8>) -> Vec<u8> {
    let check = crc32c(&content);
    content.extend(check.to_le_bytes());
    content
}

fn header() -> impl Strategy<Value = NetworkHeader> {
    let class = prop_oneof![Just(Class::Coherence), Just(Class::Block), Just(Class::Guest)];
    (class, 0..64u8, 0..16u8, 0..16u8, any::<u8>(), 0..1u64 << 40).prop_map(
        |(class, operation, target, source, tag, address)| NetworkHeader {
            class,
            operation,
            target,
            source,
            tag,
            address,
        },
    )
}

proptest! {
    /// Both forms of the network header come back as they were sent, and the optimised one through
    /// the address of a TLP.
    // shows: S-09, S-10, S-11
    #[test]
    fn network_headers_round_trip(header in header(), data in prop::collection::vec(any::<u8>(), 0..=124)) {
        let word = header.emit_optimised().unwrap();
        prop_assert_eq!(NetworkHeader::parse_optimised(word), Ok(header));
        prop_assert_eq!(NetworkHeader::parse_standard(&header.emit_standard().unwrap()), Ok(header));
        let data = &data[..data.len() / 4 * 4];
        let bytes = emitted!(&Tlp { address: word, ..plain(data) });
        let back = Tlp::parse(&bytes).unwrap();
        prop_assert_eq!(NetworkHeader::parse_optimised(back.address), Ok(header));
        prop_assert_eq!(back.payload, data);
    }

    /// A TLP takes any address on either channel and parses back.
    // shows: S-12
    #[test]
    fn every_address_is_accepted(
        channel in 0..2u8, requester: u16, tag: u8, address: u64, dwords in 0..=128usize, fill: u8
    ) {
        let payload = vec![fill; dwords * 4];
        let tlp = Tlp { channel, requester, tag, address, payload: &payload };
        let bytes = emitted!(&tlp);
        prop_assert_eq!(Tlp::parse(&bytes), Ok(tlp));
        let frame = llp_bytes(requester % 4096, &bytes);
        prop_assert_eq!(Llp::parse(&frame), Ok(Llp { sequence: requester % 4096, tlp: &bytes }));
    }

    /// Bytes from outside cause no panic, and only what would be emitted is accepted.
    #[test]
    fn strange_bytes_are_refused_or_right(mut bytes in prop::collection::vec(any::<u8>(), 0..80), reseal: bool) {
        if reseal {
            bytes = sealed(bytes);
        }
        if let Ok(tlp) = Tlp::parse(&bytes) {
            prop_assert_eq!(emitted!(&tlp), bytes.clone());
        }
        let _ = Llp::parse(&bytes);
        let _ = NetworkHeader::parse_standard(&bytes);
    }

    /// Each of the link layer's packets comes back as it was sent.
    // shows: S-15, S-16
    #[test]
    fn link_packets_round_trip(kind in 0..5usize, channel in 0..2u8, headers: u8, low in 0..4096u16) {
        let granted = Granted { headers, data: low };
        let credits = |stage| Dllp::Credits { stage, channel, granted };
        let packet = [
            Dllp::Ack { sequence: low },
            Dllp::Nak { sequence: low },
            credits(Stage::Init1),
            credits(Stage::Init2),
            credits(Stage::Update),
        ][kind];
        prop_assert_eq!(Dllp::parse(&packet.emit().unwrap()), Ok(packet));
    }
}

/// A network packet of L DW has a 4-DW header besides. It takes L + 5 DW in the standard form and
/// L + 1 in the optimised one.
// shows: S-10, S-11, B-20
#[test]
fn sizes_are_those_of_the_paper() {
    for length_dw in [4usize, 16, 20, 32, 64, 128] {
        let data = vec![7; (length_dw - 4) * 4];
        let standard = [&[0; STANDARD_BYTES], data.as_slice()].concat();
        assert_eq!(emitted!(&plain(&standard)).len(), (length_dw + 5) * 4);
        assert_eq!(emitted!(&plain(&data)).len(), (length_dw + 1) * 4);
    }
    assert_eq!((STANDARD_BYTES, OPTIMISED_BYTES), (4 * 4, 2 * 4));
}

/// All but posted writes is refused, even with a sound check: reads, completions, messages, I/O.
// shows: S-13
#[test]
fn other_types_are_turned_away() {
    let sound = emitted!(&plain(&[1, 2, 3, 4]));
    for kind in (0..=u8::MAX).filter(|&kind| kind != 0x60) {
        let mut content = sound[..sound.len() - 4].to_vec();
        content[0] = kind;
        assert_eq!(Tlp::parse(&sealed(content)), Err(WireError::NotPosted { byte: kind }));
    }
    let too_long = vec![0; MAX_TLP_BYTES];
    assert!(matches!(
        plain(&too_long[..516]).emit(&mut vec![0; 600]),
        Err(WireError::PayloadTooLong { .. })
    ));
    assert!(Tlp { channel: 2, ..plain(&[]) }.emit(&mut [0; 20]).is_err());
}

/// No flip of one or two bits of a frame or of a link packet passes, at any places.
// shows: S-16
#[test]
fn two_flipped_bits_never_pass() {
    let frame = llp_bytes(0x5a5, &emitted!(&plain(&[0xa5; 8])));
    let packet = Dllp::Ack { sequence: 0x123 }.emit().unwrap();
    let flips = no_flip_passes(&frame, |bytes| Llp::parse(bytes).is_ok());
    assert_eq!(flips, 288 * 289 / 2);
    no_flip_passes(&packet, |bytes| Dllp::parse(bytes.try_into().unwrap()).is_ok());
}

/// Whether each of these values differs from all that the others make together.
fn are_independent(values: &[u32]) -> bool {
    let mut rests: Vec<u32> = Vec::new();
    values.iter().all(|&value| {
        let rest = rests.iter().fold(value, |rest, &other| rest.min(rest ^ other));
        rests.push(rest);
        rest != 0
    })
}

/// Whether so many bits in a row are independent in the CRC, wherever they are: no burst of them
/// passes. `flips` has what each bit of the content flips there.
fn are_bursts_noticed(flips: &[u32], crc: impl Iterator<Item = u32>, bits: usize) -> bool {
    let flips: Vec<u32> = flips.iter().copied().chain(crc).collect();
    flips.windows(bits).all(are_independent)
}

/// No burst of up to 32 bits of a frame passes, and none of up to 15 bits of a link packet,
/// wherever it is. Of so many bits in a row, each flips other bits of the CRC than any of the
/// others do together. A bit's place from the end counts alone, so the longest frame speaks for
/// all. Bits are in the order of the line, which has the lowest one of a byte first.
// shows: S-16
#[test]
fn no_short_burst_passes() {
    let with = |zeros: &[u8], bit: usize| {
        let mut content = zeros.to_vec();
        content[bit / 8] = 1 << (bit % 8);
        content
    };
    let zeros = vec![0; MAX_TLP_BYTES + 2];
    let of_zeros = crc32c(&zeros);
    let flips: Vec<u32> =
        (0..8 * zeros.len()).map(|bit| crc32c(&with(&zeros, bit)) ^ of_zeros).collect();
    let noticed = |bits| are_bursts_noticed(&flips, (0..32).map(|bit| 1 << bit), bits);
    assert_eq!([32, 33].map(noticed), [true, false]);
    let zeros = [0; 4];
    let flips: Vec<u32> =
        (0..32).map(|bit| (crc16(&with(&zeros, bit)) ^ crc16(&zeros)).into()).collect();
    // The high byte of this CRC goes first.
    let noticed = |bits| are_bursts_noticed(&flips, (0..16).map(|bit: u32| 1 << (bit ^ 8)), bits);
    assert_eq!([15, 16].map(noticed), [true, false]);
}

/// Packets of the link layer have these bytes. Their CRCs come from a long division of polynomials,
/// apart from this code.
#[test]
fn link_packets_have_known_bytes() {
    let credits = |stage, channel, headers, data| {
        let granted = Granted { headers, data };
        Dllp::Credits { stage, channel, granted }
    };
    for (packet, text, bytes) in [
        (Dllp::Ack { sequence: 17 }, "ack 17", 0x5c00_0000_11cd_f6fd_u64),
        (Dllp::Nak { sequence: 0xfff }, "nak 4095", 0x5c10_000f_ffeb_e8fd),
        (
            credits(Stage::Init1, 0, 0, 0),
            "first init of VC0: 0 headers, 0 data",
            0x5c40_0000_0012_4cfd,
        ),
        (
            credits(Stage::Init2, 1, 255, 4095),
            "second init of VC1: 255 headers, 4095 data",
            0x5cc1_3fcf_ff84_fdfd,
        ),
        (
            credits(Stage::Update, 0, 40, 92),
            "update of VC0: 40 headers, 92 data",
            0x5c80_0a00_5c19_76fd,
        ),
    ] {
        assert_eq!(packet.emit(), Ok(bytes.to_be_bytes()), "{text}");
        assert_eq!(packet.to_string(), text);
    }
}

/// Sound packets of the link layer with reserved bits or an unknown type are refused by name. So is
/// a packet whose fields do not fit.
#[test]
fn strange_link_packets_are_refused() {
    let reserved = |field, value| Err(WireError::Reserved { field, value });
    let acknowledgement = "reserved bits 23:12 of the acknowledgement";
    let unknown = |code| Err(WireError::UnknownCode { field: "type of the DLLP", code });
    for (bytes, refusal) in [
        (0x5c00_0010_1256_50fd_u64, reserved(acknowledgement, 1)),
        (0x5c10_8000_005d_fefd, reserved(acknowledgement, 0x800)),
        (0x5c80_4000_00fc_e3fd, reserved("reserved bits 23:22 of the credits", 1)),
        (0x5c41_0020_011b_c4fd, reserved("reserved bits 13:12 of the credits", 2)),
        (0x5cc0_0030_0050_95fd, reserved("reserved bits 13:12 of the credits", 3)),
        (0x5c20_0000_00a2_c3fd, unknown(0x20)),
        (0x5c42_0000_00af_b0fd, unknown(0x42)),
    ] {
        assert_eq!(Dllp::parse(&bytes.to_be_bytes()), refusal);
    }
    let refusal = |field, value, limit| Err(WireError::OutOfRange { field, value, limit });
    assert_eq!(Dllp::Ack { sequence: 4096 }.emit(), refusal("sequence number", 4096, 4095));
    let of_channel = |channel, data| Dllp::Credits {
        stage: Stage::Update,
        channel,
        granted: Granted { headers: 0, data },
    };
    assert_eq!(of_channel(2, 0).emit(), refusal("virtual channel", 2, 1));
    assert_eq!(of_channel(1, 4096).emit(), refusal("data credits", 4096, 4095));
}

/// A sound TLP with reserved bits, a length that is not its own, or a channel that does not exist
/// is refused by name.
#[test]
fn strange_packets_are_refused() {
    let sound = emitted!(&Tlp { channel: 1, ..plain(&[1, 2, 3, 4]) });
    assert_eq!(sound[..4], [0x60, 0x10, 0x80, 1]);
    let with = |index: usize, byte: u8| {
        let mut content = sound[..sound.len() - 4].to_vec();
        content[index] = byte;
        Tlp::parse(&sealed(content)).map(|_| ())
    };
    let reserved =
        |field, bit: u8| Err(WireError::Reserved { field, value: u64::from(1_u8 << bit) });
    for bit in [0, 1, 2, 3, 7] {
        let refusal = reserved("reserved bits of TLP byte 1", bit);
        assert_eq!(with(1, 0x10 ^ 1 << bit), refusal);
    }
    for bit in 2..8 {
        assert_eq!(with(2, 0x80 ^ 1 << bit), reserved("reserved bits of TLP byte 2", bit));
    }
    for bit in 0..8 {
        assert_eq!(with(7, 0xff ^ 1 << bit), reserved("byte enables that are off", bit));
    }
    for channel in 2..8 {
        let (field, code) = ("traffic class", channel.into());
        assert_eq!(with(1, channel << 4), Err(WireError::UnknownCode { field, code }));
    }
    let mismatch = |announced| Err(WireError::PayloadMismatch { announced, length: 4 });
    assert_eq!((with(3, 0), with(3, 2)), (mismatch(0), mismatch(8)));
    let too_long = |length| Err(WireError::PayloadTooLong { length, limit: 512 });
    assert_eq!((with(3, 128), with(3, 129)), (mismatch(512), too_long(516)));
    assert_eq!((with(2, 0x81), with(2, 0x83)), (too_long(1028), too_long(3076)));
}

/// What no TLP or frame can carry is refused when it is written, and the buffer stays as it was.
#[test]
fn packets_that_do_not_fit_are_refused() {
    let mut buffer = [0xee; 600];
    let long = [0; 516];
    let too_long = WireError::PayloadTooLong { length: 516, limit: 512 };
    assert_eq!(plain(&long).emit(&mut buffer), Err(too_long));
    let (field, alignment) = ("TLP payload length", 4);
    let misaligned = WireError::Misaligned { field, value: 510, alignment };
    assert_eq!(plain(&long[..510]).emit(&mut buffer), Err(misaligned));
    let out_of_range = |field, value, limit| Err(WireError::OutOfRange { field, value, limit });
    let tlp = Tlp { channel: 2, ..plain(&[]) };
    assert_eq!(tlp.emit(&mut buffer), out_of_range("virtual channel", 2, 1));
    let frame = Llp { sequence: SEQUENCES, tlp: &[] };
    assert_eq!(frame.emit(&mut buffer), out_of_range("sequence number", 4096, 4095));
    let small = |format, length, needed| Err(WireError::BufferTooSmall { format, length, needed });
    assert_eq!(plain(&[0; 4]).emit(&mut buffer[..23]), small("TLP", 23, 24));
    let frame = Llp { sequence: SEQUENCES - 1, tlp: &[0; 4] };
    assert_eq!(frame.emit(&mut buffer[..11]), small("LLP", 11, 12));
    assert_eq!(buffer, [0xee; 600]);
    assert_eq!(frame.emit(&mut buffer[..12]), Ok(()));
}

/// Before the check has come, a glance tells channel and sequence number, and refuses what cannot
/// be a packet of this link.
#[test]
fn glances_tell_channel_and_sequence() {
    let channel_of = |bytes: &[u8]| Tlp::glance_channel(bytes);
    for channel in [0, 1] {
        let bytes = emitted!(&Tlp { channel, ..plain(&[]) });
        assert_eq!(channel_of(&bytes[..16]), Some(channel));
        assert_eq!(channel_of(&bytes[..15]), None);
        for (index, byte) in [(0, 0x40), (1, 0x20), (1, 0x11), (1, 0x90)] {
            let mut other = bytes.clone();
            other[index] = byte;
            assert_eq!(channel_of(&other), None, "{byte:#x}");
        }
    }
    let mut bytes = llp_bytes(0xfff, &[1, 2, 3]);
    assert_eq!(Llp::glance(&bytes), Some((0xfff, &[1, 2, 3][..])));
    assert_eq!(Llp::glance(&bytes[..8]), Some((0xfff, &[][..])));
    assert_eq!(Llp::glance(&bytes[..7]), None);
    bytes[1..3].copy_from_slice(&[0x10, 0x00]);
    assert_eq!(Llp::glance(&bytes), None);
}

/// A sound frame with one sequence number too high is damaged, and one that is too short says so.
#[test]
fn sequence_numbers_have_twelve_bits() {
    let framed = |content: &[u8]| [&[0xfb], sealed(content.to_vec()).as_slice(), &[0xfd]].concat();
    assert_eq!(Llp::parse(&framed(&[0x0f, 0xff])), Ok(Llp { sequence: 4095, tlp: &[] }));
    let damaged = WireError::Damaged { format: "LLP" };
    assert_eq!(Llp::parse(&framed(&[0x10, 0x00])), Err(damaged));
    let short = WireError::Truncated { format: "LLP", length: 7, needed: 8 };
    assert_eq!(Llp::parse(&framed(&[0])), Err(short));
    let short = WireError::Truncated { format: "TLP", length: 19, needed: 20 };
    assert_eq!(Tlp::parse(&[0; 19]), Err(short));
}

/// What a trace prints of a packet of the link.
#[test]
fn link_packets_are_described() {
    let tlp = Tlp { channel: 1, address: 0x4000, ..plain(&[0; 64]) };
    assert_eq!(tlp.to_string(), "posted write, VC1, address 0x4000, 64 B");
    let class = Class::Coherence;
    let header =
        NetworkHeader { class, operation: 3, target: 2, source: 0, tag: 7, address: 0x4000 };
    assert_eq!(header.to_string(), "Coherence 3, node 0 to 2, tag 7, 0x4000");
}

/// A segment's address has a bit for each thing that it says, and no other bit may be set.
#[test]
fn a_segment_is_six_bits_of_the_address() {
    for address in 0..1 << 6 {
        let segment = Segment::parse(address).unwrap();
        let (first, last, to) = (address >> 5 == 1, address >> 4 & 1 == 1, (address & 15) as u8);
        assert_eq!(segment, Segment { first, last, to });
        assert_eq!(segment.emit(), Ok(address));
    }
    for bit in 6..64 {
        let reserved = WireError::Reserved { field: "upper bits of a segment", value: 1 << bit };
        assert_eq!(Segment::parse(1 << bit | 0x3f), Err(reserved));
    }
    let far = Segment { to: 16, ..Segment::default() };
    let error = WireError::OutOfRange { field: "lane", value: 16, limit: 15 };
    assert_eq!((far.emit(), SEGMENT_BYTES), (Err(error), 512));
}
