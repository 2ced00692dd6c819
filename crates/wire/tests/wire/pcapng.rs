//! Captures, byte by byte, against the block layouts of draft-ietf-opsawg-pcapng.

use bellwire_wire::pcapng::{Direction, LinkType, Resolution, interface, packet, section};

fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

/// The blocks that begin a file have the bytes of the draft, sections 4.1 and 4.2.
#[test]
fn beginning_of_a_file() {
    let expected = [
        &[0x0a, 0x0d, 0x0d, 0x0a, 44, 0, 0, 0][..],
        &[0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0],
        &[0xff; 8],
        &[4, 0, 5, 0, b'a', b'b', b'c', b'd', b'e', 0, 0, 0],
        &[0, 0, 0, 0, 44, 0, 0, 0],
    ];
    assert_eq!(written(|out| section(out, "abcde")), expected.concat());
    let expected = [
        &[1, 0, 0, 0, 40, 0, 0, 0][..],
        &[148, 0, 0, 0, 0, 0, 0, 0],
        &[2, 0, 2, 0, b'e', b'0', 0, 0],
        &[9, 0, 1, 0, 12, 0, 0, 0],
        &[0, 0, 0, 0, 40, 0, 0, 0],
    ];
    let link = LinkType::PcieTransaction;
    assert_eq!(
        written(|out| interface(out, link, "e0", Resolution::Picoseconds)),
        expected.concat()
    );
}

/// A packet has the bytes of the draft, section 4.3: the high half of the time first, both pieces,
/// padding, and the direction if there is one.
#[test]
fn packets_with_and_without_a_direction() {
    let at = (3, 0x1122_3344_5566_7788);
    let expected = [
        &[6, 0, 0, 0, 52, 0, 0, 0, 3, 0, 0, 0][..],
        &[0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55],
        &[5, 0, 0, 0, 5, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0],
        &[2, 0, 4, 0, 2, 0, 0, 0],
        &[0, 0, 0, 0, 52, 0, 0, 0],
    ];
    let pieces = (&[1, 2][..], &[3, 4, 5][..]);
    assert_eq!(written(|out| packet(out, at, Some(Direction::Sent), pieces)), expected.concat());
    let expected = [
        &[6, 0, 0, 0, 40, 0, 0, 0, 0, 0, 0, 0][..],
        &[0, 0, 0, 0, 9, 0, 0, 0],
        &[4, 0, 0, 0, 4, 0, 0, 0, 1, 2, 3, 4],
        &[0, 0, 0, 0, 40, 0, 0, 0],
    ];
    let pieces = (&[1, 2, 3, 4][..], &[][..]);
    assert_eq!(written(|out| packet(out, (0, 9), None, pieces)), expected.concat());
}

/// A name too long for an option is cut at 65535 bytes, and the lengths of the block still hold.
#[test]
fn long_names_are_cut() {
    let out = written(|out| section(out, &"x".repeat(70_000)));
    let total = 8 + 16 + 4 + 65_536 + 4 + 4;
    assert_eq!(out.len(), total);
    let total = (total as u32).to_le_bytes();
    assert_eq!((&out[4..8], &out[out.len() - 4..]), (&total[..], &total[..]));
    assert_eq!(out[24..29], [4, 0, 0xff, 0xff, b'x']);
    assert_eq!(out[24 + 4 + 65_534..][..6], [b'x', 0, 0, 0, 0, 0]);
}
