use super::*;
use crate::cycle::packer;
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::header::{HEADER_BYTES, HeaderRepr};
use bellwire_wire::primitive::Primitive;
use bellwire_wire::span::ByteSpan;

/// Small interfaces, with room for all packets that have a place.
const NIC: nic_core::Shape = nic_core::Shape {
    functions: 8,
    bells: 4,
    tags: 8,
    timeout: 1500,
    beats: 64,
    reads: 8,
    request: 8,
    longest: 32,
    fetches: 4,
    places: 2,
    events: 4,
    gets: 2,
    packer: packer::Shape { beats: 32, packets: 4, payload: 128, longest: 256 },
    packets: 2,
    depth: 4,
    room: 66,
    write: 128,
    slots: 4,
    batch: 2,
};

/// An interface has a place and room for each packet that may come, and channels are numbered.
#[test]
fn sizes_are_bounded() {
    let builds =
        |nic, channels| std::panic::catch_unwind(|| ChppQuad::new(Shape { nic, channels })).is_ok();
    assert!(builds(NIC, 1) && builds(NIC, 3));
    assert!(!builds(NIC, 0) && !builds(NIC, 4));
    assert!(!builds(nic_core::Shape { room: 65, ..NIC }, 2));
    assert!(!builds(nic_core::Shape { depth: 1, ..NIC }, 2));
    // A NAP may be longer than a GET.
    let packer = packer::Shape { beats: 64, longest: 512, ..NIC.packer };
    assert!(!builds(nic_core::Shape { packer, ..NIC }, 2));
    assert!(builds(nic_core::Shape { packer, room: 70, ..NIC }, 2));
}

/// After reset hosts are listened to, and nothing moves.
#[test]
fn nothing_is_offered_at_first() {
    let mut quad = ChppQuad::new(Shape { nic: NIC, channels: 2 });
    for _ in 0..3 {
        assert_eq!(quad.cycle(In::default()), Out { rx_ready: [true; PORTS], ..Out::default() });
    }
}

/// The port of a packet is the processor of its header.
#[test]
fn a_packet_names_its_port() {
    for cpu in 0..PORTS as u8 {
        let end = |cpu| Endpoint::new(cpu, 5, 2).unwrap();
        let header = HeaderRepr {
            primitive: Primitive::Put,
            traffic_class: 7,
            requester_id: 0xffff,
            magic: 0xff,
            source: end(15 - cpu),
            destination: end(cpu),
            wants_event: true,
            span: ByteSpan::new(0xff_ffff_ff00, 8).unwrap(),
        };
        let mut bytes = [0; HEADER_BYTES];
        header.emit(&mut bytes).unwrap();
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        assert_eq!(goal([word(0), word(8)]), cpu);
    }
}

/// There is a number for each beat inside: a channel holds two packets of 33 beats, each port has
/// three channels, and four beats of it are on their way.
#[test]
fn each_beat_inside_has_a_number() {
    let quad = ChppQuad::new(Shape { nic: NIC, channels: 2 });
    assert_eq!(quad.carried.len(), 4 * (3 * 2 * 33 + 4));
}

/// Packets inside are those of the channels of their class, at this input.
#[test]
fn packets_inside_are_counted_by_class() {
    let mut quad = ChppQuad::new(Shape { nic: NIC, channels: 2 });
    quad.leaves.packets[1][..3].copy_from_slice(&[2, 3, 4]);
    assert_eq!([quad.inside(0), quad.inside(1)], [[0, 0], [5, 4]]);
}
