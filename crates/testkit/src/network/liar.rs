//! A neighbour who answers questions that were not his: it tells that a node is where it is not.

use super::WIRE;
use super::host::Host;
use super::socket::PacketSocket;
use bellwire_wire::frame::header::{FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::seek::{SEEK_BYTES, SeekBody};
use bellwire_wire::frame::{ETHERTYPE, FRAME_OVERHEAD_BYTES, check};

/// Bytes of an Ethernet header.
const ETHERNET_BYTES: usize = 14;
/// The function number that all functions of a host listen to.
const EVERY_FUNCTION: u8 = 255;

/// A host that lies.
pub struct Liar(PacketSocket);

impl Liar {
    /// On a host of an Ethernet.
    pub fn on(host: &Host) -> Liar {
        Liar(host.run(|| PacketSocket::open(WIRE)))
    }

    /// Tells node `to`, and whoever else hears it, that `node` is at the Ethernet address `place`.
    pub fn tell(&self, to: u32, node: u32, place: [u8; 6]) {
        let mut frame = [0; ETHERNET_BYTES + FRAME_OVERHEAD_BYTES + SEEK_BYTES];
        frame[..6].fill(0xff);
        frame[6..12].copy_from_slice(&place);
        frame[12..14].copy_from_slice(&ETHERTYPE.to_be_bytes());
        let body = &mut frame[ETHERNET_BYTES..];
        let mut header = FrameHeader::new(FrameKind::Here, EVERY_FUNCTION, 0, 0);
        header.length = body.len() as u16;
        header.emit(body).expect("room for a header");
        let answer = SeekBody { from: node, to, frame_bytes: 1500 };
        body[HEADER_BYTES..HEADER_BYTES + SEEK_BYTES].copy_from_slice(&answer.emit());
        check::seal(body).expect("room for the check value");
        assert!(self.0.send(&frame), "the liar's frame leaves");
    }
}
