//! The frames of the reliable protocol.

use bellwire_wire::frame::finish::{CloseReason, RefuseBody};
use bellwire_wire::frame::header::{FrameHeader, HEADER_BYTES};
use bellwire_wire::frame::open::OpenBody;
use bellwire_wire::frame::record::{NEWS_BYTES, News, PACKET_HEADER_MAX_BYTES, PacketWords};
use bellwire_wire::frame::section::Section;
use bellwire_wire::frame::seek::SeekBody;

/// Gives the bytes to each parser of frames. A parser may accept only what its writer writes.
pub fn parse_frames(bytes: &[u8]) {
    if let Ok(header) = FrameHeader::parse(bytes) {
        let mut out = [0; HEADER_BYTES];
        header.emit(&mut out).expect("there is room");
        assert_eq!(out[..], bytes[..HEADER_BYTES]);
    }
    if let Ok(Some((words, length))) = PacketWords::parse(bytes) {
        let mut out = [0; PACKET_HEADER_MAX_BYTES];
        assert_eq!(words.emit(&mut out), length);
        assert_eq!(out[..length], bytes[..length]);
    }
    let mut rest = bytes;
    while let Ok(Some((section, behind))) = Section::split(rest) {
        assert!(behind.len() < rest.len() && section.bytes.len() < rest.len());
        rest = behind;
    }
    if let Ok(open) = OpenBody::parse(bytes) {
        assert!(bytes.starts_with(&open.emit()));
    }
    if let Ok(refuse) = RefuseBody::parse(bytes) {
        assert_eq!(RefuseBody::parse(&refuse.emit()), Ok(refuse));
    }
    if let Ok(seek) = SeekBody::parse(bytes) {
        assert_eq!(SeekBody::parse(&seek.emit()), Ok(seek));
    }
    if let Some(&news) = bytes.first_chunk::<NEWS_BYTES>()
        && let Ok(parsed) = News::parse(news)
    {
        assert_eq!(parsed.emit(), news);
    }
    let _ = CloseReason::parse(bytes);
}
