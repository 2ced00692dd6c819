//! The link header of our Ethernet frames: 16 bytes, so that what follows is aligned as the buffer is.
//!
//! ```text
//!        0        1        2        3        4        5
//!   +--------+--------+--------+--------+--------+--------+
//!   |               destination address                   |   0
//!   +--------+--------+--------+--------+--------+--------+
//!   |                  source address                     |   6
//!   +--------+--------+--------+--------+-----------------+
//!   |  0x88  |  0xB5  | to fn  |from fn |                     12
//!   +--------+--------+--------+--------+
//! ```
//! The EtherType is the first of the two that IEEE 802 leaves to local experiments (IEEE 802, section 9.2.4, table 4). The
//! function that a frame is for stands at a fixed place, so that the kernel's filter and the XDP program can find its owner (H-02)
//! without knowing the protocol.

use std::fmt;

/// Our EtherType.
pub const ETHERTYPE: u16 = 0x88b5;
/// Bytes of the link header.
pub const LINK_HEADER_BYTES: usize = 16;
/// Bytes of it that the interface's MTU does not count.
pub const UNCOUNTED_BYTES: usize = 14;
/// Where the function stands that a frame is for.
pub const FUNCTION_OFFSET: usize = 14;
/// Function number of frames that are for all functions of a node. So functions are 0 to 254.
pub const EVERY_FUNCTION: u8 = 255;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// Everybody.
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// Whether it names a single station.
    pub fn is_unicast(self) -> bool {
        self.0[0] & 1 == 0
    }

    /// The node number of its owner unless it has chosen one: the last four bytes.
    pub fn node(self) -> u32 {
        u32::from_be_bytes([self.0[2], self.0[3], self.0[4], self.0[5]])
    }

    /// The address that `aa:bb:cc:dd:ee:ff` means.
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

/// Where a frame goes to or came from: a station's function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct EthernetPath {
    /// The station.
    pub mac: Mac,
    /// Its function.
    pub function: u8,
}

impl fmt::Display for EthernetPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} function {}", self.mac, self.function)
    }
}

/// Writes the header of a frame from `from` to `to`.
#[inline]
pub fn emit(frame: &mut [u8], to: EthernetPath, from: EthernetPath) {
    frame[0..6].copy_from_slice(&to.mac.0);
    frame[6..12].copy_from_slice(&from.mac.0);
    frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
    frame[14] = to.function;
    frame[15] = from.function;
}

/// Who a frame is for and from, and what it carries; `None` if it is not one of ours, or too short.
#[inline]
pub fn parse(frame: &[u8]) -> Option<(EthernetPath, EthernetPath, &[u8])> {
    let (header, rest) = frame.split_first_chunk::<LINK_HEADER_BYTES>()?;
    let mac = |at: usize| Mac(header[at..at + 6].try_into().expect("six bytes"));
    let ours = header[12..14] == ETHERTYPE.to_be_bytes();
    ours.then(|| {
        let to = EthernetPath { mac: mac(0), function: header[14] };
        let from = EthernetPath { mac: mac(6), function: header[15] };
        (to, from, rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame tells who it is for and from, and what is not ours is no frame.
    // shows: H-06
    #[test]
    fn headers_parse_back() {
        let to = EthernetPath { mac: Mac([2, 0, 0, 0, 0, 1]), function: 3 };
        let from = EthernetPath { mac: Mac([2, 0, 0, 0, 0, 9]), function: 200 };
        let mut frame = [7; 20];
        emit(&mut frame, to, from);
        assert_eq!(parse(&frame), Some((to, from, &[7; 4][..])));
        assert_eq!(parse(&frame[..15]), None);
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
}
