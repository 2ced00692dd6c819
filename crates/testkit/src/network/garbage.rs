//! Frames that no honest node sends, made from observed frames.
//!
//! The neighbour who makes them sees the wire, but does not use a stolen token: a resealed frame
//! has another token. (A checksum cannot stop an attacker who reads tokens and sends frames in
//! another's name; PROTOCOL.md says so.)

use crate::conformance::bytes::Random;
use bellwire_wire::frame::header::{FrameKind, HEADER_BYTES};
use bellwire_wire::frame::{ETHERTYPE, UDP_PORT_BASE, check};

/// Bytes of an Ethernet header, and of one with IPv4 (without options) and UDP behind it.
const ETHERNET_BYTES: usize = 14;
const UDP_BYTES: usize = ETHERNET_BYTES + 20 + 8;
/// Maximum number of frames that are kept.
const REMEMBERED: usize = 64;

/// Offset of the protocol's part of a frame, if it is one of ours. Clears the checksum of UDP,
/// which RFC 768 allows. (On veth the kernel leaves it to a card that does not exist.) So a damaged
/// datagram reaches us, instead of ending in the kernel.
pub fn is_ours(frame: &mut [u8]) -> Option<usize> {
    let kind = frame.get(12..14)?;
    if kind == ETHERTYPE.to_be_bytes() {
        return (frame.len() > ETHERNET_BYTES).then_some(ETHERNET_BYTES);
    }
    let is_udp = kind == [8, 0] && frame.len() > UDP_BYTES && frame[14] == 0x45 && frame[23] == 17;
    let port = u16::from_be_bytes([*frame.get(36)?, *frame.get(37)?]);
    if is_udp && (UDP_PORT_BASE..=UDP_PORT_BASE + 255).contains(&port) {
        frame[40..42].fill(0);
        return Some(UDP_BYTES);
    }
    None
}

/// An endless supply of hostile frames.
pub struct Garbage {
    random: Random,
    seen: Vec<Vec<u8>>,
    start: usize,
    frame: Vec<u8>,
}

impl Garbage {
    pub fn new(seed: u64) -> Garbage {
        Garbage { random: Random(seed ^ 0xbad), seen: Vec::new(), start: 0, frame: Vec::new() }
    }

    /// Keeps a frame whose protocol part begins at `start`.
    pub fn learn(&mut self, frame: &[u8], start: usize) {
        self.start = start;
        if self.seen.len() < REMEMBERED {
            self.seen.push(frame.to_vec());
        } else {
            let place = self.random.below(REMEMBERED);
            self.seen[place] = frame.to_vec();
        }
    }

    /// The next hostile frame; `None` before the first honest one.
    pub fn next(&mut self) -> Option<&[u8]> {
        if self.seen.is_empty() {
            return None;
        }
        let which = self.random.below(self.seen.len());
        self.frame.clone_from(&self.seen[which]);
        match self.random.below(8) {
            0 => self.noise(),
            1 | 2 => self.flip(),
            3 => self.cut(),
            4 => self.lie_about_length(),
            5 => self.reseal(),
            6 => self.invent(),
            // An unchanged repetition.
            _ => {}
        }
        if self.random.below(4) == 0 {
            self.pretend();
        }
        self.fit_headers();
        Some(&self.frame)
    }

    fn byte(&mut self) -> u8 {
        self.random.below(256) as u8
    }

    /// Random bytes of any length that fits.
    fn noise(&mut self) {
        let length = self.random.below(1400);
        self.frame.truncate(self.start);
        for _ in 0..length {
            let byte = self.byte();
            self.frame.push(byte);
        }
    }

    /// Some bytes changed, under the old check value.
    fn flip(&mut self) {
        for _ in 0..=self.random.below(8) {
            let at = self.start + self.random.below(self.frame.len() - self.start);
            let byte = self.byte();
            self.frame[at] = byte;
        }
    }

    /// Too short.
    fn cut(&mut self) {
        let length = self.start + self.random.below(self.frame.len() - self.start);
        self.frame.truncate(length);
    }

    /// A wrong length, under a right check value if that length allows one.
    fn lie_about_length(&mut self) {
        let [low, high] = [self.byte(), self.byte() & 7];
        if let Some(field) = self.frame.get_mut(self.start + 4..self.start + 6) {
            field.copy_from_slice(&[low, high]);
        }
        self.forget_token();
        self.seal();
    }

    /// Changed anywhere, with another token and a right check value.
    fn reseal(&mut self) {
        self.flip();
        self.forget_token();
        self.seal();
    }

    /// A header of any known kind with random fields, a random body, and a right check value.
    fn invent(&mut self) {
        self.noise();
        let kind = 1 + self.random.below(9) as u8;
        let body = [0, 1, 12, 16, 72, 100, 1000][self.random.below(7)];
        let length = HEADER_BYTES + body + 4;
        self.frame.resize(self.start + length, 0x55);
        let head = [0xb1, kind, 0, 0, length as u8, (length >> 8) as u8];
        self.frame[self.start..self.start + 6].copy_from_slice(&head);
        self.seal();
    }

    fn forget_token(&mut self) {
        let bytes: [u8; 8] = std::array::from_fn(|_| self.byte());
        if let Some(token) = self.frame.get_mut(self.start + 8..self.start + 16) {
            token.copy_from_slice(&bytes);
        }
    }

    /// Writes the right check value for the length in the header, if the frame has that length.
    fn seal(&mut self) {
        let frame = &mut self.frame[self.start..];
        let told = frame.get(4..6).map(|told| u16::from_le_bytes([told[0], told[1]]) as usize);
        let length = told.unwrap_or(0).min(frame.len());
        // A frame without room for it stays without.
        let _ = check::seal(&mut frame[..length]);
    }

    /// Gives the frame another source: another station, or another port. Answers to questions for a
    /// node's place are left alone. If neighbours answer for each other, no node is found (as with
    /// ARP), and that is not a fault of the frames.
    fn pretend(&mut self) {
        if self.frame.get(self.start + 1).is_none_or(|kind| kind & 0xf >= FrameKind::Seek as u8) {
            return;
        }
        let bytes = [self.byte(), self.byte()];
        let at = if self.start == ETHERNET_BYTES { 10 } else { 34 };
        self.frame[at..at + 2].copy_from_slice(&bytes);
    }

    /// Corrects lengths and checksum of IP and UDP; otherwise the kernel would drop the frame.
    fn fit_headers(&mut self) {
        if self.start != UDP_BYTES {
            return;
        }
        let ip_bytes = (self.frame.len() - ETHERNET_BYTES) as u16;
        self.frame[16..18].copy_from_slice(&ip_bytes.to_be_bytes());
        self.frame[38..40].copy_from_slice(&(ip_bytes - 20).to_be_bytes());
        self.frame[24..26].fill(0);
        let words = self.frame[14..34].chunks_exact(2);
        let sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
        self.frame[24..26].copy_from_slice(&sum.to_be_bytes());
    }
}
