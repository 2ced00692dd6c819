//! Bytes from outside: each parser refuses them or returns a value that is written as the same
//! bytes, and none panics.

use bellwire_wire::descriptor::{
    Descriptor, DescriptorRepr, MAX_DESCRIPTOR_BYTES, MAX_ENTRIES, Work,
};
use bellwire_wire::event::{EVENT_BYTES, Event, EventRepr};
use bellwire_wire::header::{HEADER_BYTES, Header, HeaderRepr};
use bellwire_wire::packet::{MAX_PACKET_BYTES, PacketRepr};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::values::{self, at_most, emitted};

/// Gives the bytes to every parser and view. Accepted bytes must come back the same. For packets
/// with idle lanes, bytes of the same value are enough.
fn throw_at_all_parsers(bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut buffer = [0xee; MAX_PACKET_BYTES];
    if let Ok(header) = HeaderRepr::parse(bytes) {
        header.emit(&mut buffer).unwrap();
        prop_assert_eq!(&buffer[..HEADER_BYTES], &bytes[..HEADER_BYTES]);
        let _ = header.to_string();
    }
    if let Ok(packet) = PacketRepr::parse(bytes) {
        packet.emit(&mut buffer).unwrap();
        prop_assert_eq!(packet.buffer_len(), bytes.len());
        prop_assert_eq!(PacketRepr::parse(&buffer[..bytes.len()]), Ok(packet));
        let _ = packet.to_string();
    }
    if let Ok(descriptor) = DescriptorRepr::parse(bytes) {
        let mut buffer = [0xee; MAX_DESCRIPTOR_BYTES];
        descriptor.emit(&mut buffer).unwrap();
        prop_assert_eq!(&buffer[..descriptor.buffer_len()], bytes);
        if let Work::Put(chain) | Work::Get { chain, .. } = descriptor.work {
            let moves = at_most(MAX_ENTRIES, chain.moves().unwrap());
            let moved: u64 = moves.iter().map(|piece| piece.length).sum();
            prop_assert_eq!(Ok(moved), chain.total_bytes());
        }
        let _ = descriptor.to_string();
    }
    if let Ok(event) = EventRepr::parse(bytes) {
        event.emit(&mut buffer).unwrap();
        prop_assert_eq!(&buffer[..EVENT_BYTES], &bytes[..EVENT_BYTES]);
        let _ = event.to_string();
    }
    if let Ok(view) = Header::new(bytes) {
        let _ = (view.primitive(), view.length_dw(), view.dwords().to_bytes(), view.source());
    }
    if let Ok(view) = Descriptor::new(bytes) {
        let _ = (view.primitive(), view.tail(), view.sources().total_bytes());
        let _ = view.destinations().iter().count();
    }
    if let Ok(view) = Event::new(bytes) {
        let _ = view.phase();
    }
    Ok(())
}

/// Damage to valid bytes.
#[derive(Clone, Debug)]
enum Damage {
    FlipHeaderBit(usize),
    FlipBit(Index),
    SetByte(Index, u8),
    CutAt(Index),
    Append(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Vec<Damage>> {
    let one = prop_oneof![
        // The formats are densest in their first bytes, so half of the flips go there.
        4 => (0..128_usize).prop_map(Damage::FlipHeaderBit),
        4 => any::<Index>().prop_map(Damage::FlipBit),
        2 => (any::<Index>(), any::<u8>()).prop_map(|(place, byte)| Damage::SetByte(place, byte)),
        1 => any::<Index>().prop_map(Damage::CutAt),
        1 => vec(any::<u8>(), 1..20).prop_map(Damage::Append),
    ];
    vec(one, 0..4)
}

fn damaged(mut bytes: Vec<u8>, damages: Vec<Damage>) -> Vec<u8> {
    for damage in damages {
        match damage {
            Damage::Append(more) => bytes.extend(more),
            _ if bytes.is_empty() => {}
            Damage::FlipHeaderBit(bit) => {
                if let Some(byte) = bytes.get_mut(bit / 8) {
                    *byte ^= 1 << (bit % 8);
                }
            }
            Damage::FlipBit(place) => {
                let bit = place.index(bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            Damage::SetByte(place, byte) => {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            Damage::CutAt(place) => bytes.truncate(place.index(bytes.len())),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Random bytes, up to longer than the largest format.
    #[test]
    fn random_bytes(bytes in prop_oneof![vec(any::<u8>(), 0..80), vec(any::<u8>(), 0..5000)]) {
        throw_at_all_parsers(&bytes)?;
    }

    /// Valid packets, descriptors and events with a few bits or bytes changed, cut or appended.
    #[test]
    fn damaged_bytes(
        header in values::header(),
        descriptor in values::descriptor_parts(),
        event in values::event(),
        tail in values::tail(),
        damages in damage(),
    ) {
        let packet = PacketRepr { header, payload: &[0x55; 4096][..header.span.len()], tail };
        throw_at_all_parsers(&damaged(emitted!(packet), damages.clone()))?;

        let (destination, queue_pair, traffic_class, magic, wants_event, work, tail) = descriptor;
        let work = work.borrow();
        let descriptor = DescriptorRepr {
            destination, queue_pair, traffic_class, magic, wants_event, work, tail,
        };
        throw_at_all_parsers(&damaged(emitted!(descriptor), damages.clone()))?;
        throw_at_all_parsers(&damaged(emitted!(event), damages))?;
    }
}

/// The check of this module catches a parser that ignores a reserved bit (planted: the bit is
/// cleared before parsing).
#[test]
fn canary_ignored_reserved_bit_is_caught() {
    let mut bytes = emitted!(&crate::header::put());
    bytes[1] |= 0x01;
    assert!(HeaderRepr::parse(&bytes).is_err());
    let lax_parse = |bytes: &[u8]| {
        let mut bytes: [u8; HEADER_BYTES] = bytes.try_into().unwrap();
        bytes[1] &= !0x01;
        HeaderRepr::parse(&bytes)
    };
    let back = emitted!(&lax_parse(&bytes).unwrap());
    assert_ne!(back, bytes);
}
