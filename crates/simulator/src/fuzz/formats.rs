//! The formats of the cHPP interface: headers, packets, chain descriptors, doorbells, events.

use bellwire_wire::descriptor::{Descriptor, DescriptorRepr, MAX_DESCRIPTOR_BYTES, Work};
use bellwire_wire::doorbell::DoorbellRepr;
use bellwire_wire::event::{EVENT_BYTES, Event, EventRepr};
use bellwire_wire::header::{HEADER_BYTES, Header, HeaderRepr};
use bellwire_wire::packet::{MAX_PACKET_BYTES, PacketRepr};
use bellwire_wire::recut::recut;

/// Gives the bytes to each parser and view of these formats, and to the re-cutter of chains. A
/// parser may accept only what its writer writes.
pub fn parse_formats(bytes: &[u8]) {
    let mut room = [0; MAX_PACKET_BYTES];
    if let Ok(header) = HeaderRepr::parse(bytes) {
        header.emit(&mut room).expect("there is room");
        assert_eq!(room[..HEADER_BYTES], bytes[..HEADER_BYTES]);
    }
    if let Ok(packet) = PacketRepr::parse(bytes) {
        packet.emit(&mut room).expect("there is room");
        // Bytes in disabled lanes may have any value.
        assert_eq!(PacketRepr::parse(&room[..packet.buffer_len()]), Ok(packet));
    }
    if let Ok(event) = EventRepr::parse(bytes) {
        event.emit(&mut room).expect("there is room");
        assert_eq!(room[..EVENT_BYTES], bytes[..EVENT_BYTES]);
    }
    if let Ok(descriptor) = DescriptorRepr::parse(bytes) {
        parse_descriptor(&descriptor, bytes);
    }
    if let Some(&word) = bytes.first_chunk()
        && let Ok(doorbell) = DoorbellRepr::parse(u64::from_le_bytes(word))
    {
        assert_eq!(doorbell.emit(), Ok(u64::from_le_bytes(word)));
    }
    if let Ok(view) = Header::new(bytes) {
        let _ = (view.primitive(), view.length_dw(), view.dwords().to_bytes(), view.source());
    }
    if let Ok(view) = Descriptor::new(bytes) {
        let _ = (view.primitive(), view.tail(), view.sources().total_bytes());
        assert_eq!(view.destinations().iter().count(), view.destinations().len());
    }
    if let Ok(view) = Event::new(bytes) {
        let _ = view.phase();
    }
    recut_lists(bytes);
}

fn parse_descriptor(descriptor: &DescriptorRepr, bytes: &[u8]) {
    let mut room = [0; MAX_DESCRIPTOR_BYTES];
    descriptor.emit(&mut room).expect("there is room");
    assert_eq!(room[..descriptor.buffer_len()], *bytes);
    if let Work::Put(chain) | Work::Get { chain, .. } = descriptor.work {
        let moves = chain.moves().expect("a chain that was parsed has equal sums");
        assert_eq!(Ok(moves.map(|piece| piece.length).sum()), chain.total_bytes());
    }
}

/// Cuts the bytes into two lists of lengths, most of them with equal sums: the pieces must cover
/// both exactly.
fn recut_lists(bytes: &[u8]) {
    let Some((&at, lengths)) = bytes.split_first() else { return };
    let (left, right) = lengths.split_at((at as usize).min(lengths.len()));
    // The highest bit makes a length huge, to reach sums beyond 64 bits.
    let length = |byte: &u8| if *byte < 0x80 { *byte as u64 } else { u64::MAX >> (*byte & 0x3f) };
    let (left, mut right): (Vec<u64>, Vec<u64>) =
        (left.iter().map(length).collect(), right.iter().map(length).collect());
    let sum = |list: &[u64]| list.iter().map(|length| *length as u128).sum::<u128>();
    if at & 1 == 0 && sum(&left) > sum(&right) && sum(&left) - sum(&right) <= u64::MAX as u128 {
        right.push((sum(&left) - sum(&right)) as u64);
    }
    let Ok(pieces) = recut(left.iter().copied(), right.iter().copied()) else {
        assert!(sum(&left) != sum(&right) || sum(&left) > u64::MAX as u128);
        return;
    };
    let mut covered = [vec![0; left.len()], vec![0; right.len()]];
    for piece in pieces {
        assert!(piece.length > 0);
        assert_eq!(covered[0][piece.source_index], piece.source_offset);
        assert_eq!(covered[1][piece.destination_index], piece.destination_offset);
        covered[0][piece.source_index] += piece.length;
        covered[1][piece.destination_index] += piece.length;
    }
    assert_eq!(covered, [left, right]);
}
