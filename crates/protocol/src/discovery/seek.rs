//! Where is this node? Seek asks and Here answers, in a frame each
//! ([`bellwire_wire::frame::seek`]).

use bellwire_wire::frame::header::{FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::seek::{SEEK_BYTES, SeekBody};
use bellwire_wire::frame::{FRAME_OVERHEAD_BYTES, check};

/// Bytes of a question or an answer.
pub const FRAME_BYTES: usize = FRAME_OVERHEAD_BYTES + SEEK_BYTES;

/// Node number that means any node that gets the Seek.
pub const ANY_NODE: u32 = u32::MAX;

/// A frame about the place of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeekFrame {
    /// The first node asks where the second is.
    Seek(SeekBody),
    /// The first node tells the second where it is.
    Here(SeekBody),
}

/// Writes a frame from function `from` to function `to` into the first [`FRAME_BYTES`] of `room`,
/// which must not be shorter.
pub fn emit(what: SeekFrame, from: u8, to: u8, room: &mut [u8]) {
    let (kind, body) = match what {
        SeekFrame::Seek(body) => (FrameKind::Seek, body),
        SeekFrame::Here(body) => (FrameKind::Here, body),
    };
    let frame = &mut room[..FRAME_BYTES];
    let mut header = FrameHeader::new(kind, to, from, 0);
    header.length = FRAME_BYTES as u16;
    // Nothing here can fail in a frame of this length.
    let _ = header.emit(frame);
    frame[HEADER_BYTES..HEADER_BYTES + SEEK_BYTES].copy_from_slice(&body.emit());
    let _ = check::seal(frame);
}

/// What a frame says, and the function that says it, if it is a sound Seek or Here.
#[inline]
pub fn parse(frame: &[u8]) -> Option<(SeekFrame, u8)> {
    let kind = *frame.get(1)?;
    if kind != FrameKind::Seek as u8 && kind != FrameKind::Here as u8 {
        return None;
    }
    let header = FrameHeader::parse(frame).ok()?;
    let frame = frame.get(..header.length as usize)?;
    if frame.len() != FRAME_BYTES || !check::is_sound(frame) {
        return None;
    }
    let body = SeekBody::parse(&frame[HEADER_BYTES..HEADER_BYTES + SEEK_BYTES]).ok()?;
    let what =
        if header.kind == FrameKind::Seek { SeekFrame::Seek(body) } else { SeekFrame::Here(body) };
    Some((what, header.from))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames parse back, padded or not; damaged frames do not.
    #[test]
    fn frames_parse_back() {
        let body = SeekBody { from: 7, to: 9, frame_bytes: 1500, nonce: 11 };
        for what in [SeekFrame::Seek(body), SeekFrame::Here(body)] {
            let mut frame = [0; FRAME_BYTES + 6];
            emit(what, 3, 255, &mut frame);
            assert_eq!(parse(&frame), Some((what, 3)));
            assert_eq!(frame[4..6], [60, 0], "a header, 24 bytes and a check value");
            assert_eq!(parse(&frame[..FRAME_BYTES]), Some((what, 3)));
            assert_eq!(parse(&frame[..FRAME_BYTES - 1]), None);
            for at in 0..FRAME_BYTES {
                for bit in 0..8 {
                    frame[at] ^= 1 << bit;
                    assert_eq!(parse(&frame), None, "byte {at} bit {bit}");
                    frame[at] ^= 1 << bit;
                }
            }
        }
    }
}
