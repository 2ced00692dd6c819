//! Frames of devices with a key: handshakes, and other frames sealed.
//!
//! ```text
//!         0        1        2        3        4        5        6        7
//!    +--------+--------+--------+--------+-----------------+-----------------+
//!  0 | 0xB1   |step,11 |function| from   |  length         | tags            |
//!    +--------+--------+--------+--------+-----------------+-----------------+
//!  8 | index of the session or handshake, chosen by the receiver             |
//!    +-----------------------------------------------------------------------+
//! 16 | counter of the session, nonce or cookie                               |
//!    +-----------------------------------------------------------------------+
//! 24 | by step                                                               |
//! ```
//! | step | what is at 8 and 16 | what follows |
//! |---|---|---|
//! | 0 sealed | session, counter | a frame without check value, encrypted; the AEAD's 16 bytes |
//! | 1 knock | the asking side's session, its nonce | tags |
//! | 2 cookie | the asking side's session, cookie | one tag |
//! | 3 hello | the asking side's session, cookie | the nonce, message 1 of Noise, one tag |
//! | 4 reply | the asking side's session, 0 | message 2 of Noise |
//! | 5 tagged | 0, 0 | a Seek or Here, tags |
//!
//! - `step` is the upper half of byte 1. `function` and `from` are those of all frames, so filters
//!   and capture tools need not know about keys.
//! - `tags` is how many tags of 8 bytes end the frame. A tag is SipHash-2-4 of all bytes before the
//!   tags, under a key that two peers share. A frame to nobody in particular has one for each peer
//!   that may read it. In a cookie frame the tag also covers the nonce that it answers.
//! - The header of a sealed frame is the associated data of its AEAD.

use super::array;
use super::check::CHECK_BYTES;
use super::header::MAGIC;
use crate::WireError;
use crate::error::codes;

/// Bytes of the header.
pub const KEYED_HEADER_BYTES: usize = 24;
/// Bytes of the tag of a sealed frame.
pub const SEAL_BYTES: usize = 16;
/// Bytes by which a sealed frame is longer than the frame in it, whose check value it replaces.
pub const SEALED_OVERHEAD_BYTES: usize = KEYED_HEADER_BYTES + SEAL_BYTES - CHECK_BYTES;
/// Bytes of a tag of the other steps.
pub const TAG_BYTES: usize = 8;
/// Most tags of a frame.
pub const TAGS: usize = 64;
/// The lower half of byte 1, where other frames have a [`super::header::FrameKind`].
pub const KEYED: u8 = 11;

codes! {
    /// What a frame with a key is.
    KeyedStep, "step of a frame with a key";

    /// Carries another frame.
    Sealed = 0,
    /// Asks for a session, and shows that a key is known.
    Knock = 1,
    /// Answers a knock: the asking side must show that it receives at its place.
    Cookie = 2,
    /// The first message of the handshake.
    Hello = 3,
    /// The second message of the handshake.
    Reply = 4,
    /// Carries a question or an answer about the place of a node, readable and authenticated.
    Tagged = 5,
}

/// The header's fields.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyedHeader {
    /// What the frame is.
    pub step: KeyedStep,
    /// Function of the destination node.
    pub function: u8,
    /// Function of the node that sends.
    pub from: u8,
    /// Bytes of the frame, header and tags included.
    pub length: u16,
    /// How many tags end the frame.
    pub tags: u16,
    /// Index of the session.
    pub session: u64,
    /// Counter, nonce or cookie.
    pub counter: u64,
}

impl KeyedHeader {
    /// Reads the header of `bytes`, which may have padding behind the frame.
    ///
    /// # Errors
    /// [`WireError::Truncated`] if a part of the frame is missing, [`WireError::UnknownCode`] if it
    /// is no frame with a key.
    #[inline]
    pub fn parse(bytes: &[u8]) -> Result<Self, WireError> {
        let truncated =
            |needed| WireError::Truncated { format: "keyed frame", length: bytes.len(), needed };
        if bytes.len() < KEYED_HEADER_BYTES {
            return Err(truncated(KEYED_HEADER_BYTES));
        }
        if bytes[0] != MAGIC || bytes[1] & 0xf != KEYED {
            let code = u64::from(bytes[1]) << 8 | u64::from(bytes[0]);
            return Err(WireError::UnknownCode { field: "first bytes", code });
        }
        let header = KeyedHeader {
            step: KeyedStep::from_code(bytes[1] >> 4)?,
            function: bytes[2],
            from: bytes[3],
            length: u16::from_le_bytes(array(bytes, 4)),
            tags: u16::from_le_bytes(array(bytes, 6)),
            session: u64::from_le_bytes(array(bytes, 8)),
            counter: u64::from_le_bytes(array(bytes, 16)),
        };
        let least = KEYED_HEADER_BYTES + TAG_BYTES * header.tags as usize;
        let length = header.length as usize;
        if length < least || bytes.len() < length {
            return Err(truncated(length.max(least)));
        }
        Ok(header)
    }

    /// The bytes.
    #[inline]
    pub fn emit(&self) -> [u8; KEYED_HEADER_BYTES] {
        let mut bytes = [0; KEYED_HEADER_BYTES];
        bytes[0] = MAGIC;
        bytes[1] = KEYED | (self.step as u8) << 4;
        bytes[2] = self.function;
        bytes[3] = self.from;
        bytes[4..6].copy_from_slice(&self.length.to_le_bytes());
        bytes[6..8].copy_from_slice(&self.tags.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.session.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.counter.to_le_bytes());
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Headers parse back; short, foreign and plain frames do not.
    #[test]
    fn headers_parse_back() {
        for step in 0..6 {
            let header = KeyedHeader {
                step: KeyedStep::from_code(step).expect("a step"),
                function: 3,
                from: 4,
                length: 40,
                tags: 2,
                session: 0x1122_3344_5566_7788,
                counter: u64::MAX - 5,
            };
            let mut frame = header.emit().to_vec();
            assert!(KeyedHeader::parse(&frame).is_err());
            frame.resize(46, 0);
            assert_eq!(KeyedHeader::parse(&frame), Ok(header));
            assert_eq!(KeyedHeader::parse(&frame[..40]), Ok(header));
            assert!(KeyedHeader::parse(&frame[..39]).is_err());
            for (at, value) in [(0, 0xb2), (1, 0x04), (1, 0x6b), (4, 39), (6, 3)] {
                let before = frame[at];
                frame[at] = value;
                assert!(KeyedHeader::parse(&frame).is_err(), "byte {at} as {value}");
                frame[at] = before;
            }
        }
    }

    /// A header without tags is a whole frame. What is refused is named.
    #[test]
    fn faults_are_named() {
        let header = KeyedHeader {
            step: KeyedStep::Reply,
            function: 3,
            from: 4,
            length: 24,
            tags: 0,
            session: 1,
            counter: 0,
        };
        let mut frame = header.emit();
        assert_eq!(KeyedHeader::parse(&frame), Ok(header));
        for length in 0..24 {
            let truncated = WireError::Truncated { format: "keyed frame", length, needed: 24 };
            assert_eq!(KeyedHeader::parse(&frame[..length]), Err(truncated));
        }
        frame[..2].copy_from_slice(&[0xb2, 0x34]);
        let unknown = WireError::UnknownCode { field: "first bytes", code: 0x34b2 };
        assert_eq!(KeyedHeader::parse(&frame), Err(unknown));
    }

    /// A sealed frame has a header of 24 bytes and a seal of 16 more than the frame in it, and 4
    /// bytes of check value less.
    #[test]
    fn a_seal_takes_36_bytes() {
        assert_eq!(SEALED_OVERHEAD_BYTES, 36);
    }
}
