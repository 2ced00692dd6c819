//! Frames on the wire.

use super::tcp::Segment;

/// Ethernet's header.
pub const HEADER_BYTES: usize = 14;
/// The check value at the end.
pub const CHECK_BYTES: usize = 4;
/// Preamble (8) and interframe gap (12).
pub const BETWEEN_BYTES: usize = 20;
/// The smallest payload.
pub const LEAST_BYTES: usize = 46;
/// IP's and TCP's headers, of 20 bytes each.
pub const TCP_IP_BYTES: usize = 40;
/// The EtherType of HPCL frames; frames of TCP/IP have IP's.
pub const ETHERTYPE: u16 = 0x88b5;

/// The payload of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A frame of the reliable protocol, all its bytes.
    Hpcl(Box<[u8]>),
    /// IP: a TCP segment, of which the model carries only numbers and lengths.
    Ip(Segment),
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Sender.
    pub from: u16,
    /// Receiver.
    pub to: u16,
    /// Its payload.
    pub payload: Payload,
}

impl Frame {
    /// Bytes between Ethernet's header and check value.
    pub fn payload_bytes(&self) -> usize {
        let bytes = match &self.payload {
            Payload::Hpcl(bytes) => bytes.len(),
            Payload::Ip(segment) => TCP_IP_BYTES + segment.bytes as usize,
        };
        bytes.max(LEAST_BYTES)
    }

    /// Bytes in memory: without the check value, which the NIC adds.
    pub fn memory_bytes(&self) -> usize {
        HEADER_BYTES + self.payload_bytes()
    }

    /// Bytes of line time.
    pub fn wire_bytes(&self) -> usize {
        self.memory_bytes() + CHECK_BYTES + BETWEEN_BYTES
    }

    /// Its Ethernet header: receiver and sender address, which here hold node numbers, and the
    /// EtherType.
    pub fn ethernet_header(&self) -> [u8; HEADER_BYTES] {
        /// IP version 4.
        const IP: u16 = 0x0800;
        let mut header = [0; HEADER_BYTES];
        // The second bit marks locally administered addresses.
        (header[0], header[6]) = (2, 2);
        header[4..6].copy_from_slice(&self.to.to_be_bytes());
        header[10..12].copy_from_slice(&self.from.to_be_bytes());
        let kind = match self.payload {
            Payload::Hpcl(_) => ETHERTYPE,
            Payload::Ip(_) => IP,
        };
        header[12..].copy_from_slice(&kind.to_be_bytes());
        header
    }

    /// A value for the trace hash.
    pub fn witness(&self) -> u64 {
        let head = u64::from(self.from) << 48 | u64::from(self.to) << 32;
        match &self.payload {
            // The check value at the end represents all bytes.
            Payload::Hpcl(bytes) => {
                let end = bytes.last_chunk::<4>().map_or(0, |end| u32::from_le_bytes(*end));
                head | u64::from(end)
            }
            Payload::Ip(segment) => head ^ segment.sequence << 1 ^ segment.acknowledged << 24 ^ 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(bytes: u32) -> Payload {
        Payload::Ip(Segment { sequence: 5, bytes, acknowledged: 3, window_end: 9 })
    }

    fn frame(payload: Payload) -> Frame {
        Frame { from: 0x0102, to: 0x0304, payload }
    }

    /// A frame takes 14 B of header and 4 of check value besides its payload, which has 46 at
    /// least. Between two frames are 20 B.
    #[test]
    fn frames_have_lengths() {
        let hpcl = |bytes: usize| frame(Payload::Hpcl(vec![7; bytes].into()));
        for (frame, payload) in [
            (hpcl(0), 46),
            (hpcl(46), 46),
            (hpcl(47), 47),
            (hpcl(1500), 1500),
            (frame(segment(0)), 46),
            (frame(segment(7)), 47),
            (frame(segment(1460)), 1500),
        ] {
            assert_eq!(frame.payload_bytes(), payload);
            assert_eq!(frame.memory_bytes(), payload + 14);
            assert_eq!(frame.wire_bytes(), payload + 14 + 4 + 20);
        }
    }

    /// A frame's value for the trace has both nodes above, and below the check value or the numbers
    /// of the segment.
    #[test]
    fn frames_are_told_apart() {
        let head = 0x0102_0304_0000_0000;
        let hpcl = frame(Payload::Hpcl([9, 9, 0x78, 0x56, 0x34, 0x12].into()));
        assert_eq!(hpcl.witness(), head | 0x1234_5678);
        assert_eq!(frame(Payload::Hpcl([1, 2, 3].into())).witness(), head);
        // 5 shifted by 1 is 10, and 3 shifted by 24 lies above it.
        assert_eq!(frame(segment(7)).witness(), head | 0x0300_0000 | 10 | 1);
        let long =
            Segment { sequence: 1 << 40 | 1 << 47, bytes: 1, acknowledged: 0, window_end: 0 };
        assert_eq!(frame(Payload::Ip(long)).witness(), head ^ 1 << 41 ^ 1 << 48 ^ 1);
        let far = Segment { sequence: 0x0100_0081, bytes: 1, acknowledged: 0x0103, window_end: 0 };
        let value = head ^ 0x0200_0102 ^ 0x01_0300_0000 ^ 1;
        assert_eq!(frame(Payload::Ip(far)).witness(), value);
    }
}
