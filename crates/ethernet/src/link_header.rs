//! The link header of our Ethernet frames, and the place of the destination function behind it.
//!
//! ```text
//!        0        1        2        3        4        5
//!   +--------+--------+--------+--------+--------+--------+
//!   |               destination address                   |   0
//!   +--------+--------+--------+--------+--------+--------+
//!   |                  source address                     |   6
//!   +--------+--------+--------+--------+--------+--------+
//!   |  0x88  |  0xB5  |  frame of the protocol ...          12
//!   +--------+--------+
//! ```
//! The third byte of the protocol's frame is the destination function. The kernel's filter and the
//! XDP program read it there to find the owner (H-02).

use crate::pcapng::Direction;
use bellwire_wire::frame::ETHERTYPE;
use std::fmt;

/// Bytes of the link header. An interface's MTU does not count them.
pub const LINK_HEADER_BYTES: usize = 14;
/// Offset of the destination function in an Ethernet frame.
pub const FUNCTION_OFFSET: usize = LINK_HEADER_BYTES + 2;
/// Function number of frames for all functions of a node. So functions are 0 to 254.
pub const EVERY_FUNCTION: u8 = 255;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// The broadcast address.
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// Whether it is the address of a single station.
    pub fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0
    }

    /// The owner's node number, unless it has chosen another: the last four bytes.
    pub fn node(self) -> u32 {
        u32::from_be_bytes([self.0[2], self.0[3], self.0[4], self.0[5]])
    }

    /// Parses `aa:bb:cc:dd:ee:ff`.
    pub fn parse(text: &str) -> Option<Mac> {
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        for byte in &mut bytes {
            let digits = |part: &&str| part.len() == 2 && !part.starts_with('+');
            let part = parts.next().filter(digits)?;
            *byte = u8::from_str_radix(part, 16).ok()?;
        }
        parts.next().is_none().then_some(Mac(bytes))
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Writes the header of a frame from `from` to `to`.
#[inline]
pub fn emit(frame: &mut [u8], to: Mac, from: Mac) {
    frame[0..6].copy_from_slice(&to.0);
    frame[6..12].copy_from_slice(&from.0);
    frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
}

/// Destination, source and payload of a frame; `None` if it is not one of ours, or too short.
#[inline]
pub fn parse(frame: &[u8]) -> Option<(Mac, Mac, &[u8])> {
    let (header, rest) = frame.split_first_chunk::<LINK_HEADER_BYTES>()?;
    let mac = |at: usize| Mac(header[at..at + 6].try_into().expect("six bytes"));
    (header[12..14] == ETHERTYPE.to_be_bytes()).then(|| (mac(0), mac(6), rest))
}

/// The header of a frame to or from `peer`, rebuilt for a capture.
pub(crate) fn capture(own: Mac, peer: Mac, direction: Direction) -> Vec<u8> {
    let mut header = vec![0; LINK_HEADER_BYTES];
    match direction {
        Direction::Sent => emit(&mut header, peer, own),
        Direction::Received => emit(&mut header, own, peer),
    }
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parsed frame gives its destination and source. Frames of others are refused.
    // shows: H-06
    #[test]
    fn headers_parse_back() {
        let (to, from) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 9]));
        let mut frame = [7; 20];
        emit(&mut frame, to, from);
        assert_eq!(parse(&frame), Some((to, from, &[7; 6][..])));
        assert_eq!(parse(&frame[..13]), None);
        frame[12] = 8;
        assert_eq!(parse(&frame), None);
    }

    #[test]
    fn addresses_print_and_parse_back() {
        let mac = Mac([0xde, 0xad, 0, 1, 2, 0xff]);
        assert_eq!(Mac::parse(&mac.to_string()), Some(mac));
        assert_eq!(mac.node(), 0x0001_02ff);
        for bad in ["", "de:ad", "de:ad:00:01:02:ff:00", "de:ad:00:01:02:+f", "g0:00:00:00:00:00"] {
            assert_eq!(Mac::parse(bad), None, "{bad}");
        }
    }

    /// The first bit on the wire tells groups from stations. A capture has the header that was on
    /// the wire.
    #[test]
    fn groups_and_captures() {
        let (own, peer) = (Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 9]));
        assert!(own.is_unicast() && !Mac::BROADCAST.is_unicast());
        assert!(!Mac([1, 0, 0, 0, 0, 0]).is_unicast());
        for (direction, to, from) in
            [(Direction::Sent, peer, own), (Direction::Received, own, peer)]
        {
            assert_eq!(parse(&capture(own, peer, direction)), Some((to, from, &[][..])));
        }
    }
}
