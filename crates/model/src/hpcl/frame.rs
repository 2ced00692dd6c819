//! Frames on the wire.

use super::tcp::Segment;

/// Ethernet's header.
pub const HEADER_BYTES: usize = 14;
/// The check value at the end.
pub const CHECK_BYTES: usize = 4;
/// Preamble and interframe gap.
pub const BETWEEN_BYTES: usize = 8 + 12;
/// The smallest payload.
pub const LEAST_BYTES: usize = 46;
/// IP's and TCP's headers.
pub const TCP_IP_BYTES: usize = 20 + 20;
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
