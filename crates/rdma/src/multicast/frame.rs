//! The format of a datagram to a group, inside of UDP.

use bellwire_ring::canary::planted;

/// The version of the format. Others are dropped.
const VERSION: u8 = 1;
const MAGIC: [u8; 4] = *b"BWMC";

/// Bits of the flags.
const IMMEDIATE: u8 = 1;
const SOLICITED: u8 = 2;

/// The fields before the payload, little-endian:
///
/// ```text
///  0       4         5       6        8            12      16          20       24
///  magic | version | flags | length | source QPN | Q_Key | immediate | CRC-32C | payload ...
/// ```
///
/// The length is the payload's, and nothing follows it. The check value covers all but itself. The
/// source's GID is the source address of the IP packet, and the group its destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    /// The sender's queue pair.
    pub(crate) source: u32,
    /// The key that a receiving queue pair must have.
    pub(crate) key: u32,
    pub(crate) immediate: Option<u32>,
    /// A receiver that waits for solicited completions gets its event.
    pub(crate) solicited: bool,
}

impl Frame {
    /// Bytes before the payload.
    pub(crate) const BYTES: usize = 24;
    /// Bytes that the check value covers before the payload.
    const CHECKED: usize = 20;
    /// Longest frame in bytes.
    pub(crate) const MOST: usize = Self::BYTES + crate::initiate::DATAGRAM_BYTES as usize;

    /// Writes the fields before the payload, which lies in `bytes` from [`Frame::BYTES`] on.
    pub(crate) fn emit(&self, bytes: &mut [u8]) {
        debug_assert!((Self::BYTES..=Self::MOST).contains(&bytes.len()));
        let length = (bytes.len() - Self::BYTES) as u16;
        let immediate = if self.immediate.is_some() { IMMEDIATE } else { 0 };
        let solicited = if self.solicited { SOLICITED } else { 0 };
        bytes[..4].copy_from_slice(&MAGIC);
        (bytes[4], bytes[5]) = (VERSION, immediate | solicited);
        bytes[6..8].copy_from_slice(&length.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.source.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.key.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.immediate.unwrap_or(0).to_le_bytes());
        let check = check(bytes);
        bytes[20..24].copy_from_slice(&check.to_le_bytes());
    }

    /// The frame and its payload. `None`: it is not one of ours, or was altered on its way.
    pub(crate) fn parse(bytes: &[u8]) -> Option<(Frame, &[u8])> {
        if bytes.len() > Self::MOST && !planted("multicast-length") {
            return None;
        }
        let (head, payload) = bytes.split_at_checked(Self::BYTES)?;
        let word =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (flags, length) = (head[5], u16::from_le_bytes([head[6], head[7]]));
        let good = (head[..4] == MAGIC || planted("multicast-magic"))
            && (head[4] == VERSION || planted("multicast-version"))
            && (flags & !(IMMEDIATE | SOLICITED) == 0 || planted("multicast-flags"))
            && (usize::from(length) == payload.len() || planted("multicast-length"))
            && (word(8) >> 24 == 0 || planted("multicast-source"))
            && (word(20) == check(bytes) || planted("multicast-check"));
        let immediate = (flags & IMMEDIATE != 0).then(|| word(16));
        let solicited = flags & SOLICITED != 0;
        good.then_some((Frame { source: word(8), key: word(12), immediate, solicited }, payload))
    }
}

/// The check value of a frame.
fn check(bytes: &[u8]) -> u32 {
    let head = crc32c::crc32c(&bytes[..Frame::CHECKED]);
    crc32c::crc32c_append(head, &bytes[Frame::BYTES..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn emitted(frame: &Frame, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; Frame::BYTES];
        bytes.extend(payload);
        frame.emit(&mut bytes);
        bytes
    }

    const FRAME: Frame =
        Frame { source: 0xff_fffe, key: 0x8000_0001, immediate: Some(7), solicited: true };

    /// A frame survives its bytes, with each payload that is allowed.
    #[test]
    fn frames_survive_their_bytes() {
        for length in [0, 1, 4095, 4096] {
            let payload = vec![0xa5; length];
            for immediate in [None, Some(0), Some(u32::MAX)] {
                for solicited in [false, true] {
                    let frame = Frame { immediate, solicited, ..FRAME };
                    let bytes = emitted(&frame, &payload);
                    assert_eq!(Frame::parse(&bytes), Some((frame, &payload[..])));
                }
            }
        }
    }

    /// Gives the check value that the bytes need.
    fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
        let check = check(&bytes);
        bytes[20..24].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Each field that is wrong makes the frame none, also with a check value that fits.
    #[test]
    fn wrong_fields_are_refused() {
        let good = emitted(&FRAME, b"payload");
        for (at, value) in [(0, b'b'), (3, 0), (4, 0), (4, 2), (5, 4), (5, 0x83), (6, 6), (7, 1)] {
            let mut bytes = good.clone();
            bytes[at] = value;
            assert_eq!(Frame::parse(&sealed(bytes)), None, "byte {at} is {value}");
        }
        let mut bytes = good.clone();
        bytes[11] = 1;
        assert_eq!(Frame::parse(&sealed(bytes)), None, "a source of 25 bits");
        let long = emitted(&FRAME, &[0; 4096]);
        let longer = [&long[..], &[0]].concat();
        assert_eq!(Frame::parse(&sealed(longer)), None, "longer than a datagram may be");
    }

    /// A frame with any bit inverted, or cut anywhere, is none.
    #[test]
    fn altered_frames_are_refused() {
        let good = emitted(&FRAME, b"payload");
        for bit in 0..good.len() * 8 {
            let mut bytes = good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Frame::parse(&bytes), None, "bit {bit}");
        }
        for length in 0..good.len() {
            assert_eq!(Frame::parse(&good[..length]), None, "{length} bytes");
        }
    }
}
