//! The packets of the direct link: their sizes, what is refused, and that no small damage passes.

use bellwire_wire::WireError;
use bellwire_wire::frame::check::crc32c;
use bellwire_wire::link::dllp::{Dllp, Granted, Stage};
use bellwire_wire::link::llp::Llp;
use bellwire_wire::link::network::{Class, NetworkHeader, OPTIMISED_BYTES, STANDARD_BYTES};
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
